"""Running a tool: an argument vector and never a shell, a time limit, and no child that outlives us."""
from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import cores
from ..errors import Diagnostic, ToolError
from ..frozen import frozen

if TYPE_CHECKING:                # imported where a process is started: a kernel of the cache needs none
    import subprocess

LONGEST_OUTPUT = 20_000          # bytes of a tool's output that are kept


@frozen
class Finished:
    """How a command ended: exit status (negative: the signal that killed it) and what it printed."""

    command: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def reason(self) -> str:
        """The exit status in words."""
        if self.status < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


def run(command: Sequence[str], timeout: float, cwd: Path | None = None, meanwhile: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end. ToolError E620 where it cannot be started, E622 where it takes longer than `timeout`
    seconds: then it and its children are killed. `meanwhile` is called while it runs; where that raises, they are
    killed too. `environment` adds to that of this process."""
    child = _started(command, cwd, environment)
    try:
        if meanwhile is not None:
            meanwhile()
        return _ended(child, command, timeout)
    except BaseException:                # Ctrl-C among them: no child is left behind
        _kill(child)
        raise


def run_together(commands: Sequence[Sequence[str]], timeout: float, cwd: Path | None = None,
                 meanwhile: Callable[[], None] | None = None,
                 environment: Mapping[str, str] | None = None) -> list[Finished]:
    """Run commands to their end like `run`, as many at once as there are cores."""
    from concurrent.futures import ThreadPoolExecutor
    lock, stopped = threading.Lock(), False
    children: list[subprocess.Popen[bytes]] = []

    def one(command: Sequence[str]) -> Finished | None:
        with lock:
            if stopped:
                return None
            child = _started(command, cwd, environment)
            children.append(child)
        return _ended(child, command, timeout)
    try:
        with ThreadPoolExecutor(cores.available()) as pool:
            running = [pool.submit(one, command) for command in commands]
            try:
                if meanwhile is not None and commands:
                    meanwhile()
                return [done for each in running if (done := each.result()) is not None]
            except BaseException:
                with lock:
                    stopped = True
                for child in children:
                    _signal(child)
                raise
    except BaseException:
        for child in children:
            _kill(child)
        raise


def _started(command: Sequence[str], cwd: Path | None,
             environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    import subprocess
    env = {**os.environ, "LC_ALL": "C", **(environment or {})}
    try:
        return subprocess.Popen(list(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)
    except OSError as problem:
        raise ToolError(Diagnostic("E620", f"cannot run {command[0]}: {problem.strerror}",
                                   hint="is it installed, and may it be executed?")) from None


def _ended(child: subprocess.Popen[bytes], command: Sequence[str], timeout: float) -> Finished:
    import subprocess
    try:
        output, errors = _printed(child, timeout)
    except subprocess.TimeoutExpired:
        raise ToolError(Diagnostic("E622", f"{Path(command[0]).name} was stopped after {timeout:g} s",
                                   hint="--cc-timeout gives it more time",
                                   notes=((" ".join(command), None),))) from None
    return Finished(tuple(command), child.returncode, output, errors)


def _printed(child: subprocess.Popen[bytes], timeout: float) -> list[str]:
    """The first bytes of a child's output, read until it ends; the rest is dropped. Raises TimeoutExpired."""
    import selectors
    import subprocess
    deadline = time.monotonic() + timeout
    streams = [s for s in (child.stdout, child.stderr) if s is not None]
    kept = {stream.fileno(): bytearray() for stream in streams}
    with selectors.DefaultSelector() as open_ones:
        for fd in kept:
            open_ones.register(fd, selectors.EVENT_READ)
        while open_ones.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(child.args, timeout)
            for key, _ in open_ones.select(left):
                chunk = os.read(key.fd, 1 << 16)
                kept[key.fd] += chunk[:LONGEST_OUTPUT - len(kept[key.fd])]
                if not chunk:
                    open_ones.unregister(key.fd)
    child.wait(max(deadline - time.monotonic(), 0))
    for stream in streams:
        stream.close()
    return [bytes(text).decode(errors="replace").replace("\r\n", "\n") for text in kept.values()]


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child and everything that it started."""
    _signal(child)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    child.wait()


def _signal(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()

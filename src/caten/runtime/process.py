"""Running a tool: an argument vector and never a shell, a time limit, and no child that outlives us."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Diagnostic, ToolError

LONGEST_OUTPUT = 20_000          # characters of a tool's output that are kept


@dataclass(frozen=True)
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


def run(command: Sequence[str], timeout: float, cwd: Path | None = None) -> Finished:
    """Run a command to its end. ToolError E620 where it cannot be started, E622 where it takes longer than `timeout` seconds: then it and its
    children are killed."""
    env = os.environ | {"LC_ALL": "C"}
    try:
        child = subprocess.Popen(list(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True, text=True, errors="replace")
    except OSError as problem:
        raise ToolError(Diagnostic("E620", f"cannot run {command[0]}: {problem.strerror}", hint="is it installed, and may it be executed?")) from None
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(child)
        raise ToolError(Diagnostic("E622", f"{Path(command[0]).name} was stopped after {timeout:g} s", hint="--cc-timeout gives it more time",
                                   notes=((" ".join(command), None),))) from None
    except BaseException:                # Ctrl-C among them: no child is left behind
        _kill(child)
        raise
    return Finished(tuple(command), child.returncode, output[:LONGEST_OUTPUT], errors[:LONGEST_OUTPUT])


def _kill(child: subprocess.Popen[str]) -> None:
    """End a child and everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.communicate()

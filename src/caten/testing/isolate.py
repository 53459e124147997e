"""Run a function in a child process that may crash, hang or run out of memory alone."""
from __future__ import annotations

import io
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import CatenError, Diagnostic, Place

Work = Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]]
CHILDREN: set[int] = set()             # running now; the command line kills them when it is interrupted


@dataclass(frozen=True)
class Outcome:
    """What became of a child: `ok`, `crash` (a signal), `timeout`, or `error` (diagnostics). `facts` is JSON, `arrays` are numpy's."""

    status: str
    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    signal: str = ""


def run(work: Work, timeout: float, memory: int | None = None, cpu: int | None = None, no_files: bool = False) -> Outcome:
    """`work()` in a forked child: (facts, arrays) come back.

    `timeout`: seconds of wall time; `cpu`: of processor time; `memory`: bytes that the child may add to its address space; `no_files`: it may open
    no file and start no process.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(work, writer, memory, cpu, no_files)          # never returns
    CHILDREN.add(pid)
    os.close(writer)
    try:
        data, finished = _receive(reader, timeout)
        if not finished:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        CHILDREN.discard(pid)
        os.close(reader)
    if not finished:
        return Outcome("timeout")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        return Outcome("timeout" if name == "SIGXCPU" else "crash", signal=name)
    if not data:
        return Outcome("crash", signal=f"exit code {os.waitstatus_to_exitcode(status)}")
    return _unpack(data)


def _receive(reader: int, timeout: float) -> tuple[bytes, bool]:
    """All that the child sends; False when the time is up before it closes the pipe."""
    parts: list[bytes] = []
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return b"", False
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts), True
        parts.append(part)


def _child(work: Work, writer: int, memory: int | None, cpu: int | None, no_files: bool) -> None:
    """Never returns, whatever happens: this is a copy of the caller, and must not go on as it."""
    code = 70
    try:
        payload = _worked(work, memory, cpu, no_files)
        view = memoryview(payload)
        while view:
            view = view[os.write(writer, view):]
        code = 0
    finally:
        os._exit(code)


def _worked(work: Work, memory: int | None, cpu: int | None, no_files: bool) -> bytes:
    """The result of the work within its limits, packed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if cpu is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))        # first SIGXCPU, which says why; then SIGKILL
    if memory is not None:
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    if no_files:
        for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
            resource.setrlimit(limit, (0, 0))
    try:
        facts, arrays = work()
    except CatenError as problem:
        return _pack({"diagnostics": [_as_json(d) for d in problem.diagnostics]}, {})
    except MemoryError:
        return _pack({"diagnostics": [_as_json(Diagnostic("E834", "the test run needs more memory than there is", hint="use smaller sizes"))]}, {})
    except Exception:
        return _pack({"internal": traceback.format_exc()}, {})
    return _pack({"facts": facts}, arrays)


def _as_json(d: Diagnostic) -> dict[str, Any]:
    p = d.place
    return {"code": d.code, "message": d.message, "hint": d.hint, "place": [p.file, p.line, p.column, p.text] if p else None}


def _pack(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    head = json.dumps(facts).encode()
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    return len(head).to_bytes(8, "little") + head + body.getvalue()


def _unpack(data: bytes) -> Outcome:
    length = int.from_bytes(data[:8], "little")
    facts = json.loads(data[8:8 + length])
    if "internal" in facts:
        raise RuntimeError(f"in a test run's process: {facts['internal']}")
    if "diagnostics" in facts:
        return Outcome("error", diagnostics=tuple(Diagnostic(d["code"], d["message"], Place(*d["place"]) if d["place"] else None, d["hint"])
                                                  for d in facts["diagnostics"]))
    with np.load(io.BytesIO(data[8 + length:]), allow_pickle=False) as archive:
        return Outcome("ok", facts["facts"], {k: archive[k] for k in archive.files})

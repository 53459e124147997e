"""Run a function in a child process that may crash, hang or run out of memory alone."""
from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ..errors import CatenError, Diagnostic, NothingMatched, Place, ToolError, UsageError
from ..frozen import frozen
from ..runtime import discover, plugin_checks
from . import pipe_messages

Work = Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]]
# what a hint or a median imports when it is asked for: a child that opens no files must have it
LATE = ("difflib", "numpy.ma")
KINDS = {kind.exit_code: kind for kind in (CatenError, UsageError, ToolError, NothingMatched)}
CHILDREN: set[int] = set()             # running now; the command line kills them when it is interrupted


@frozen
class Outcome:
    """What became of a child: `ok`, `crash` (a signal), `timeout`, or `error` (diagnostics). `facts` is JSON,
    `arrays` are numpy's."""

    status: str
    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    signal: str = ""
    kind: type[CatenError] = CatenError            # of the diagnostics: it decides the exit code

    def error(self) -> CatenError:
        """What the child raised, to be raised here."""
        return self.kind(*self.diagnostics)


def run(work: Work, timeout: float | None, memory: int | None = None, cpu: int | None = None,
        no_files: bool = False) -> Outcome:
    """`work()` in a forked child: (facts, arrays) come back.

    `timeout`: seconds of wall time, if they are limited; `cpu`: of processor time; `memory`: bytes that the child may
    add to its address space; `no_files`: it may open no file and start no process.
    """
    for module in LATE if no_files else ():
        importlib.import_module(module)
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(work, writer, memory, cpu, no_files)          # never returns
    CHILDREN.add(pid)
    os.close(writer)
    facts: dict[str, Any] | None = None
    arrays: dict[str, np.ndarray] = {}
    late = False
    try:
        try:
            facts, arrays = pipe_messages.receive(reader, timeout)
        except pipe_messages.Late:
            late = True
            os.kill(pid, signal.SIGKILL)
        except pipe_messages.Gone:
            pass                                             # the exit status says why
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        CHILDREN.discard(pid)
        os.close(reader)
    if late:
        return Outcome("timeout")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return Outcome("timeout" if name == "SIGXCPU" else "crash", signal=name)
    if facts is None:
        return Outcome("crash", signal=f"exit code {os.waitstatus_to_exitcode(status)}")
    return _outcome(facts, arrays)


def _child(work: Work, writer: int, memory: int | None, cpu: int | None, no_files: bool) -> None:
    """Never returns, whatever happens: this is a copy of the caller, and must not go on as it."""
    code = 70
    try:
        pipe_messages.send(writer, *_worked(work, memory, cpu, no_files))
        code = 0
    finally:
        os._exit(code)


def _worked(work: Work, memory: int | None, cpu: int | None,
            no_files: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What came of the work within its limits: {"facts": …} and arrays, or {"diagnostics": …}, or {"internal": …}."""
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
        return {"diagnostics": [diagnostic_to_json(d) for d in problem.diagnostics], "exit code": problem.exit_code}, {}
    except MemoryError:
        return {"diagnostics": [diagnostic_to_json(Diagnostic("E834", "the test run needs more memory than there is",
                                                              hint="use smaller sizes"))]}, {}
    except Exception as problem:
        if (fault := plugin_checks.blamed(problem, discover.builtin_folder())) is not None:
            return {"diagnostics": [diagnostic_to_json(d) for d in fault.diagnostics]}, {}
        return {"internal": traceback.format_exc()}, {}
    return {"facts": facts}, arrays


def diagnostic_to_json(d: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON that another process reads."""
    return {"code": d.code, "message": d.message, "hint": d.hint, "severity": d.severity,
            "place": _place_as_json(d.place),
            "notes": [[text, _place_as_json(place)] for text, place in d.notes]}


def _place_as_json(p: Place | None) -> list[Any] | None:
    return [p.file, p.line, p.column, p.text] if p else None


def _outcome(result: dict[str, Any], arrays: dict[str, np.ndarray]) -> Outcome:
    if "internal" in result:
        raise RuntimeError(f"in a test run's process: {result['internal']}")
    if "diagnostics" in result:
        return Outcome("error", diagnostics=tuple([diagnostic_from_json(d) for d in result["diagnostics"]]),
                       kind=KINDS[result.get("exit code", 1)])
    return Outcome("ok", result["facts"], arrays)


def diagnostic_from_json(d: dict[str, Any]) -> Diagnostic:
    """The diagnostic that `diagnostic_to_json` spelled."""
    def place(p: list[Any] | None) -> Place | None:
        return Place(*p) if p else None
    return Diagnostic(d["code"], d["message"], place(d["place"]), d["hint"],
                      tuple([(text, place(p)) for text, p in d["notes"]]),
                      d["severity"])

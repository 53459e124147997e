"""The tests of several spec files: each file a library of its own, and what came of every file, in the order of the
command line."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..conformance import pool
from ..core.program import Case
from ..errors import CatenError, Diagnostic, NothingMatched
from ..testing import isolate, runner
from ..testing.outcomes import Report
from .diagnostics import Reporter
from .inputs import as_written, sources
from .outputs import Production
from .shared_options import Request

SILENCE = 3600.0                   # seconds after which a process that tests a file is given up
CRASHED = 1                        # the exit code that a file gets whose process was lost
Message = dict[str, Any]


@dataclass
class FileResult:
    """What came of one file. `cases`: the records of its cases; `diagnostics`: what was said of it; `exit_code`: of
    the error that ended it."""

    file: str
    cases: list[Message] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    names: list[str] = field(default_factory=list)             # of its operators and cases
    unmatched: list[Diagnostic] = field(default_factory=list)  # why nothing in it was selected
    exit_code: int = 0
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.exit_code in (0, NothingMatched.exit_code) and all(case["passed"] for case in self.cases)


class Recorder(Reporter):
    """Keeps diagnostics for the command to show."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Diagnostic] = []

    def show(self, diagnostics: Any) -> None:
        self.heard += diagnostics


def run(request: Request, files: Sequence[str], tags: tuple[str, ...], jobs: int,
        progress: Callable[[int, int, str], None], heard: Callable[[FileResult, Message], None]) -> list[FileResult]:
    """Test every file, so many at a time. `heard(result, message)` is called for each message, file by file in the
    order of `files`."""
    results = [FileResult(name) for name in files]
    waiting: list[list[Message] | None] = [[] for _ in files]      # None: the file is done
    current = 0
    kept: dict[int, list[Message]] = {}

    def deliver(number: int, message: Message) -> None:
        _note(results[number], message)
        heard(results[number], message)

    for number, message in _messages(request, files, tags, jobs):
        progress(current, len(files), files[current])
        if message is None:
            waiting[number] = None
        elif number == current:
            deliver(number, message)
        else:
            kept.setdefault(number, []).append(message)
        while current < len(files) - 1 and waiting[current] is None:
            current += 1
            for later in kept.pop(current, []):
                deliver(current, later)
    return results


def _messages(request: Request, files: Sequence[str], tags: tuple[str, ...],
              jobs: int) -> Iterator[tuple[int, Message | None]]:
    """(number of the file, message), and (number, None) at its end."""
    if jobs == 1 or len(files) == 1:
        for number, name in enumerate(files):
            for message in _tested(request, name, tags):
                yield number, message
            yield number, None
        return
    works = [partial(_sent, request, name, tags) for name in files]
    for number, heard in pool.run_all(works, jobs, SILENCE):
        if isinstance(heard, pool.Lost):
            lost = Diagnostic("E715", f"{files[number]}: the process that tested it was lost: {heard.why}")
            yield number, {"diagnostics": [isolate.diagnostic_to_json(lost)], "exit_code": CRASHED}
            yield number, None
        else:
            yield number, heard


def _sent(request: Request, name: str, tags: tuple[str, ...]) -> Iterator[pool.Message]:
    for message in _tested(request, name, tags):
        yield message, {}


def _tested(request: Request, name: str, tags: tuple[str, ...]) -> Iterator[Message]:
    """Test one file: its names, each case when it is known, and what was said. --only selects cases here, so every
    composite is compiled."""
    recorder, start = Recorder(), time.monotonic()
    single = replace(request, inputs=(name,), reporter=recorder, options=replace(request.options, only=()))
    code = 0
    try:
        production = Production(single, sources(single))
        as_written(production.programs, "test")
        yield {"names": [n for p in production.programs for n in (p.name, *[c.name for c in p.all(Case)])]}
        built = production.loadable()
        for report in runner.reports_of(built, single.options, tags, request.options.only):
            now = time.monotonic()
            yield {"case": _record(report, now - start), "lines": report.lines()}
            recorder.show(report.diagnostics)
            start = now
    except NothingMatched as problem:                          # for the command to judge when all files are known
        yield {"diagnostics": [isolate.diagnostic_to_json(d) for d in recorder.heard], "exit_code": problem.exit_code,
               "unmatched": [isolate.diagnostic_to_json(d) for d in problem.diagnostics]}
        return
    except CatenError as problem:
        recorder.show(problem.diagnostics)
        code = problem.exit_code
    yield {"diagnostics": [isolate.diagnostic_to_json(d) for d in recorder.heard], "exit_code": code}


def _record(report: Report, seconds: float) -> Message:
    return report.as_json() | {"passed": report.passed, "wall_seconds": round(seconds, 3)}


def _note(result: FileResult, message: Message) -> None:
    result.names += message.get("names", [])
    if "case" in message:
        result.cases.append(message["case"])
        result.seconds += message["case"]["wall_seconds"]
    result.diagnostics += [isolate.diagnostic_from_json(d) for d in message.get("diagnostics", [])]
    result.unmatched += [isolate.diagnostic_from_json(d) for d in message.get("unmatched", [])]
    result.exit_code = message.get("exit_code", result.exit_code)

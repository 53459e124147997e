"""Test several spec files: each file is a library of its own, and is tested even if another has errors."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from ..compiler import Warn
from ..conformance import pool
from ..core.program import Case
from ..errors import CatenError, Diagnostic, NothingMatched
from ..options import Options
from ..testing import gradient_check, isolate, runner
from ..testing.case_selection import is_known, selected, unknown_name
from .spec_library import SpecLibrary
from .test_results import CaseResult, FileResult, TestResults, case_from_json, case_result

SILENCE = 3600.0                   # seconds after which a process that tests a file is given up
CRASHED = 1                        # the exit code that a file gets whose process was lost
Message = dict[str, Any]
# The library of the file with this number. CatenError if the file has errors.
Opener = Callable[[int, Options, Warn], SpecLibrary]


@dataclass
class FileRun:
    """What is known of one file so far. `names`: of its operators and cases; `unmatched`: why nothing in it was
    selected."""

    file: str
    cases: list[CaseResult] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    unmatched: list[Diagnostic] = field(default_factory=list)
    exit_code: int = 0

    @property
    def result(self) -> FileResult:
        """The record of the file."""
        return FileResult(self.file, tuple(self.cases), tuple(self.diagnostics), self.exit_code)

    def add(self, message: Message) -> None:
        """Add the content of a message."""
        self.names += message.get("names", [])
        if "case" in message:
            self.cases.append(case_from_json(message["case"]))
        self.diagnostics += [isolate.diagnostic_from_json(d) for d in message.get("diagnostics", [])]
        self.unmatched += [isolate.diagnostic_from_json(d) for d in message.get("unmatched", [])]
        self.exit_code = message.get("exit_code", self.exit_code)


def tested(opened: Opener, files: Sequence[str], options: Options, tags: tuple[str, ...] = (), jobs: int = 1,
           progress: Callable[[int, int, str], None] = lambda done, of, name: None,
           heard: Callable[[FileRun, Message], None] = lambda run, message: None, grad: bool = False) -> TestResults:
    """Test every file, `jobs` at a time. `heard(run, message)` is called for each message, file by file in the order of
    `files`. `grad`: test the gradients of operators instead of their results. NothingMatched if `options.only` and
    `tags` select nothing."""
    runs = [FileRun(name) for name in files]
    waiting: list[list[Message] | None] = [[] for _ in files]      # None: the file is done
    current = 0
    kept: dict[int, list[Message]] = {}

    def deliver(number: int, message: Message) -> None:
        runs[number].add(message)
        heard(runs[number], message)

    for number, message in _messages(opened, files, options, tags, jobs, grad):
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
    _check_selection(runs, options.only)
    return TestResults(tuple([run.result for run in runs]))


def _check_selection(runs: Sequence[FileRun], only: Sequence[str]) -> None:
    """NothingMatched if --only and --tag select nothing in any file, or no file has a name given by --only."""
    if any(run.exit_code not in (0, NothingMatched.exit_code) for run in runs):
        return                                            # the names in a file with errors are unknown
    known = [name for run in runs for name in run.names]
    if unknown := [name for name in only if not is_known(name, known)]:
        raise unknown_name(unknown[0], known)
    if not any(run.cases for run in runs):
        raise NothingMatched(*runs[0].unmatched)


def _messages(opened: Opener, files: Sequence[str], options: Options, tags: tuple[str, ...],
              jobs: int, grad: bool) -> Iterator[tuple[int, Message | None]]:
    """(number of the file, message), and (number, None) at its end."""
    if jobs == 1 or len(files) == 1:
        for number in range(len(files)):
            for message in _tested(opened, number, options, tags, grad):
                yield number, message
            yield number, None
        return
    works = [partial(_sent, opened, number, options, tags, grad) for number in range(len(files))]
    for number, heard in pool.run_all(works, jobs, SILENCE):
        if isinstance(heard, pool.Lost):
            lost = Diagnostic("E715", f"{files[number]}: the process that tested it was lost: {heard.why}")
            yield number, {"diagnostics": [isolate.diagnostic_to_json(lost)], "exit_code": CRASHED}
            yield number, None
        else:
            yield number, heard


def _sent(opened: Opener, number: int, options: Options, tags: tuple[str, ...],
          grad: bool) -> Iterator[pool.Message]:
    for message in _tested(opened, number, options, tags, grad):
        yield message, {}


def _tested(opened: Opener, number: int, options: Options, tags: tuple[str, ...], grad: bool) -> Iterator[Message]:
    """Test one file: its names, each case when it is known, and its diagnostics. --only selects operators and cases
    here, when all names are known."""
    said: list[Diagnostic] = []
    start = time.monotonic()
    every = replace(options, only=(), case_instances=True)
    code = 0
    try:
        library = opened(number, every, said.append)
        library.check_as_written("test")
        yield {"names": [n for p in library.programs for n in (p.name, *[c.name for c in p.all(Case)])]}
        library = library.of(selected(library.programs, tags, options.only))
        for report in gradient_check.reports_of(library.compilation.ops, every, tags, options.only) if grad else (
                runner.reports_of(library.loadable(), every, tags, options.only)):
            now = time.monotonic()
            yield {"case": asdict(case_result(report, now - start)), "lines": report.lines()}
            said += report.diagnostics
            start = now
    except NothingMatched as problem:                          # to be judged when all files are known
        yield {"diagnostics": [isolate.diagnostic_to_json(d) for d in said], "exit_code": problem.exit_code,
               "unmatched": [isolate.diagnostic_to_json(d) for d in problem.diagnostics]}
        return
    except CatenError as problem:
        said += problem.diagnostics
        code = problem.exit_code
    yield {"diagnostics": [isolate.diagnostic_to_json(d) for d in said], "exit_code": code}

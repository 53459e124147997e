"""The results of the tests in specs: records, as JSON and as JUnit XML. docs/testing.md describes the fields."""
from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, ClassVar

from ..errors import Diagnostic, NothingMatched
from ..frozen import frozen
from ..testing.outcomes import Report
from ..version import __version__

BROKEN = ("crash", "timeout", "error")             # statuses that are errors in JUnit; the others are failures


@frozen
class OutputResult:
    """One output of a case. `ratio`: the largest error as a fraction of the rounding bound; `worst`: the index of that
    element; `loose`: the number of its `elements` that may have any value, because a rounding error may change a
    comparison on which they depend (docs/verdicts.md); `compared`: the number of elements that were compared."""

    name: str
    passed: bool
    ratio: float
    worst: tuple[int, ...]
    loose: int
    elements: int
    compared: int


@frozen
class CaseResult:
    """One case. `case`: its name; `arguments`: sizes and scalars; `status`: ok, wrong, vacuous, failed, crash, timeout
    or error; `reference`: what it was compared with; `seconds`: None, because tests measure no kernel;
    `wall_seconds`: how long the test took."""

    op: str
    case: str
    arguments: dict[str, int | float]
    status: str
    reference: str
    seconds: float | None
    flops: int
    bytes: int
    outputs: tuple[OutputResult, ...]
    note: str
    passed: bool
    wall_seconds: float

    def as_json(self) -> dict[str, Any]:
        """The case as JSON. Infinities and NaN, which JSON does not have, are null."""
        json: dict[str, Any] = _finite(asdict(self))
        return json


@frozen
class FileResult:
    """The cases of one file, or of one text. `exit_code`: 0 unless the file could not be tested; `diagnostics`: its
    errors and warnings."""

    file: str
    cases: tuple[CaseResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    exit_code: int = 0

    @property
    def passed(self) -> bool:
        """True if every case passed. A file in which no case was selected passes."""
        return self.exit_code in (0, NothingMatched.exit_code) and all(case.passed for case in self.cases)


@frozen
class TestResults:
    """The results of several files, in the order in which they were given."""

    __test__: ClassVar[bool] = False               # pytest collects classes of this name
    files: tuple[FileResult, ...]

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """The cases of all files."""
        return tuple([case for file in self.files for case in file.cases])

    @property
    def passed(self) -> bool:
        """True if every file passed."""
        return all(file.passed for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """The object that `caten test --json` writes."""
        files = [{"file": f.file, "passed": f.passed, "exit_code": f.exit_code,
                  "diagnostics": [d.as_json() for d in f.diagnostics],
                  "cases": [c.as_json() for c in f.cases]} for f in self.files]
        return {"schema_version": 1, "caten": __version__, "cases": len(self.cases),
                "passed": sum([c.passed for c in self.cases]), "files": files}


def case_result(report: Report, wall_seconds: float) -> CaseResult:
    """The record of a test run."""
    json = report.as_json()
    outputs = tuple([OutputResult(**(output | {"worst": tuple(output["worst"])})) for output in json.pop("outputs")])
    return CaseResult(**json, outputs=outputs, passed=report.passed, wall_seconds=round(wall_seconds, 3))


def case_from_json(json: dict[str, Any]) -> CaseResult:
    """The case that `dataclasses.asdict` wrote."""
    outputs = tuple([OutputResult(**(output | {"worst": tuple(output["worst"])})) for output in json["outputs"]])
    return CaseResult(**(json | {"outputs": outputs}))


def json_text(results: TestResults) -> str:
    """The results as JSON text."""
    return json.dumps(results.as_json(), indent=1, ensure_ascii=False) + "\n"


def _finite(value: object) -> Any:
    """Replace infinities and NaN by null, and tuples by lists."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value

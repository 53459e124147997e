"""The results of `caten test` as JSON and JUnit XML. docs/testing.md describes the fields."""
from __future__ import annotations

import json
from collections.abc import Sequence

from .. import __version__
from ..testing.junit_xml import JunitCase, junit_text
from .diagnostic_formats import as_json
from .spec_test_runs import FileResult, Message

BROKEN = ("crash", "timeout", "error")             # statuses that are errors in JUnit; the others are failures


def json_record(results: Sequence[FileResult]) -> str:
    """The results as JSON."""
    cases = [case for result in results for case in result.cases]
    files = [{"file": r.file, "passed": r.passed, "exit_code": r.exit_code,
              "diagnostics": [as_json(d) for d in r.diagnostics],
              "cases": r.cases} for r in results]
    record = {"schema_version": 1, "caten": __version__, "cases": len(cases),
              "passed": sum([c["passed"] for c in cases]), "files": files}
    return json.dumps(_finite(record), indent=1, ensure_ascii=False) + "\n"


def _finite(value: object) -> object:
    """Replace infinities and NaN by null: JSON does not have them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def junit_record(results: Sequence[FileResult]) -> str:
    """The results as JUnit XML, one suite per file. A file that cannot be tested has one case, "build", with its
    diagnostics."""
    return junit_text("caten test", [(r.file, _cases(r)) for r in results])


def _cases(result: FileResult) -> list[JunitCase]:
    found = [_case(c) for c in result.cases]
    if result.exit_code and not (result.passed and result.cases):
        skipped = result.passed                                  # nothing in it was selected
        text = "\n".join([str(d) for d in result.diagnostics])
        message = result.diagnostics[0].message if result.diagnostics else ""
        found.append(JunitCase(result.file, "build", "skipped" if skipped else "error", f"exit code {result.exit_code}",
                               message, text))
    return found


def _case(case: Message) -> JunitCase:
    name, seconds = case["case"] or "--test", case["wall_seconds"]
    if case["passed"]:
        return JunitCase(case["op"], name, seconds=seconds)
    wrong = [f"{o['name']}: error {o['ratio']:.3g} times the tolerance, at {o['worst']}" for o in case["outputs"]
             if not o["passed"]]
    return JunitCase(case["op"], name, "error" if case["status"] in BROKEN else "failure", case["status"],
                     case["note"] or "; ".join(wrong) or case["status"], "\n".join(wrong), seconds)

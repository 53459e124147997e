"""The results of the tests in specs as JUnit XML."""
from __future__ import annotations

from ..testing.junit_xml import JunitCase, junit_text
from .test_results import BROKEN, CaseResult, FileResult, TestResults


def junit_record(results: TestResults) -> str:
    """The results as JUnit XML, one suite per file. A file that cannot be tested has one case, "build", with its
    diagnostics."""
    return junit_text("caten test", [(file.file, _cases(file)) for file in results.files])


def _cases(result: FileResult) -> list[JunitCase]:
    found = [_case(c) for c in result.cases]
    if result.exit_code and not (result.passed and result.cases):
        skipped = result.passed                                  # nothing in it was selected
        text = "\n".join([str(d) for d in result.diagnostics])
        message = result.diagnostics[0].message if result.diagnostics else ""
        found.append(JunitCase(result.file, "build", "skipped" if skipped else "error", f"exit code {result.exit_code}",
                               message, text))
    return found


def _case(case: CaseResult) -> JunitCase:
    name = case.case or "--test"
    if case.passed:
        return JunitCase(case.op, name, seconds=case.wall_seconds)
    wrong = [f"{o.name}: error {o.ratio:.3g} times the tolerance, at {list(o.worst)}" for o in case.outputs
             if not o.passed]
    return JunitCase(case.op, name, "error" if case.status in BROKEN else "failure", case.status,
                     case.note or "; ".join(wrong) or case.status, "\n".join(wrong), case.wall_seconds)

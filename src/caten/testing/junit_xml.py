"""JUnit XML: suites of test cases as continuous integration services read them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from ..frozen import frozen

RESULTS = {"failure": Failure, "error": Error, "skipped": Skipped}


@frozen
class JunitCase:
    """One case. `result`: "" where it passed, else failure, error or skipped; `kind`, `message` and `text` say why.
    `seconds`: of wall time."""

    classname: str
    name: str
    result: str = ""
    kind: str = ""
    message: str = ""
    text: str = ""
    seconds: float | None = None


def junit_text(name: str, suites: Iterable[tuple[str, Sequence[JunitCase]]]) -> str:
    """The text of a file with these suites, each a name and its cases."""
    xml = JUnitXml(_clean(name))
    for title, cases in suites:
        suite = TestSuite(_clean(title))
        suite.add_testcases([_case(c) for c in cases])
        xml.add_testsuite(suite)
    xml.update_statistics()             # type: ignore[no-untyped-call]   # junitparser annotates only some functions
    text: bytes = xml.tostring()        # type: ignore[no-untyped-call]   # as above
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text.decode()}\n'


def _case(case: JunitCase) -> TestCase:
    found = TestCase(_clean(case.name), _clean(case.classname), case.seconds)
    if case.result:
        result = RESULTS[case.result](_clean(case.message), _clean(case.kind))
        result.text = _clean(case.text)
        found.result = [result]
    return found


def _clean(text: str) -> str:
    """Without the control characters that XML forbids."""
    return text if text.isprintable() else "".join([c if c.isprintable() or c == "\n" else " " for c in text])

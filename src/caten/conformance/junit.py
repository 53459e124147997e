"""junit.xml: the record of a run for continuous integration."""
from __future__ import annotations

from ..testing.junit_xml import JunitCase, junit_text
from .markdown_report import KINDS, LISTS, command_of
from .record import Record, Row
from .verdicts import BAD


def junit(found: Record) -> str:
    """One suite for each kind of case."""
    suites = [(kind, [_case(found, r) for r in found.of_kind(kind)]) for kind in (*KINDS, *LISTS)]
    return junit_text(found.runtime, [(kind, cases) for kind, cases in suites if cases])


def _case(found: Record, row: Row) -> JunitCase:
    classname, name = f"{row.kind}.{row.row}", f"{row.column}/{row.name}"
    status, note = row.verdict.status, row.verdict.note
    if status in BAD:
        return JunitCase(classname, name, "failure", status, note, command_of(found, row))
    if status in ("UNSUPPORTED", "XFAIL", "NOT-RUN"):
        return JunitCase(classname, name, "skipped", message=f"{status}: {note}")
    return JunitCase(classname, name)

"""junit.xml: the record of a run for continuous integration."""
from __future__ import annotations

from xml.sax.saxutils import quoteattr

from .record import Record, Row
from .report import KINDS, command_of
from .verdicts import BAD


def junit(found: Record) -> str:
    """One suite for each kind of case."""
    suites = "".join([_suite(found, kind) for kind in KINDS if found.of_kind(kind)])
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(found.runtime)}>\n{suites}</testsuites>\n'


def _suite(found: Record, kind: str) -> str:
    rows = found.of_kind(kind)
    bad = sum([r.verdict.status in BAD for r in rows])
    idle = sum([r.verdict.status in ("UNSUPPORTED", "XFAIL", "NOT-RUN") for r in rows])
    cases = "".join([_case(found, r) for r in rows])
    return f'  <testsuite name="{kind}" tests="{len(rows)}" failures="{bad}" errors="0" skipped="{idle}">\n{cases}  </testsuite>\n'


def _case(found: Record, row: Row) -> str:
    head = f"    <testcase classname={_attribute(f'{row.kind}.{row.row}')} name={_attribute(f'{row.column}/{row.name}')}"
    status, note = row.verdict.status, row.verdict.note
    if status in BAD:
        failure = f"<failure type={_attribute(status)} message={_attribute(note)}>{_text(command_of(found, row))}</failure>"
        return f"{head}>\n      {failure}\n    </testcase>\n"
    if status in ("UNSUPPORTED", "XFAIL", "NOT-RUN"):
        return f"{head}><skipped message={_attribute(f'{status}: {note}')}/></testcase>\n"
    return f"{head}/>\n"


def _attribute(text: str) -> str:
    return quoteattr("".join([c if c.isprintable() else " " for c in text]))


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

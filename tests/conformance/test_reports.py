"""What a person reads of a runtime that is wrong: the failure, the command that shows it again, what became worse."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from caten.cli.boundary import guarded
from caten.conformance import markdown_report, record, record_comparison
from caten.conformance.record import Record, Row
from caten.conformance.verdicts import BAD, STATUSES, Verdict
from caten.errors import CatenError

ROOT = Path(__file__).resolve().parents[2]
WRONG = str(Path(__file__).parent / "wrong_runtime.py")
CASE = "operator/floor/f32/ordinary"
COMMAND = ["test-runtime", "--runtime", WRONG, "-O0", "--filter", "operator/floor/f32"]


def some(*statuses: str, runtime: str = "mine") -> Record:
    """A record of one case for each status."""
    rows = [Row("operator", "add", "f32", f"case{n}", Verdict(s, "why" if s != "PASS" else "", 0.5)) for n, s in enumerate(statuses)]
    return Record({"runtime": runtime, "again": f"caten test-runtime --runtime {runtime}"}, tuple(rows))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_failure_its_command_and_what_became_worse(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded(COMMAND) == 0
    (folder / "reports.json").rename("old.json")
    capfd.readouterr()
    assert guarded([*COMMAND, "--config", "FAULT=floor cuts off,OPT=0", "--compare", "old.json"]) == 1
    out = capfd.readouterr().out
    assert f"FAIL {CASE}: (floor -" in out
    assert f"worse: {CASE}: was PASS, is FAIL" in out
    text = (folder / "Reports.md").read_text()
    shown = re.search(rf"### {CASE}(?: and \d+ more)?: FAIL\n\n(.*)\n\n(?:- .*\n\n)?```sh\n(.*)\n```", text)
    assert shown
    failures = [c for c in ElementTree.parse("junit.xml").iter("testcase") if c.find("failure") is not None]
    assert f"{CASE.split('/')[2]}/ordinary" in [c.attrib["name"] for c in failures]

    command = shown[2].replace("caten test-runtime", f"{sys.executable} -m caten test-runtime")
    again = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    assert again.returncode == 1
    assert again.stdout.split("\n")[0] == f"FAIL {CASE}: {shown[1]}"
    assert (folder / "Reports.md").read_text() == text


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_explained_counted_and_in_its_cell(status: str) -> None:
    text = markdown_report.markdown(some("PASS", status, status))
    assert f"| {status} | {3 if status == 'PASS' else 2} | {STATUSES[status]} |" in text
    assert ("| `add` | ok |" in text) == (status == "PASS")
    assert (f"| `add` | {status} 2/3 |" in text) == (status != "PASS")
    assert ("## Failures\n\nNone." in text) == (status not in BAD)


def test_the_gap_is_printed_beside_the_score() -> None:
    assert markdown_report.score(some("PASS", "PASS", "NOT-RUN", "QUALITY")) == "2 of 4 cases pass, 75.0 % within the bounds\ngap: 1 QUALITY, 1 NOT-RUN"
    assert "**1 of 3 cases say nothing about the runtime.**" in markdown_report.markdown(some("PASS", "PASS", "NOT-RUN"))


def test_almost_all_is_not_all() -> None:
    assert "99.9 %" in markdown_report.score(some(*["PASS"] * 4999, "FAIL"))


@pytest.mark.parametrize(("was", "now", "worse"), [
    ("PASS", "FAIL", True), ("PASS", "QUALITY", True), ("PASS", "NOT-RUN", True), ("PASS", "UNSUPPORTED", True), ("NOT-RUN", "CRASH", True), ("QUALITY", "XFAIL", True),
    ("FAIL", "PASS", False), ("FAIL", "CRASH", False), ("NOT-RUN", "PASS", False), ("QUALITY", "PASS", False), ("UNSUPPORTED", "NOT-RUN", False),
])
def test_what_is_worse(was: str, now: str, worse: bool) -> None:
    assert bool(record_comparison.regressions(some(was), some(now))) == worse


def test_runtimes_side_by_side() -> None:
    text = record_comparison.merged([some("PASS", runtime="one"), some("FAIL", runtime="two")])
    assert "|  | one | two |" in text
    assert "| `add` | ok | FAIL 1/1 |" in text


def test_failures_with_one_cause_are_one_section() -> None:
    notes = [("add", "f32", "Y[3] is 1.5, expected 2.0"), ("add", "f64", "Y[0] is nan, expected -2e-7"), ("add", "f64", "Y[1] is 0, expected 2"),
             ("sub", "f32", "Y[3] is 1.5, expected 2.0"), ("sub", "f32", "the call failed: no")]
    rows = [Row("operator", row, column, f"case{n}", Verdict("FAIL", note)) for n, (row, column, note) in enumerate(notes)]
    text = markdown_report.markdown(Record({"runtime": "m", "again": "caten"}, tuple(rows)))
    assert re.findall(r"### .*", text) == ["### operator/add/f32/case0 and 3 more: FAIL", "### operator/sub/f32/case4: FAIL"]
    assert "- `operator/add`: f32, f64 (2)\n- `operator/sub`: f32\n" in text
    assert text.count("```sh") == 2


def test_operators_that_the_runtime_lacks_are_marked(folder: Path) -> None:
    assert guarded(["test-runtime", "--runtime", "gcc", "-O0", "--filter", "operator/add/f32/ordinary", "--filter", "operator/sig*/f32/ordinary", "-o", "."]) == 0
    text = (folder / "Reports.md").read_text()
    assert "| operator | made | i8 |" in text
    assert "| `add` | native |" in text
    assert "| `sigmoid` | decomposed |" in text
    read = record.read("reports.json")
    assert read.decomposed is not None
    assert "sigmoid" in read.decomposed
    assert markdown_report.markdown(read) == text


def test_samples_are_a_list() -> None:
    rows = [Row("sample", "Gemm", "gemm", "small", Verdict("PASS")), Row("sample", "Sin", "sin", "small", Verdict("FAIL", "no"))]
    text = markdown_report.section(Record({"runtime": "m", "again": "caten"}, tuple(rows)), "sample")
    assert text.splitlines()[4:] == ["| operator | sample | result |", "| --- | --- | --- |", "| `Gemm` | `gemm` | ok |", "| `Sin` | `sin` | FAIL 1/1 |"]


def test_text_of_a_failure_cannot_break_the_page() -> None:
    row = Row("operator", "add", "f32", "x", Verdict("FAIL", "a | b\n<script>"))
    text = markdown_report.markdown(Record({"runtime": "m", "again": "caten"}, (row,)))
    assert "<script>" not in text


HEAD = '{"schema_version": 1, "provenance": '


@pytest.mark.parametrize("text", ["null", "[" * 100_000, HEAD + '{}, "cells": []}', HEAD + '{"runtime": 3}, "cells": []}', HEAD + '{"runtime": "m"}, "cells": 5}',
                                  HEAD + '{"runtime": "m"}, "cells": [{"kind": "feature", "row": "r", "column": "c", "cases": []}]}'], ids=range(6))
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(CatenError, match="E850"):
        record.read(str(tmp_path / "r.json"))

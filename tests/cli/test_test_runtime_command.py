"""`caten test-runtime` and `caten report`, as typed."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from caten.conformance import markdown_report, record, suite
from caten.conformance.cases import Case
from caten.conformance.samples import sample_cases

ROOT = Path(__file__).resolve().parents[2]
FEW = ("--filter", "operator/add/f32", "--filter", "rejection")


@cache
def samples_once() -> tuple[Case, ...]:
    """The cases of the samples, which are read once."""
    return tuple(sample_cases())


@pytest.fixture(autouse=True)
def fewer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite is 8,500 cases, which every report lists: here it is one in eight of them and those that are run, but for tests of `whole`."""
    whole = suite.all_cases
    monkeypatch.setattr(suite, "sample_cases", samples_once)
    if "whole" not in request.fixturenames:
        monkeypatch.setattr(suite, "all_cases", lambda runtime, library=False: [
            c for n, c in enumerate(whole(runtime, library)) if n % 8 == 0 or c.kind == "rejection" or c.id.startswith(("operator/add/f32", "operator/eq/f32", "library/relu/"))])


@pytest.fixture
def whole() -> None:
    """All cases there are."""


@pytest.fixture
def tested(caten: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """`caten test-runtime` with the interpreter as the runtime, in an empty folder."""
    return lambda *words: caten("test-runtime", "--runtime", "numpy", *words)


def statuses(path: str = "reports.json") -> dict[str, str]:
    return {r.id: r.verdict.status for r in record.read(path).rows}


def test_it_writes_three_reports_that_agree(tested: Any, whole: None) -> None:
    result = tested(*FEW)
    assert result.code == 0, result.err
    found = statuses()
    ran = {i: status for i, status in found.items() if status != "NOT-RUN"}
    assert set(ran.values()) == {"PASS"}
    assert {i.split("/")[0] for i in ran} == {"operator", "rejection"}
    assert f"numpy: {len(ran)} of {len(found)} cases pass" in result.out
    assert f"{len(ran)} of {len(found)} cases pass" in Path("Reports.md").read_text()
    assert sum(int(s.attrib["tests"]) for s in ElementTree.parse("junit.xml").getroot()) == len(found)


def test_the_record_fits_its_schema_and_reads_back_to_the_same_bytes(tested: Any) -> None:
    tested(*FEW)
    text = Path("reports.json").read_text()
    jsonschema.validate(json.loads(text), record.schema())
    assert record.to_json(record.read("reports.json")) == text


def test_the_library_is_tested_where_it_is_asked_for(tested: Any) -> None:
    result = tested("--library", "--filter", "library/relu", "-O", "0")
    assert result.code == 0, result.err
    assert {i: status for i, status in statuses().items() if status != "NOT-RUN"} == {"library/relu/activations/relu 1": "PASS"}
    assert "| `relu` | `activations` | ok |" in Path("Reports.md").read_text()
    assert any("--library" in line for line in Path("Reports.md").read_text().splitlines())
    tested(*FEW)
    assert not any(i.startswith("library/") for i in statuses())


def test_reports_are_the_same_from_run_to_run(tested: Any) -> None:
    os.mkdir("b")
    tested(*FEW)
    tested(*FEW, "-o", "b", "--jobs", "1", "--no-cache", "--timeout", "40")
    for name in ("reports.json", "Reports.md", "junit.xml"):
        assert Path(name).read_text() == Path("b", name).read_text()


def test_a_date_stands_in_the_provenance_where_it_is_asked_for(tested: Any) -> None:
    tested(*FEW, "--date")
    dated = Path("Reports.md").read_text()
    tested(*FEW)
    plain = Path("Reports.md").read_text()
    assert ("| date |" in dated, "| date |" in plain) == (True, False)
    assert markdown_report.below(dated) == markdown_report.below(plain) != ""


def test_the_provenance_holds_the_command_that_runs_a_case_again(tested: Any) -> None:
    tested("--filter", "operator/add/f32/nan", "--seed", "3", "--config", "ORDER=reverse", "-O0")
    provenance = record.read("reports.json").provenance
    assert provenance["again"] == "caten test-runtime --runtime numpy --config ORDER=reverse -O0 --seed 3"
    assert provenance["command"] == provenance["again"] + " --filter operator/add/f32/nan"


def compared(tested: Any, was: str) -> Any:
    """A case that passes, compared with a record in which it had this status."""
    tested("--filter", "operator/eq/f32/nan")
    Path("old.json").write_text(Path("reports.json").read_text().replace('"nan": "PASS"', f'"nan": "{was}"'))
    return tested("--filter", "operator/eq/f32/nan", "--compare", "old.json")


@pytest.mark.slice(3)
@pytest.mark.parametrize("was", ["PASS", "FAIL", "QUALITY"])
def test_what_did_not_become_worse_is_no_regression(tested: Any, was: str) -> None:
    result = compared(tested, was)
    assert (result.code, "worse" in result.out) == (0, False)


def test_a_comparison_with_nothing_in_common_is_none(tested: Any) -> None:
    tested("--filter", "operator/eq/f32/nan")
    Path("reports.json").rename("old.json")
    result = tested("--filter", "operator/add/f32/nan", "--compare", "old.json")
    assert (result.code, "has none of the 1 cases" in result.err) == (5, True), result.err


def test_several_runtimes_in_one_table(tested: Any, caten: Any) -> None:
    tested(*FEW)
    Path("other.json").write_text(Path("reports.json").read_text().replace('"runtime": "numpy"', '"runtime": "other"'))
    result = caten("report", "merge", "reports.json", "other.json")
    assert "|  | numpy | other |" in result.out
    assert caten("report", "merge", "reports.json", "other.json", "-o", "both.md").code == 0
    assert Path("both.md").read_text() == result.out


@pytest.mark.parametrize(("words", "code", "says"), [
    (("test-runtime", "--filter", "no/such/case"), 5, "no case matches"),
    (("test-runtime", "--runtime", "nosuch"), 2, "there is no runtime called 'nosuch'"),
    (("test-runtime", "--config", "NOSUCH=1"), 2, "NOSUCH"),
    (("test-runtime", "-o", "nowhere"), 1, "there is no such folder"),
    (("test-runtime", "--compare", "nowhere.json"), 2, "E850"),
    (("report", "merge", "nowhere.json"), 2, "E850"),
    (("test-runtime", "--timeout", "0"), 2, "--timeout"),
])
def test_what_cannot_be_done_is_said(caten: Any, words: tuple[str, ...], code: int, says: str) -> None:
    result = caten(*words)
    assert result.code == code
    assert says in result.err


def test_a_compiler_that_is_missing_is_exit_3_with_a_report(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    result = caten("test-runtime", *FEW)
    assert result.code == 3
    assert "E610" in result.err
    assert set(statuses().values()) == {"NOT-RUN", "PASS"}                        # options are refused without a compiler, too


@pytest.mark.parametrize(("statement", "says"), [("raise ValueError('boo')", "ValueError: boo"), ("__import__('os')._exit(0)", "died: exit code 0")])
def test_a_runtime_that_fails_when_it_is_asked_is_exit_3(caten: Any, folder: Path, statement: str, says: str) -> None:
    Path("mine.py").write_text(f"from caten.runtime.discover import base\nclass Mine(base('numpy')):\n    name = 'mine'\n    def available(self): {statement}\n")
    result = caten("test-runtime", "--runtime", "./mine.py", *FEW)
    assert result.code == 3
    assert says in result.err


def test_ctrl_c_ends_it_with_its_processes(folder: Path) -> None:
    running = subprocess.Popen([sys.executable, "-m", "caten", "test-runtime", "--runtime", "numpy"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, start_new_session=True)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    until = time.monotonic() + 30
    while not (started := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 130
    assert started
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert not list(folder.glob("*eports*"))

"""Diagnostics for other programs."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caten.cli.diagnostic_formats import github_text, sarif_text
from caten.cli.diagnostics import Reporter
from caten.errors import Diagnostic, Place, UsageError

UNKNOWN = Diagnostic("E221", "unknown name 'q'", Place("specs/a b.toml", 8, 51, "  (aref q)\n"), "did you mean 'p'?",
                     (("declared here", Place("specs/c.toml", 3, 1)), ("a remark", None)))
WARNING = Diagnostic("E301", "100% of a,b:c\nis odd", None, None, (), "warning")


def test_json_is_one_list_with_every_diagnostic(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(format="json")
    assert reporter.caught(UsageError(Diagnostic("E1", "a", Place("f", 2, 3, "t"), "h", (("n", Place("g", 1, 1)),)), Diagnostic("E2", "b"))) == 2
    reporter.finish(2)
    shown = json.loads(capsys.readouterr().err)
    assert [d["code"] for d in shown] == ["E1", "E2"]
    assert shown[0] == {"severity": "error", "code": "E1", "message": "a", "file": "f", "line": 2, "column": 3, "hint": "h",
                        "notes": [{"message": "n", "file": "g", "line": 1, "column": 1}]}
    assert shown[1]["file"] is None
    assert Diagnostic("E2", "b").as_json()["notes"] == []


def run_of(*diagnostics: Diagnostic, exit_code: int = 1) -> Any:
    log = json.loads(sarif_text(diagnostics, exit_code))
    assert log["version"] == "2.1.0"
    return log["runs"][0]


def test_sarif_results_point_at_rules_and_places() -> None:
    run = run_of(WARNING, UNKNOWN, UNKNOWN)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E221", "E301"]
    assert rules[0]["help"]["markdown"].startswith("# ")
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == [r["ruleId"] for r in run["results"]] == ["E301", "E221", "E221"]
    assert run["results"][0]["level"] == "warning"
    assert "locations" not in run["results"][0]
    result = run["results"][1]
    assert result["message"]["text"] == "unknown name 'q'\na remark\ndid you mean 'p'?"
    assert result["locations"] == [{"physicalLocation": {
        "artifactLocation": {"uri": "specs/a%20b.toml"}, "region": {"startLine": 8, "startColumn": 51, "snippet": {"text": "  (aref q)"}}}}]
    assert result["relatedLocations"][0]["message"]["text"] == "declared here"
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "specs/c.toml"


def test_sarif_says_how_the_run_ended() -> None:
    assert run_of(exit_code=0) == {"tool": run_of()["tool"], "columnKind": "unicodeCodePoints", "results": [],
                                   "invocations": [{"executionSuccessful": True, "exitCode": 0}]}


def test_sarif_names_absolute_files_by_their_url() -> None:
    assert run_of(Diagnostic("E301", "m", Place("/x/ü.toml", 1, 1)))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "file:///x/%C3%BC.toml"}


def test_github_annotations_are_one_line_each_with_everything_encoded() -> None:
    assert github_text([UNKNOWN, WARNING], 1).split("\n") == [
        "::error file=specs/a b.toml,line=8,col=51,title=caten E221::unknown name 'q'%0Anote: declared here%0Anote: a remark%0Ahint: did you mean 'p'?",
        "::warning title=caten E301::100%25 of a,b:c%0Ais odd"]
    assert github_text([Diagnostic("E1", "m", Place("a,b:c%.toml", 1, 2))], 1) == "::error file=a%2Cb%3Ac%25.toml,line=1,col=2,title=caten E1::m"


@pytest.mark.parametrize("option", [["--diagnostics-format=sarif"], ["--diagnostics-format", "sarif"]])
def test_a_spec_with_a_fault_in_sarif(caten: Any, tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "bad.toml").write_text("[composite]\nnmae = 'x'\n")
    result = caten("check", str(tmp_path / "bad.toml"), *option)
    assert result.code == 1
    run = json.loads(result.err)["runs"][0]
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 1}]
    assert "E010" in [r["ruleId"] for r in run["results"]]


def test_a_wrong_command_line_is_annotated_too(caten: Any) -> None:
    assert caten("--nope", "--diagnostics-format=github").err.startswith("::error title=caten E901::unknown option")


def test_nothing_to_say_is_an_empty_text_for_github(caten: Any, tmp_path: Path) -> None:
    (tmp_path / "axpy.toml").write_text((Path(__file__).resolve().parents[2] / "samples" / "axpy.toml").read_text())
    assert caten("check", str(tmp_path / "axpy.toml"), "--diagnostics-format=github").err == ""

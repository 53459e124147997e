"""`caten test` as typed: files and folders, one bad file among them, records for other programs, several processes."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from spec_texts import AXPY

CASES = '''
[[test.case]]
name = "small"
sizes = { N = 3 }
[[test.case]]
name = "given"
sizes = { N = 2 }
input = { X = [1.0, 2.0] }
'''
WRONG = AXPY + '\n[test]\ncode = "lambda a, X, Y: a * X - Y"\n'
RUNTIME = ("-r", "numpy")


@pytest.fixture
def specs(folder: Path) -> Path:
    """A folder of specs: the same operator three times, one with a wrong reference; a file that is no spec; a hidden folder."""
    for name, text in (("b.toml", AXPY), ("sub/c.toml", WRONG), ("a.toml", AXPY + CASES), ("sub/bad.toml", "composite = 1\nx\n"), (".old/no.toml", "x")):
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "specs"


def test_folders_are_walked_and_a_bad_file_does_not_stop_the_run(building: Any, specs: Path) -> None:
    result = building("test", "specs", "axpy.toml", *RUNTIME)
    assert result.code == 1
    told = [line.split(": ")[0] for line in result.out.splitlines() if ": Axpy" in line]
    assert told == ["specs/a.toml", "specs/a.toml", "specs/b.toml", "specs/sub/c.toml", "axpy.toml"]
    assert "specs/sub/bad.toml:2" in result.err
    last = "4 of 5 passed in 5 files; failed: specs/sub/bad.toml (not tested), specs/sub/c.toml (1 of 1)"
    assert result.out.splitlines()[-1] == last


def test_several_processes_give_the_same_output(building: Any, specs: Path) -> None:
    serial, parallel = [building("test", "specs", *RUNTIME, f"-j{n}") for n in (1, 3)]
    assert (parallel.code, parallel.out) == (serial.code, serial.out)
    assert "specs/sub/bad.toml:2" in parallel.err


def test_the_records(building: Any, specs: Path, folder: Path) -> None:
    result = building("test", "specs", *RUNTIME, "--junit", "j.xml", "--json", "r.json", "-j", "2")
    assert result.code == 1
    root = ElementTree.parse(folder / "j.xml").getroot()
    assert {s.attrib["name"]: (s.attrib["tests"], s.attrib["failures"], s.attrib["errors"]) for s in root.iter("testsuite")} == {
        "specs/a.toml": ("2", "0", "0"), "specs/b.toml": ("1", "0", "0"), "specs/sub/bad.toml": ("1", "0", "1"), "specs/sub/c.toml": ("1", "1", "0")}
    error, = root.iter("error")
    assert "E005" in (error.text or "")
    assert [c.attrib["name"] for c in root.iter("testcase")] == ["small", "given", "default sizes", "build", "default sizes"]
    record = json.loads((folder / "r.json").read_text())
    assert (record["cases"], record["passed"]) == (4, 3)
    assert [(f["file"], f["passed"], f["exit_code"], len(f["cases"])) for f in record["files"]] == [
        ("specs/a.toml", True, 0, 2), ("specs/b.toml", True, 0, 1), ("specs/sub/bad.toml", False, 1, 0), ("specs/sub/c.toml", False, 0, 1)]
    assert record["files"][2]["diagnostics"][0]["code"] == "E005"
    assert record["files"][3]["cases"][0]["status"] == "wrong"


@pytest.mark.parametrize("option", ["--junit", "--json"])
def test_a_record_on_stdout_stands_there_alone(building: Any, option: str) -> None:
    result = building("test", "axpy.toml", *RUNTIME, option, "-")
    assert result.code == 0, result.err
    if option == "--json":
        assert json.loads(result.out)["passed"] == 1
    else:
        assert ElementTree.fromstring(result.out.encode()).attrib["tests"] == "1"


def test_selections_and_command_lines_that_are_wrong(building: Any, specs: Path, folder: Path) -> None:
    one = building("test", "specs/a.toml", "specs/b.toml", *RUNTIME, "--only", "small")
    assert (one.code, one.out.splitlines()[-1]) == (0, "1 of 1 passed in 2 files")
    (folder / "empty").mkdir()
    for words, code, error in ((["--only", "small", "--only", "smal"], 5, "did you mean 'small'"), (["--tag", "none"], 5, "E835"),
                               (["--json", "-", "--junit", "-"], 2, "E903"), (["empty"], 2, "no .toml file below empty"), (["-j0"], 2, "E900"),
                               (["missing.toml"], 2, "E902")):
        refused = building("test", "specs/a.toml", *words, *RUNTIME)
        assert refused.code == code, words
        assert error in refused.err

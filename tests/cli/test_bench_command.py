"""`caten bench`: rows for every spec, size and runtime; files of results; comparing them."""
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
QUICK = ("-r", "gcc", "-O0", "--rounds", "3", "--batch", "0.0001", "--retakes", "0", "--no-limits")
RESULTS: dict[str, Any] = {"schema_version": 1, "machine": {}, "limits": None, "rows": [
    {"op": "Gemm", "runtime": "clang", "sizes": {"M": 4}, "seconds": {"value": 1.0, "low": 0.9, "high": 1.1}, "flops": 1, "bytes": 1, "samples": [1.0],
     "clean": 1, "taken": 1, "compiler": "", "flags": []}]}


def test_a_row_for_every_size(building: Any, folder: Path) -> None:
    result = building("bench", "axpy.toml", *QUICK, "--sizes", "N=7", "--sizes", "N=9", "--json", "out.json")
    assert result.code == 0, result.err
    document = json.loads(Path("out.json").read_text())
    assert [(r["op"], r["runtime"], r["sizes"], r["taken"]) for r in document["rows"]] == [
        ("Axpy", "gcc", {"N": 7}, 3), ("Axpy", "gcc", {"N": 9}, 3)]
    assert document["limits"] is None
    assert all(r["seconds"]["low"] <= r["seconds"]["value"] <= r["seconds"]["high"] for r in document["rows"])
    assert [line.split()[:3] for line in result.out.splitlines()[1:3]] == [["Axpy", "N=7", "gcc"], ["Axpy", "N=9", "gcc"]]


def test_several_specs_and_runtimes_in_one_table(building: Any, folder: Path) -> None:
    result = building("bench", "axpy.toml", "gemm.toml", *QUICK, "-r", "gcc,numpy", "--sizes", "N=8,M=3,K=2", "--json", "-")
    assert result.code == 0, result.err
    assert [(r["op"], r["runtime"]) for r in json.loads(result.out)["rows"]] == [
        ("Axpy", "gcc"), ("Axpy", "numpy"), ("Gemm", "gcc"), ("Gemm", "numpy")]


@pytest.mark.parametrize(("sections", "sizes"), [
    ("[bench.sizes]\nS = { N = 5 }\nL = { N = 11, a = 2.0 }\n", [{"N": 5}, {"N": 11, "a": 2.0}]),
    ('[[test.case]]\nname = "small"\nsizes = { N = 6 }\n[[test.case]]\nname = "great"\nsizes = { N = 13 }\n', [{"N": 13}]),
])
def test_sizes_come_from_the_spec(building: Any, folder: Path, sections: str, sizes: list[dict[str, float]]) -> None:
    test = '[test]\ncode = "lambda a, X, Y: a * X + Y"\n' if "test.case" in sections else ""
    spec = Path("axpy.toml")
    spec.write_text(f"{spec.read_text()}\n{test}{sections}")
    result = building("bench", "axpy.toml", *QUICK, "--json", "-")
    assert result.code == 0, result.err
    assert [r["sizes"] for r in json.loads(result.out)["rows"]] == sizes


def test_limits_and_a_picture(building: Any, folder: Path) -> None:
    result = building("bench", "axpy.toml", *QUICK[:-1], "--sizes", "N=100", "--plot", "a.svg", "--json", "a.json")
    assert result.code == 0, result.err
    assert json.loads(Path("a.json").read_text())["limits"]["flops"] > 0
    assert ElementTree.parse("a.svg").getroot().tag.endswith("svg")
    assert "limits of this machine, 1 thread" in result.out


@pytest.mark.parametrize(("factor", "code", "word"), [(1.0, 0, "same"), (0.5, 0, "faster"), (2.0, 1, "slower")])
def test_comparing_says_what_became_slower(caten: Any, factor: float, code: int, word: str) -> None:
    Path("old.json").write_text(json.dumps(RESULTS))
    scaled = {k: v * factor for k, v in RESULTS["rows"][0]["seconds"].items()}
    Path("new.json").write_text(json.dumps(RESULTS | {"rows": [RESULTS["rows"][0] | {"seconds": scaled}]}))
    result = caten("bench", "--compare", "old.json", "new.json")
    assert result.code == code
    assert result.out.startswith(word)


@pytest.mark.parametrize(("arguments", "code", "word"), [
    ([], 2, "E902"), (["axpy.toml", "--compare", "a.json", "b.json"], 2, "E930"), (["--compare", "axpy.toml", "b.json"], 2, "E931"),
    (["axpy.toml", "-r", "gcc,gcc"], 2, "E930"), (["axpy.toml", "-r", "gcc,"], 2, "E930"), (["axpy.toml", "--sizes", "N=-1"], 2, "E905"),
    (["axpy.toml", "--sizes", "a=1.0"], 2, "E906"), (["axpy.toml", "--rounds", "1"], 2, "--rounds"), (["axpy.toml", "--sizes", "N"], 2, "E904"),
])
def test_what_cannot_be_measured(building: Any, arguments: list[str], code: int, word: str) -> None:
    result = building("bench", "-r", "gcc", "--no-limits", *arguments)
    assert result.code == code
    assert word in result.err
    assert "Traceback" not in result.err


def test_the_text_of_a_later_stage_has_no_arguments(building: Any, folder: Path) -> None:
    Path("axpy.lisp").write_text(building("schedule", "axpy.toml", "-r", "gcc", "-O0", "-o", "-").out)
    result = building("bench", "axpy.lisp", *QUICK)
    assert result.code == 2
    assert "E934" in result.err

"""caten.test, caten.bench and caten.tune: the records of the commands, as Python objects."""
from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import caten
from caten import CatenError, compiler
from caten.benchmarking import results
from caten.frontend import instances, operator_library
from caten.tuning import tuner
from caten.tuning.tuner import TuneResult
from spec_texts import AXPY

CASES = '''
[[test.case]]
name = "small"
tags = ["edge"]
sizes = { N = 3 }
[[test.case]]
name = "given"
sizes = { N = 2 }
input = { X = [1.0, 2.0] }
'''
WRONG = AXPY + '\n[test]\ncode = "lambda a, X, Y: a * X - Y"\n'
NO_SPEC = '[project]\nname = "axpy"\n'
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of specs, with a file that has errors and one that is no spec."""
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    work = tmp_path / "work"
    for name, text in (("a.toml", AXPY + CASES), ("bad.toml", "composite = 1\nx\n"), ("pyproject.toml", NO_SPEC), ("sub/wrong.toml", WRONG)):
        path = work / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def command() -> Callable[..., int]:
    """A command line in this process; its exit code."""
    from caten.cli.boundary import guarded
    return lambda *words: guarded(list(words))


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    for file in record["files"]:
        for case in file["cases"]:
            assert case.pop("wall_seconds") >= 0
    return record


def test_the_results_of_tests_are_what_the_command_writes(command: Callable[..., int], capsys: Any) -> None:
    assert command("test", "specs", "-r", "numpy", "--json", "r.json") == 1
    found = caten.test("specs", runtime="numpy")
    assert without_times(json.loads(Path("r.json").read_text())) == without_times(found.as_json())
    assert [file.file for file in found.files] == ["specs/a.toml", "specs/bad.toml", "specs/sub/wrong.toml"]
    assert [file.passed for file in found.files] == [True, False, False]
    assert [(case.case, case.status) for case in found.cases] == [("small", "ok"), ("given", "ok"), ("default sizes", "wrong")]
    assert not found.passed
    assert [d.code for d in found.files[1].diagnostics] == ["E005"]
    assert found.cases[0].arguments["N"] == 3
    assert found.cases[0].outputs[0].compared == 3


def test_several_processes_give_the_same_results() -> None:
    serial, parallel = [caten.test("specs", "numpy", jobs=jobs) for jobs in (1, 3)]
    assert without_times(serial.as_json()) == without_times(parallel.as_json())


def test_texts_and_lists_of_specs_are_tested() -> None:
    found = caten.test([AXPY, Path("specs/a.toml")], "numpy")
    assert found.passed
    assert [file.file for file in found.files] == ["<string>", "specs/a.toml"]


def test_cases_are_selected() -> None:
    assert [case.case for case in caten.test("specs/a.toml", "numpy", only=["given"]).cases] == ["given"]
    assert [case.case for case in caten.test("specs/a.toml", "numpy", tags=["edge"]).cases] == ["small"]
    with pytest.raises(CatenError, match="E835"):
        caten.test("specs/a.toml", "numpy", only=["gven"])
    with pytest.raises(CatenError, match="E835"):
        caten.test("specs/a.toml", "numpy", tags=["no"])


@needs_gcc
def test_a_benchmark_has_a_row_for_each_runtime_and_setting(command: Callable[..., int]) -> None:
    found = caten.bench("specs/a.toml", ["gcc", "numpy"], sizes=[{"N": 10}, {"N": 20, "a": 2.0}], rounds=3, batch=1e-4, limits=False)
    assert [(row.op, row.runtime, row.sizes["N"]) for row in found.rows] == [
        ("Axpy", "gcc", 10), ("Axpy", "numpy", 10), ("Axpy", "gcc", 20), ("Axpy", "numpy", 20)]
    row = found.rows[0]
    assert 0 < row.seconds.low <= row.seconds.value <= row.seconds.high
    assert found.limits is None
    Path("new.json").write_text(json.dumps(found.as_json()))
    assert results.read("new.json") == found                                     # as the command reads its own files
    assert command("bench", "specs/a.toml", "-r", "gcc", "--sizes", "N=10", "--rounds", "3", "--batch", "0.0001", "--no-limits", "--json", "old.json") == 0
    assert json.loads(Path("old.json").read_text()).keys() == found.as_json().keys()
    assert results.read("old.json").rows[0].sizes == row.sizes


@needs_gcc
def test_tuning_gives_a_result_for_each_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def tuned(op: Any, sizes: Any, options: Any, budget: float, *_: Any) -> TuneResult:
        asked.append((op.name, sizes, options.opt, budget))
        return TuneResult(op.name, "key", None, 3, interrupted=len(asked) == 2)
    monkeypatch.setattr(tuner, "tuned", tuned)
    result, = caten.tune("specs/a.toml", "gcc", sizes={"N": 10}, budget=2)
    assert asked == [("Axpy", [{"N": 10}], 2, 2.0)]
    assert (result.op, result.record, result.measured) == ("Axpy", None, 3)
    assert result.as_json()["measured"] == 3
    with pytest.raises(KeyboardInterrupt):
        caten.tune("specs/a.toml", "gcc", sizes={"N": 10})


@pytest.mark.parametrize(("call", "said"), [
    (lambda: caten.test("specs/a.toml", jobs=0), "caten.test: jobs is 0, an int; it takes an integer from 1 on"),
    (lambda: caten.test("specs/a.toml", tags="edge"), "caten.test: tags is 'edge', a str; it takes a list of tags"),
    (lambda: caten.bench("specs/a.toml", sizes={"N": "1"}), "caten.bench: sizes['N'] is '1', a str; it takes a number"),
    (lambda: caten.bench("specs/a.toml", sizes=3), "caten.bench: sizes is 3, an int; it takes a dict of sizes and scalars"),
    (lambda: caten.bench("specs/a.toml", rounds=2), "caten.bench: rounds is 2, an int; it takes an integer from 3 on"),
    (lambda: caten.bench("specs/a.toml", batch=0), "caten.bench: batch is 0, an int; it takes a time in seconds"),
    (lambda: caten.tune("specs/a.toml", budget=float("nan")), "caten.tune: budget is nan, a float; it takes a time in seconds"),
    (lambda: caten.tune("specs/a.toml", beside=1), "caten.tune: beside is 1, an int; it takes True or False"),
], ids=range(8))
def test_wrong_values_are_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(CatenError) as caught:
        call()
    assert caught.value.diagnostics[0].code == "E668"
    assert said in str(caught.value)


def test_a_missing_file_raises_and_a_bad_one_does_not() -> None:
    with pytest.raises(CatenError, match="cannot read 'nowhere"):
        caten.test(["specs/a.toml", "nowhere.toml"], "numpy")
    assert caten.test("specs/bad.toml", "numpy").files[0].exit_code == 1
    Path("empty").mkdir()
    Path("empty/pyproject.toml").write_text(NO_SPEC)
    with pytest.raises(CatenError, match="E902"):
        caten.test("empty", "numpy")
    for call in (caten.bench, caten.tune):
        with pytest.raises(CatenError, match="E005"):
            call("specs/bad.toml", "numpy")


def test_what_is_no_operator_as_written_has_no_reference(command: Callable[..., int]) -> None:
    assert command("ir", "specs/a.toml", "-o", "a.ir.lisp") == 0
    assert caten.test(Path("a.ir.lisp").read_text(), "numpy").files[0].diagnostics[0].code == "E934"
    with pytest.raises(CatenError, match="E934"):
        caten.bench(Path("a.ir.lisp").read_text(), "numpy")


def test_only_what_is_selected_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator by its name, with all its instances; by that of an instance; by that of a case."""
    entries = [operator_library.entry_of(name) for name in ("log", "log_sigmoid")]
    (folder / "two.toml").write_text("".join([f"{entry.source}\n" for entry in entries]))
    rows = [[row for row, _ in instances.cases_of(entry.table)] for entry in entries]
    assert [len(own) for own in rows] == [2, 2]
    made: list[list[str]] = []
    whole = compiler.render_programs

    def render(programs: Any, *rest: Any) -> Any:
        made.append([program.name for program in programs])
        return whole(programs, *rest)
    monkeypatch.setattr(compiler, "render_programs", render)
    for only, ops in (("log", rows[0]), (rows[1][1], rows[1][1:]), ("log_sigmoid 1", rows[1][:1])):
        assert [case.op for case in caten.test(folder / "two.toml", "numpy", only=[only]).cases] == ops
        assert made.pop() == ops
    assert not made

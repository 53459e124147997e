"""The side-by-side: its problems, its table, and one tiny run."""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as side_by_side
from benchmarks import build_times, problems, processes, table, worker
from benchmarks.peers import numpy_peer
from benchmarks.peers.caten_peer import called
from benchmarks.problems import Problem
from benchmarks.workloads import WORKLOADS, array_programs, sized

from caten import loading
from caten.frontend.op import OpProgram
from caten.frontend.spec import read_file
from caten.options import Options
from caten.testing.sizes_and_scalars import match_settings

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Callable[[], Problem]] = {
    "matmul": lambda: problems.matmul(3, 4, 5), "batched": lambda: problems.matmul(3, 4, 5, 2), "gelu": lambda: problems.gelu(7),
    "softmax": lambda: problems.softmax(3, 5), "layernorm": lambda: problems.layernorm(3, 5), "sum": lambda: problems.total(9),
    "column sum": lambda: problems.column_sum(3, 4), "transpose": lambda: problems.transpose(3, 4), "conv": lambda: problems.conv(2, 6, 3, 1, 1, 3),
    "strided conv": lambda: problems.conv(2, 9, 7, 2, 3, 3), "sin": lambda: problems.sine(5), "arange": lambda: problems.arange(6),
    "im2col": lambda: problems.im2col(2, 5),
}


def fact(*seconds: float, clean: bool = True) -> dict[str, Any]:
    return {"error": 0.0, "first": 1.0, "seconds": list(seconds), "clean": [clean] * len(seconds)}


def result(**peers: Any) -> dict[str, Any]:
    """A file of two runs that came out alike."""
    rows = [{"workload": "sum", "odd": False, "flops": 0, "bytes": 4_000_000, "peers": peers},
            {"workload": "sum 997", "odd": True, "flops": 0, "bytes": 4, "peers": {"caten": fact(4.0, 4.0, 4.0), "numpy": fact(1.0, 1.0, 1.0)}}]
    part = {"versions": {"caten": "1", "numpy": "2"}, "missing": {"jax": "ImportError: no"}, "rows": rows, "compiler": "cc", "flags": ["-O3"],
            "limits": {"threads": 1, "flops": 1e11, "read": 1e10, "copy": 1e10, "triad": 1e10}}
    machine = {"cpu": "CPU", "cpus": 2, "system": "Linux", "huge_pages": "madvise", "date": "today"}
    return {"threads": 1, "rounds": 3, "cpu_time": False, "machine": machine, "runs": [[part], [part]]}


@pytest.mark.parametrize("name", SMALL)
def test_numpy_solves_every_problem(name: str) -> None:
    problem = SMALL[name]()
    assert problem.error(numpy_peer.CALLS[problem.kind](problem)()) <= problem.tolerance


@pytest.mark.parametrize("name", SMALL)
def test_a_wrong_element_is_found(name: str) -> None:
    problem = SMALL[name]()
    wrong = np.array(problem.reference, np.float64)
    wrong.flat[-1] += 0.01 * np.max(np.abs(wrong))
    assert problem.error(wrong) > problem.tolerance


def test_workloads_have_names_of_their_own_and_specs() -> None:
    assert len({w.name for w in WORKLOADS}) == len(WORKLOADS)
    assert all(w.spec.is_file() for w in WORKLOADS)


@pytest.mark.parametrize(("workload", "problem"), [
    ("gemm 64", SMALL["matmul"]), ("batched 12x(128x64x128)", SMALL["batched"]), ("gelu(x*a+b) 64K", SMALL["gelu"]),
    ("softmax 1024x1024", SMALL["softmax"]), ("layernorm 4096x768", SMALL["layernorm"]), ("sum 16M", SMALL["sum"]),
    ("column sum 4096x4096", SMALL["column sum"]), ("transpose 4096x4096", SMALL["transpose"]), ("conv 64x56x56 k3 to 64", SMALL["conv"]),
    ("conv 3x224x224 k7 s2 to 64", SMALL["strided conv"]), ("sin 16M", SMALL["sin"]), ("arange 16M", SMALL["arange"]),
    ("im2col 64x56x56 k3", SMALL["im2col"])])
def test_the_sizes_of_a_problem_are_those_of_its_spec(workload: str, problem: Callable[[], Problem]) -> None:
    op = loading.load_programs(read_file(next(w.spec for w in WORKLOADS if w.name == workload)), Options())[0]
    assert isinstance(op, OpProgram)
    settings = match_settings(list(problem().sizes.items()), [op], "sizes")
    assert settings.keys() >= set(op.sizes)


def test_the_ratio_is_to_the_fastest_peer() -> None:
    line = table.lines(result(caten=fact(1.0, 1.0, 1.0), numpy=fact(3.0, 3.0, 3.0), torch=fact(2.0, 2.0, 2.0)))[0]
    assert line.best == "torch"
    assert line.ratio is not None
    assert line.ratio.value == 2.0
    assert list(line.times) == ["caten", "torch", "numpy"]


def test_a_slow_peer_need_not_be_in_every_run() -> None:
    found = json.loads(json.dumps(result(caten=fact(1.0, 1.0, 1.0), numpy=fact(2.0, 2.0, 2.0), torch=fact(9.0, 9.0, 9.0))))
    del found["runs"][1][0]["rows"][0]["peers"]["torch"]
    line = table.lines(found)[0]
    assert (line.best, line.times["torch"]) == ("numpy", 9.0)


def test_why_a_peer_has_no_figure_is_told_in_the_row() -> None:
    text = table.markdown(result(caten=fact(1.0), numpy=fact(2.0), jax={"failed": "TypeError: a | b"}, torch={"failed": "gives a wrong result"}))
    assert "jax: TypeError, torch: gives a wrong result |" in text


def test_who_is_far_behind_is_left_out() -> None:
    assert worker.near_the_best({"caten": 9.0, "numpy": 1.0, "torch": 1.4, "jax": 1.6}) == {"caten", "numpy", "torch"}


CRASHES = """
import os, sys
from benchmarks.worker import Log
log = Log(__import__("pathlib").Path(sys.argv[2]))
log.doing("sum", "jax")
"""


@pytest.mark.slice(2)
@pytest.mark.parametrize(("ending", "why"), [("os.abort()", "its process ended with -6"), ("import time; time.sleep(60)", "nothing came of it"),
                                             ("sys.exit(3)", "its process ended with 3"), ("", None)])
def test_what_a_process_was_doing_is_known_after_it_died(ending: str, why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dying.py").write_text(CRASHES + ending)
    written, said = processes.ran("dying", {}, {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "src")])}, silence=2.0)
    assert written["doing"] == ["sum", "jax"]
    assert (said or "").startswith(why or "")
    assert (said is None) == (why is None)


Part = tuple[dict[str, Any], str | None]
DIED = "its process ended with -11"


def went(monkeypatch: pytest.MonkeyPatch, *parts: Part) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What comes of processes that end like this, and their tasks."""
    tasks, coming = [], iter(parts)

    def ran(module: str, task: dict[str, Any], variables: Any) -> Part:
        tasks.append(json.loads(json.dumps(task)))
        return next(coming)
    monkeypatch.setattr(processes, "ran", ran)
    options = argparse.Namespace(threads=1, only="", rounds=3, batch=0.1, retakes=0, cpu_time=False, seed=None, count=40)
    return side_by_side._process(["caten", "jax"], options, {}), tasks


def part(*workloads: str, doing: tuple[str | None, str | None] = (None, None), **more: Any) -> dict[str, Any]:
    return {"versions": {"caten": "1"}, "missing": {}, "rows": [{"workload": name} for name in workloads], "doing": list(doing), **more}


def test_behind_a_peer_that_crashes_the_next_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, tasks = went(monkeypatch, (part("a", doing=("b", "jax")), DIED), (part("b", "c"), None))
    assert [row["workload"] for row in measured["rows"]] == ["a", "b", "c"]
    assert (tasks[1]["done"], tasks[1]["failed"]) == (["a"], {"b": {"jax": DIED}})


def test_a_workload_in_which_nobody_is_known_to_crash_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, tasks = went(monkeypatch, (part("a", doing=("b", None)), DIED), (part(doing=("c", "jax")), DIED), (part("c"), None))
    assert [row["workload"] for row in measured["rows"]] == ["a", "c"]
    assert tasks[2]["done"] == ["b", "a"]


def test_a_peer_that_crashes_at_once_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, tasks = went(monkeypatch, (part(doing=(None, "jax")), DIED), (part("a"), None))
    assert measured["missing"] == {"jax": DIED}
    assert tasks[1]["peers"] == ["caten"]


def test_a_crash_when_everything_is_measured_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert went(monkeypatch, (part("a", complete=True), DIED))[0]["missing"] == {}


def test_build_times_are_a_table() -> None:
    machine = {"cpu": "CPU", "cpus": 2, "system": "Linux", "python": "3", "date": "today"}
    rows = {"gemm, cold": {"median": 0.4, "least": 0.3, "greatest": 0.5, "target": 0.6}, "pass": {"median": 0.1, "least": 0.1, "greatest": 0.1, "target": None}}
    text = table.shown({"kind": "building", "machine": machine, "runs": 7, "rows": rows})
    assert text == build_times.markdown({"machine": machine, "runs": 7, "rows": rows})
    assert "| gemm, cold | 0.400 | 0.300 | 0.500 | 0.600 |" in text
    assert "| pass | 0.100 | 0.100 | 0.100 | - |" in text


def test_odd_sizes_are_not_in_the_mean() -> None:
    mean = table.mean(table.lines(result(caten=fact(1.0, 1.0, 1.0), numpy=fact(2.0, 2.0, 2.0))))
    assert mean is not None
    assert mean.value == pytest.approx(2.0)


def test_disturbed_rounds_do_not_count_where_others_are_clean() -> None:
    peer = {**fact(2.0, 9.0, 2.0), "clean": [True, False, True]}
    ratio = table.lines(result(caten=fact(1.0, 1.0, 1.0), numpy=peer))[0].ratio
    assert ratio is not None
    assert (ratio.value, ratio.high) == (2.0, 2.0)


@pytest.mark.parametrize("peers", [{"caten": fact(1.0)}, {"numpy": fact(1.0)}, {"caten": {"failed": "why"}, "numpy": fact(1.0)}])
def test_without_caten_or_a_peer_there_is_no_ratio(peers: dict[str, Any]) -> None:
    found = result(**peers)
    assert table.lines(found)[0].ratio is None
    assert "| sum |" in table.markdown(found)


def test_a_workload_that_a_run_lacks_is_left_out() -> None:
    found = result(caten=fact(1.0), numpy=fact(2.0))
    found["runs"][1] = [found["runs"][1][0] | {"rows": found["runs"][1][0]["rows"][1:]}]
    assert [line.workload for line in table.lines(found)] == ["sum 997"]


def test_no_path_of_the_machine_is_in_the_table() -> None:
    found = result(caten=fact(1.0), numpy=fact(2.0))
    found["runs"][0][0]["flags"].append("-Wl,-rpath,/home/somebody")
    assert "somebody" not in table.markdown(found)


def test_the_table_says_where_its_figures_come_from() -> None:
    text = table.markdown(result(caten=fact(1e-3, 1e-3, 1e-3), numpy=fact(2e-3, 2e-3, 2e-3)))
    for word in ("CPU, 2 CPUs", "today", "cc: `-O3`", "numpy 2", "Without jax", "100 GFLOP/s", "**2.00**"):
        assert word in text
    assert "| sum | numpy | 2 | 1 | 2.00 | 2.00 … 2.00 | 4.0 GB/s |  |" in text


def test_a_page_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    table.write(page, "new")
    assert page.read_text() == f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n"


def test_the_page_of_the_documentation_has_the_marks() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert 0 < page.index(table.BEGIN) < page.index(table.END)


def test_a_tiny_run(tmp_path: Path, tool: Callable[[str], str]) -> None:
    out = tmp_path / "out.json"
    run = subprocess.run([sys.executable, "-m", "benchmarks", "--only", "^sum 997$", "--peers", "caten,numpy", "--rounds", "3", "--batch", "0.0001",
                          "--retakes", "0", "--json", str(out)], cwd=ROOT, env=os.environ | {"CC": tool("gcc")}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    document = json.loads(out.read_text())
    workload, = document["summary"]["workloads"]
    assert {"caten", "numpy"} == workload["times"].keys()
    assert workload["kernel"] > 0
    assert document["runs"][0][0]["limits"]["flops"] > 0
    assert "| sum 997 | numpy |" in run.stdout


@pytest.mark.parametrize(("arguments", "word"), [(["--peers", "numpi"], "no peer numpi"), (["--only", "nothing"], "no workload matches")])
def test_what_there_is_not(arguments: list[str], word: str) -> None:
    run = subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert word in run.stderr


def test_drawn_sizes_are_those_of_their_seed() -> None:
    drawn = sized(3, 8)
    assert [w.name for w in drawn] == [w.name for w in sized(3, 8)] != [w.name for w in sized(4, 8)]
    assert sized(None, 8)[:len(WORKLOADS)] == WORKLOADS
    families = Counter([w.name.split(" ")[0] for w in drawn if "programs" not in w.spec.parts])
    assert families == {"gemm": 8, "conv": 4, "softmax": 2, "layernorm": 2, "column": 2, "transpose": 2, "sum": 2, "gelu(x*a+b)": 2}


def test_programs_of_whole_arrays_give_the_formula_at_drawn_sizes() -> None:
    for workload in array_programs(5)[:3]:
        problem = workload.make()
        called(workload.spec, problem)()
        assert problem.error(problem.output) <= problem.tolerance, workload.name


def test_the_spread_of_ratios_is_told_by_family() -> None:
    document = result(caten=fact(1.0, 1.0), numpy=fact(0.5, 0.5))
    assert "| sum | 2 | 0.26 | 0.31 | 0.38 | 2 |" in table.percentiles(document)           # 0.5 and 0.25

"""Candidates are compiled, proven and measured in children that may crash, hang and be wrong alone."""
from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import driver, loading
from caten.benchmarking import timing
from caten.benchmarking.statistics import Estimate
from caten.core.program import Schedule
from caten.core.text import show
from caten.errors import CatenError, error
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.schedule.plans.parameters import DEFAULTS
from caten.tuning import candidate_check, candidates
from caten.tuning.candidates import Effort, Shop
from caten.tuning.search import Candidate
from spec_texts import AXPY, GEMM

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
HALVES = AXPY.replace("Axpy", "Halves").replace('["a{float}[]", "X{float}[N]", "Y{float}[N]"]', '["x{float}[N]", "Y{float}[H]"]').replace(
    "(dotimes (i N) (setf (aref Y i) (+ (* a (aref X i)) (aref Y i))))", "(dotimes (i H) (setf (aref Y i) (aref x (* 2 i))))") + """
[test]
code = "lambda x, Y: x[::2]"
"""
QUICK = Effort(3, timing.Plan(0.0001, retakes=0))
LARGE = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def axpy(folder: Path) -> Shop:
    return made(AXPY, folder, {"N": LARGE})


def made(text: str, folder: Path, *sizes: dict[str, int | float]) -> Shop:
    options = Options(runtime="gcc", config=(("MARCH", "x86_64_v2"),), cache_dir=str(folder), cc="gcc")
    op = loading.load_programs(SpecText("a.toml", text, "toml"), options)[0]
    assert isinstance(op, OpProgram)
    return Shop(op, sizes, options, 1, QUICK, QUICK)


def candidate(kernel: Shop, value: int) -> Candidate:
    found = kernel.make(DEFAULTS.with_("maps.vectors", value))
    assert found is not None
    return found


def test_the_defaults_are_what_o2_does(axpy: Shop) -> None:
    scheduled = driver.advance(axpy.op, "loop", axpy.options)
    fact = scheduled.first(Schedule)
    assert fact is not None
    assert axpy.present.schedule == show(Schedule(fact.steps[:-1]))
    default = axpy.make(DEFAULTS)
    assert default is not None
    assert (default.schedule, default.code) == (axpy.present.schedule, axpy.present.code)


def test_candidates_are_measured_beside_the_present_schedule(axpy: Shop) -> None:
    axpy.check()
    first, second = axpy.ratios([candidate(axpy, 2), candidate(axpy, 4)], True)
    assert first is not None
    assert second is not None
    assert len(first) == len(second) == 1
    assert first[0].low <= first[0].value <= first[0].high


def spoilt(monkeypatch: pytest.MonkeyPatch, kernel: Shop, bad: Candidate, what: Callable[[dict[str, Any]], dict[str, Any]], large: bool = False) -> None:
    """The kernel of one candidate does something else: always, or only at the size that is measured."""
    real, artifact = candidate_check.results, kernel._built(bad.schedule).artifact

    def results(op: Any, built: Any, arguments: Any) -> dict[str, Any]:
        done = real(op, built, arguments)
        return what(done) if built.artifact == artifact and (not large or len(arguments["X"]) == LARGE) else done
    monkeypatch.setattr(candidate_check, "results", results)
    monkeypatch.setattr(candidate_check, "MODERATE", 2000)                       # so that results are compared at a smaller size


def crash(results: dict[str, Any]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return results


def hang(results: dict[str, Any]) -> dict[str, Any]:
    time.sleep(60)
    return results


def wrong(results: dict[str, Any]) -> dict[str, Any]:
    return {n: a + 1 for n, a in results.items()}


@pytest.mark.slice(2)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("what", [crash, hang, wrong])
def test_what_goes_wrong_goes_wrong_alone(axpy: Shop, monkeypatch: pytest.MonkeyPatch, what: Any, large: bool) -> None:
    good, bad = candidate(axpy, 2), candidate(axpy, 4)
    axpy.check()
    spoilt(monkeypatch, axpy, bad, what, large)
    monkeypatch.setattr(candidates, "PROOF_SECONDS", 2.0)
    monkeypatch.setattr(candidates, "LEAST_SECONDS", 2.0)
    first, second = axpy.ratios([good, bad], False)
    assert first is not None
    assert second is None


@pytest.mark.parametrize("what", [crash, wrong])
def test_a_kernel_that_is_no_good_itself_is_not_tuned(axpy: Shop, monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    spoilt(monkeypatch, axpy, axpy.present, what)
    with pytest.raises(CatenError, match="E842"):
        axpy.check()


def test_sizes_that_hang_together_are_proven_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_check, "MODERATE", 2000)
    halves = made(HALVES, folder, {"N": LARGE, "H": LARGE // 2})
    halves.check()
    assert len(halves._proof[0]["x"]) == LARGE


def test_what_is_the_same_at_these_sizes_is_the_same_code(folder: Path) -> None:
    square = made(GEMM, folder, {"M": 64, "N": 64, "K": 64})
    narrow = square.make(DEFAULTS.with_("columns.vectors", 1))
    assert narrow is not None
    assert narrow.schedule != square.present.schedule
    assert narrow.code == square.present.code


def test_what_the_machine_rules_out_is_not_made(folder: Path) -> None:
    assert made(GEMM, folder, {"M": 64, "N": 64, "K": 64}).make(DEFAULTS.with_("gemm.rows", 14)) is None


@pytest.mark.parametrize("schedule", ["(schedule (split nothing 4))", "(schedule (unroll"])
def test_a_record_that_does_not_apply_is_no_candidate(axpy: Shop, schedule: str) -> None:
    assert axpy.replayed(schedule, DEFAULTS) is None


def test_a_candidate_is_verified_before_it_counts(axpy: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: object) -> None:
        raise error("E480", "not shown to be right")
    axpy.check()
    monkeypatch.setattr(candidates.verifier, "verify", refuse)
    some = candidate(axpy, 2)
    (short,), (long,) = axpy.ratios([some], False), axpy.ratios([some], True)
    assert short is not None
    assert long is None


def test_moderate_sizes_keep_the_conditions(folder: Path) -> None:
    kernel = made(GEMM, folder, {"M": 2048, "N": 2048, "K": 3})
    values = candidate_check.moderate(kernel.op, kernel.sizes[0])
    assert candidate_check.work_of(kernel.op, values) <= candidate_check.MODERATE
    assert values["K"] == 3
    assert values["M"] % 2 == 1


def test_moderate_sizes_count_integer_work(folder: Path) -> None:
    kernel = made(GEMM.replace("float", "int32"), folder, {"M": 400, "N": 400, "K": 400})
    values = candidate_check.moderate(kernel.op, kernel.sizes[0])
    assert 2 * values["M"] * values["N"] * values["K"] <= candidate_check.MODERATE


@pytest.mark.parametrize(("got", "near"), [([1.0, 2.0], True), ([1.001, 2.0], True), ([1.1, 2.0], False), ([np.nan, 2.0], False)])
def test_results_are_near_but_for_rounding(got: list[float], near: bool) -> None:
    assert candidate_check.are_near(np.array(got), np.array([1.0, 2.0])) == near


def test_the_lesser_of_two_places_counts(axpy: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    some = candidate(axpy, 2)
    measured = {False: Estimate(1.2, 1.19, 1.21), True: Estimate(0.9, 0.89, 0.91)}
    monkeypatch.setattr(Shop, "_compared", lambda self, builts, number, effort, pages=False: dict.fromkeys(builts, measured[pages]))
    assert axpy.ratios([some], True) == [[measured[True]]]
    assert axpy.ratios([some], False) == [[measured[False]]]
    monkeypatch.setattr(Shop, "_compared", lambda self, builts, number, effort, pages=False: {} if pages else dict.fromkeys(builts, measured[False]))
    assert axpy.ratios([some], True) == [None]                # it did not come back


def test_arrays_at_pages() -> None:
    given = {"A": np.arange(6, dtype=np.float32).reshape(2, 3), "T": np.asfortranarray(np.ones((2, 3))), "n": 3, "E": np.ones(0)}
    moved = candidates.at_pages(given)
    assert moved["n"] == 3
    for name in "AT":
        assert moved[name].ctypes.data % 4096 == 0
        assert moved[name].strides == given[name].strides
        assert (moved[name] == given[name]).all()

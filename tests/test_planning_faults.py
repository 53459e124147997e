"""A fault of the planners' own does not take a build with it: the next simpler plan is taken, with a warning; in tests it is raised."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.api import CatenWarning
from caten.core.expr import index
from caten.core.node import substitute
from caten.core.text import show
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec_files import SpecText
from caten.loop.operation_count import Work, counted
from caten.loop.statements import LoopProgram, Vref
from caten.options import Options
from caten.schedule import autoscheduler
from caten.schedule.analysis.classify import Chain
from caten.schedule.draft import Draft
from caten.schedule.emit import emit
from caten.schedule.plans.maps import VectorLoop
from caten.schedule.plans.plan import NotApplicable
from caten.tensor import raising

SPEC = """[composite]
name = "Two"
inputs = ["x{float}[N]", "y{float}[N]", "s{float}[]"]
outputs = ["y", "s"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* 2 (aref x i)))) (dotimes (j N) (incf s (aref x j)))"
"""
THREE = SPEC.replace('"s{float}[]"]', '"s{float}[]", "u{float}[]"]').replace('"y", "s"]', '"y", "s", "u"]').replace(
    "(incf s (aref x j)))", "(incf s (aref x j))) (dotimes (k N) (incf u (aref x k)))")
Fault = Callable[[pytest.MonkeyPatch], None]


def broken(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("planted")


def in_a_planner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(autoscheduler, "PERFECT_NESTS", tuple([replace(f, planners=(broken,)) if f.name == "maps" else f for f in autoscheduler.PERFECT_NESTS]))


def in_steps(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(emit.OF_LOOPS, VectorLoop, broken)


def in_a_step_on_no_loop(patch: pytest.MonkeyPatch) -> None:
    """The steps of a plan name a loop that there is not: that is no refusal, after which another plan has its turn in silence."""
    patch.setitem(emit.OF_LOOPS, VectorLoop, lambda draft, *_: draft.take("vectorize", "nowhere"))


def in_a_malformed_step(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(emit.OF_LOOPS, VectorLoop, lambda draft, chain, *_: draft.try_steps(("split", chain.names[0], "a few")))


def in_the_choice_of_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(autoscheduler, "chain_of", broken)


def in_the_whole_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(autoscheduler, "drafted", broken)


def in_raising(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(raising, "canonical_values", broken)


def in_simplifying(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(autoscheduler, "simplify_program", broken)


def in_what_is_made(patch: pytest.MonkeyPatch) -> None:
    """A plan moves every vector behind the end of its array: the verifier refuses it, however careful the planning is."""
    sound = autoscheduler.recorded

    def moved(program: LoopProgram, steps: Any) -> LoopProgram:
        places = {n: n.replace(index=tuple(i + index(1 << 20) for i in n.index)) for n in program.unique() if isinstance(n, Vref)}
        return sound(substitute(program, places), steps)
    patch.setattr(autoscheduler, "recorded", moved)
    patch.setattr(autoscheduler, "as_written", lambda program: sound(program, ()))


FAULTS: list[Fault] = [in_a_planner, in_steps, in_a_step_on_no_loop, in_a_malformed_step, in_the_choice_of_plans, in_the_whole_pass, in_raising, in_simplifying, in_what_is_made]


def advanced(options: Options) -> tuple[LoopProgram, list[Diagnostic]]:
    heard: list[Diagnostic] = []
    (program,) = loading.load_programs(SpecText("two.toml", SPEC), options)
    made = driver.advance(program, "loop", options, heard.append)
    assert isinstance(made, LoopProgram)
    return made, heard


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),), cache_dir=str(tmp_path / "cache"), strict=False)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_users_build_goes_on(fault: Fault, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    program, heard = advanced(options)
    assert [d.code for d in heard] == ["E942"] * len(heard)
    assert heard
    assert heard[0].severity == "warning"
    report = Path(re.search(r"are in (\S+)", heard[0].notes[0][0])[1])  # type: ignore[index]
    assert "Traceback" in report.read_text()
    assert "Two" in (report.parent / "program.txt").read_text()
    assert "for i 0 N" in show(program) or "vref" in show(program)


@pytest.mark.slice(2)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", [{"strict": True}, {"verify": True}], ids=["in tests", "--verify"])
def test_in_tests_and_with_verify_the_fault_is_raised(fault: Fault, how: dict[str, bool], options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises((ZeroDivisionError, CatenError)):
        advanced(replace(options, **how))


@pytest.mark.slice(2)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_what_is_built_then_is_right(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CATEN_STRICT")
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    fault(monkeypatch)
    with pytest.warns(CatenWarning, match="E942"):
        two = caten.compile(SPEC, runtime="gcc")
    x = np.arange(37, dtype=np.float32)
    y, s = two(x, np.zeros_like(x), np.zeros((), np.float32))
    assert (y == 2 * x).all()
    assert s == x.sum()


def test_other_nests_keep_their_plans(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    in_steps(monkeypatch)
    program, _ = advanced(options)
    assert "vref" in show(program)                          # the sum is vectors, though the map could not be planned


def test_what_is_refused_is_no_fault(options: Options) -> None:
    _, heard = advanced(options)
    assert not heard


def no_maps(*_: object) -> NoReturn:
    raise NotApplicable("not today")


def refused(draft: Draft, chain: Chain, *_: object) -> None:
    draft.take("split", chain.names[0], 0)


@pytest.mark.parametrize("steps", [no_maps, refused])
def test_a_plan_that_does_not_apply_is_no_fault(steps: Callable[..., None], options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(emit.OF_LOOPS, VectorLoop, steps)
    for each in (options, replace(options, strict=True)):
        program, heard = advanced(each)
        assert not heard
        assert "for i 0 N 1 parallel" in show(program)      # the nest is as it was written, and its iterations are shared


def test_beyond_the_budget_nests_stay_as_they_are_written(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = advanced(options)
    (op,) = loading.load_programs(SpecText("two.toml", SPEC), options)
    with counted(Work()) as needed:
        autoscheduler.schedule(driver.unscheduled(op, options))
    (again,) = loading.load_programs(SpecText("three.toml", THREE), options)
    with counted(Work()) as more:
        autoscheduler.schedule(driver.unscheduled(again, options))
    assert more.greatest == needed.greatest                 # and no sum over the nests
    monkeypatch.setattr(driver, "BUDGET", needed.greatest)
    assert (show(advanced(options)[0]), advanced(options)[1]) == (show(whole), [])      # each nest has it for itself
    monkeypatch.setattr(driver, "BUDGET", needed.greatest - 1)
    part, heard = advanced(options)
    assert [d.code for d in heard] == ["E943"]
    assert "'j'" in heard[0].message
    assert "for j 0 N 1 serial" in show(part)
    assert "vref" in show(part)                             # the first nest was planned
    assert show(part) != show(whole)
    assert show(advanced(options)[0]) == show(part)         # work is counted, not time


def test_the_count_does_not_depend_on_what_was_compiled_before(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Work] = []

    class Kept(Work):
        def __init__(self, budget: int | None = None) -> None:
            super().__init__(budget)
            counts.append(self)

    simplify, alive = autoscheduler.simplify_program, []

    def keeping(program: LoopProgram) -> LoopProgram:       # the garbage collector may keep every program for a while
        alive.append(simplify(program))
        return alive[-1]

    monkeypatch.setattr(driver, "Work", Kept)
    monkeypatch.setattr(autoscheduler, "simplify_program", keeping)
    programs = [advanced(options)[0] for _ in range(2)]
    assert programs[0] is programs[1]
    assert alive[0] is alive[1]
    assert counts[0].greatest == counts[1].greatest > 1000

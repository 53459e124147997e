"""What was tried, as data: plans and steps in order, why some were not taken, and the copies that are in the
program."""
from __future__ import annotations

from pathlib import Path

import pytest
from schedule_nets import program

from caten import driver, loading
from caten.core.program import Schedule
from caten.core.text import flat
from caten.frontend.spec import read_file
from caten.loop.operation_count import OutOfBudget
from caten.options import Options
from caten.schedule import autoscheduler
from caten.schedule.draft import Draft
from caten.schedule.planning_log import Copied, Planned, Tried, explained
from caten.schedule.plans.plan import NotApplicable

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NEST = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref X i j) (aref A i j))))"


def in_a_copy(draft: Draft) -> None:
    draft.specialize("i", ("<", "N", "8"))
    draft.try_steps(("parallel", "is"))


def in_vain(draft: Draft) -> None:
    in_a_copy(draft)
    raise NotApplicable("the copy does not pay")


def of_no_tile(draft: Draft) -> None:
    draft.split("i", 0)


def test_what_was_tried_is_kept_in_order_with_the_reasons() -> None:
    draft = Draft(program(NEST))
    assert draft.attempt(in_a_copy)
    assert not draft.attempt(of_no_tile)
    assert draft.log == [
        Tried("the step 'in a copy'", 0), Copied("i", "is", "(< N 8)", 1), Tried("(parallel is)", 1),
        Tried("the step 'of no tile'", 0, "split i: a tile has at least one iteration, not 0")]
    assert list(explained(draft.log))[1] == "    for calls with (< N 8) there is a copy of 'i': 'is'"


def test_a_copy_that_was_given_up_is_none() -> None:
    draft = Draft(program(NEST))
    assert not draft.attempt(in_vain)
    assert draft.log == [Tried("the step 'in vain'", 0, "the copy does not pay"), Tried("(parallel is)", 1)]


def test_what_the_budget_ended_was_not_taken() -> None:
    def endless(draft: Draft) -> None:
        in_a_copy(draft)
        raise OutOfBudget
    draft = Draft(program(NEST))
    with pytest.raises(OutOfBudget):
        draft.attempt(endless)
    assert draft.log[0] == Tried("the step 'endless'", 0, "the work that a nest may take is spent")
    assert not any(isinstance(entry, Copied) for entry in draft.log)


def test_a_change_of_all_nests_that_the_budget_ends_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(draft: Draft) -> None:
        in_a_copy(draft)
        raise OutOfBudget
    monkeypatch.setattr(autoscheduler, "flatten_arrays", endless)
    own = Options(config=(("MARCH", "x86_64_v3"),))
    (op,) = loading.load_programs(read_file(str(SAMPLES / "transpose.toml")), own)
    draft = autoscheduler.drafted(driver.unscheduled(op, own))
    assert draft.planning.left == []
    assert any(isinstance(entry, Planned) for entry in draft.log)


@pytest.mark.parametrize("name", ["gemm", "sum_columns", "softmax", "transpose"])
@pytest.mark.slow
def test_the_copies_of_the_log_are_those_of_the_program(name: str) -> None:
    own = Options(config=(("MARCH", "x86_64_v3"),))
    (op,) = loading.load_programs(read_file(str(SAMPLES / f"{name}.toml")), own)
    draft = autoscheduler.drafted(driver.unscheduled(op, own))
    copies = [entry for entry in draft.log if isinstance(entry, Copied)]
    fact = draft.program.first(Schedule)
    assert fact is not None
    assert [(entry.loop, entry.cond) for entry in copies] == [(step[1], flat(step[2]))
                                                              for step in fact.steps if step[0] == "specialize"] != []
    assert isinstance(draft.log[0], Planned)
    assert len(list(explained(draft.log))) == len(draft.log)

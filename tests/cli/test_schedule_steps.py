"""`caten schedule --steps`: the schedule alone, which -s takes back."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.mark.parametrize("sample", ["axpy", "softmax", "transpose", "gemv"])
def test_the_steps_make_the_same_program_again(caten: Any, folder: Path, sample: str) -> None:
    spec = str(SAMPLES / f"{sample}.toml")
    steps = caten("schedule", spec, "--steps")
    assert (steps.code, steps.err) == (0, "")
    assert steps.out.startswith("(schedule")
    assert "applied" not in steps.out
    Path("mine.lisp").write_text(steps.out)
    assert caten("schedule", spec, "-s", "mine.lisp", "--steps").out == steps.out
    assert caten("render", spec, "-s", "mine.lisp").out == caten("render", spec).out


@pytest.mark.parametrize("sample", ["prefix_sum", "argmax"])
def test_the_steps_are_for_the_loops_that_a_given_schedule_meets(caten: Any, folder: Path, sample: str) -> None:
    """Long scans and searches are cut into blocks unless a schedule is given."""
    flags = (str(SAMPLES / f"{sample}.toml"), "-march=x86_64_v3", "--config", "OMP=1")
    assert "block" in caten("schedule", *flags).out
    steps = caten("schedule", *flags, "--steps")
    assert (steps.code, steps.err) == (0, "")
    Path("mine.lisp").write_text(steps.out)
    again = caten("schedule", *flags, "-s", "mine.lisp", "--steps")
    assert (again.code, again.out) == (0, steps.out)


def test_each_of_several_operators_takes_its_own_steps(caten: Any, folder: Path) -> None:
    two = ("axpy.toml", str(SAMPLES / "transpose.toml"))
    steps = caten("schedule", *two, "--steps")
    assert steps.code == 0
    assert steps.out.count("(loop ") == 2 == steps.out.count("(schedule")
    Path("mine.lisp").write_text(steps.out)
    assert caten("render", *two, "-s", "mine.lisp").out == caten("render", *two).out
    assert caten("render", two[1], "-s", "mine.lisp").out == caten("render", two[1]).out      # also one of them alone
    Path("whole.lisp").write_text(caten("schedule", *two).out)
    assert caten("render", *two, "-s", "whole.lisp").out == caten("render", *two).out


def test_an_operator_without_a_schedule_is_named(caten: Any, folder: Path) -> None:
    Path("mine.lisp").write_text("(loop Axpi (schedule))\n(loop Transpose (schedule))")
    refused = caten("schedule", "axpy.toml", "-s", "mine.lisp")
    assert refused.code == 1
    assert "mine.lisp:1:1: error: there is no schedule for Axpy [E504]" in refused.err
    assert "did you mean 'Axpi'?" in refused.err
    Path("mine.lisp").write_text("(loop Axpy (schedule))\n(loop Axpy (schedule))")
    assert "mine.lisp:2:1: error: there are 2 schedules for Axpy" in caten("schedule", "axpy.toml", "-s", "mine.lisp").err


def test_a_step_that_is_refused_has_its_place_in_the_schedule_of_its_operator(caten: Any, folder: Path) -> None:
    Path("mine.lisp").write_text("(loop Other (schedule))\n(loop Axpy\n  (schedule (split q 4)))")
    assert "mine.lisp:3:13: error: " in caten("schedule", "axpy.toml", "-s", "mine.lisp").err


def test_without_steps_the_schedule_is_empty_and_the_log_a_comment(caten: Any, folder: Path) -> None:
    assert caten("schedule", "axpy.toml", "-O0", "--steps").out == "(schedule)\n"
    lines = caten("schedule", "axpy.toml", "--steps", "--explain").out.splitlines()
    assert lines[0].startswith("(schedule ")
    assert len(lines) > 1
    assert all(line.startswith("; ") for line in lines[1:])

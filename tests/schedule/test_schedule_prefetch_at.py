"""What is asked for while copies are used: all that will be copied next."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from schedule_nets import program

from caten.core.size_formula import evaluate
from caten.loop.statements import Aref, For, LoopProgram, Prefetch, Setf, Stmt
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import loops_in

Values = dict[str, int]
LINE = 16                      # numbers
CONVOLUTION = """(for o 0 16 1 serial (for y 0 8 1 serial (for x 0 16 1 serial (for c 0 2 1 serial (for q 0 3 1 serial (for r 0 3 1 serial
 (incf (aref Y o y x) (* (aref X c (+ (* {step} y) q) (+ (* {step} x) r)) (aref F o c q r)))))))))"""
ARRAYS = "(buffer X f32 (2 32 64) (0 1 2) in) (buffer F f32 (16 2 3 3) (0 1 2 3) in) (buffer Y f32 (16 8 16) (0 1 2) inout)"
STEPS = "(split y 4) (split x 8) (reorder yo xo o c q r yi xi) (stage o X read scratch c q r yi xi)"


def run(stmts: tuple[Stmt, ...], at: Values) -> Iterator[tuple[Stmt, Values]]:
    """What loops run, one after the other, with the values of the loops."""
    for stmt in stmts:
        if isinstance(stmt, For):
            for i in range(evaluate(stmt.lo, at), evaluate(stmt.hi, at), evaluate(stmt.step, at)):
                yield from run(stmt.body, at | {stmt.name: i})
        else:
            yield stmt, at


def lines(node: LoopProgram, loop: str) -> tuple[dict[int, set[tuple[int, ...]]], dict[int, set[tuple[int, ...]]]]:
    """The lines of X that are asked for and that are copied, by the iterations of a loop."""
    asked: dict[int, set[tuple[int, ...]]] = {}
    copied: dict[int, set[tuple[int, ...]]] = {}
    for stmt, at in run(node.kernels[0].body, {}):
        into, ref = (asked, stmt.ref) if isinstance(stmt, Prefetch) else (copied,
                                                                          stmt.value) if isinstance(stmt, Setf) else (None, None)
        if into is not None and isinstance(ref, Aref) and ref.buffer == "X":
            *rows, place = [evaluate(i, at) for i in ref.index]
            into.setdefault(at[loop], set()).add((*rows, place // LINE))
    return asked, copied


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("at", ["q", "r", "c"])
def test_all_that_is_copied_next_is_asked_for(step: int, at: str) -> None:
    node = script.apply(program(CONVOLUTION.format(step=step), ARRAYS),
                        script.parse_schedule(f"(schedule {STEPS} (prefetch_at {at} yo X 1))").steps)
    asked, copied = lines(node, "yo")
    assert copied[1] <= asked[0]
    assert not copied[1] <= copied[0]


def test_all_that_is_read_in_place_next_is_asked_for() -> None:
    """Of B, a few rows at a time, for all rows of A; what is asked for does not depend on how many these are."""
    text = """(for po 0 6 1 serial (for jo 0 3 1 serial (for i 0 5 1 serial (for j 0 32 1 serial (for p 0 4 1 serial
        (incf (aref Y i (+ (* 32 jo) j)) (* (aref A i (+ (* 4 po) p)) (aref X (+ (* 4 po) p) (+ (* 32 jo) j)))))))))"""
    arrays = "(buffer A f32 (5 24) (0 1) in) (buffer X f32 (24 96) (0 1) in) (buffer Y f32 (5 96) (0 1) inout)"
    node = script.apply(program(text, arrays), script.parse_schedule("(schedule (prefetch_at jo po X 1))").steps)
    asked: dict[int, list[tuple[int, int]]] = {}
    for stmt, at in run(node.kernels[0].body, {}):
        if isinstance(stmt, Prefetch):
            assert isinstance(stmt.ref, Aref)
            row, column = [evaluate(i, at) for i in stmt.ref.index]
            asked.setdefault(at["po"], []).append((row, column // LINE))
    for po in range(6):
        assert sorted(asked[po]) == [(4 * po + 4 + p, line) for p in range(4) for line in range(6)]


def test_what_a_convolution_asks_for() -> None:
    text = CONVOLUTION.format(step=2).replace("o 0 16", "o 0 M").replace("y 0 8", "y 0 N").replace("x 0 16", "x 0 W")
    arrays = """(size M) (size N) (size W) (buffer X f32 (2 (+ (* 2 N) 1) (+ (* 2 W) 1)) (0 1 2) in) (buffer F f32 (M 2 3 3) (0 1 2 3) in)
 (buffer Y f32 (M N W) (0 1 2) inout)"""
    node = autoscheduler.schedule(program(text, arrays,
                                          '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))'))
    within = [loop.name for loop in loops_in(node)
              if any(isinstance(s, Prefetch) and "(aref X " in str(s.ref) for s in loop.body)]
    assert within == ["qh", "q"]                        # in wide tiles, and in the others

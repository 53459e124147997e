"""How much work a parallel loop is taken for, and where it is asked at run time."""
from __future__ import annotations

from typing import ClassVar

import pytest

from caten.core.expr import Var, index
from caten.core.program import resolve
from caten.core.text import read
from caten.loop.statements import For
from caten.render.cstyle import CStyle
from caten.render.work_estimate import in_floats, work
from caten.schedule.analysis.loop_queries import loops_in

PARAMS = "(buffer A f32 (M N) (0 1) in) (buffer Y f32 (M N) (0 1) inout) (buffer w f32 (M) (0) inout) (size M) (size N)"


class Threads(CStyle):
    settings: ClassVar = {"OMP": True}


def parallel(body: str) -> For:
    """The parallel loop of a program with that body."""
    program = resolve(read(f"(loop t {PARAMS} (kernel t {body}))")[0])
    return next(loop for loop in loops_in(program) if loop.mark == "parallel")


@pytest.mark.parametrize(("body", "expected"), [
    # a load and a store at two operations each, and one for the sum
    ("(for i 0 8 1 parallel (setf (aref w i) (+ (aref A i 0) 1.0)))", "40"),
    ("(for i 0 8 1 parallel (setf (aref w i) 1.0))", "16"),
    # vectors count as one operation, and in memory by their bytes
    ("(for i 0 8 1 parallel (if (<= 16 N) ((setf (vref Y 16 (i 0)) (+ (vref A 16 (i 0)) (splat 16 1.0))))))", "144"),
    # one whose elements lie apart is as many accesses
    ("(for i 0 1 1 parallel (if (<= 16 M) ((setf (vref Y 16 (0 i) 0) (vref A 16 (0 i) 0)))))", "65"),
    # what is read twice is loaded once; the arithmetic of indices is free
    ("(for i 0 8 1 parallel (setf (aref w i) (* (aref A i (+ i (* 2 i))) (aref A i (+ i (* 2 i))))))", "40"),
    # registers are free, a function is sixteen
    ("(for i 0 8 1 parallel (local t f32 () register) (setf (aref t) (tan (aref w i))) (setf (aref w i) (aref t)))", "144"),
    # 4 × 2 sums and products, 4 + 2 loads
    ("(for i 0 8 1 parallel (local t f32 (4 2) register) (for r 0 4 1 unroll (for c 0 2 1 unroll (incf (aref t r c) (* (aref A r i) (aref Y i c))))))", "224"),
    # a triangle has the rows of its middle
    ("(for i 0 8 1 parallel (for j 0 i 1 serial (setf (aref Y i j) 0.0)))", "64"),
    ("(for i 0 8 1 parallel (for j i 8 1 serial (setf (aref Y i j) 0.0)))", "64"),
])
def test_operations(body: str, expected: str) -> None:
    assert repr(work(parallel(body))) == expected


def test_an_inner_loop_asks_about_what_is_known_around_it() -> None:
    text = Threads().render(resolve(read(f"""(loop t {PARAMS} (kernel t (for p 0 N 64 serial (local own f32 (4) stack)
      (for i 0 M 1 parallel (for j p (min N (+ p 64)) 1 serial (setf (aref Y i j) 0.0))))))""")[0]))
    (asked,) = [line for line in text.splitlines() if "if ((double)" in line]
    assert "if ((double)M * " in asked
    assert "(double)p" in asked


@pytest.mark.parametrize(("more", "least"), [("", 98304), ("(kernel u (setf (aref w 0) 0.0))", 196608)])
def test_a_kernel_alone_is_shared_from_fewer_operations_on(more: str, least: int) -> None:
    loop = "(for i 0 M 1 parallel (for j 0 N 1 serial (setf (aref Y i j) 0.0)))"
    text = Threads().render(resolve(read(f"(loop t {PARAMS} (kernel t {loop}) {more})")[0]))
    assert f"> {least})" in text
    repeated = Threads().render(resolve(read(f"(loop t {PARAMS} (buffer Z f32 (M N) (0 1) inout) (kernel t {loop}) (repeat t (Y Z)))")[0]))
    assert "> 196608)" in repeated


def test_the_middle_of_one_tile_is_its_beginning() -> None:
    """Counts of tiles are whole numbers in float64, too: half of a tile less would leave nothing of the only one."""
    assert repr(in_floats((Var("N", "i64") + 7) // index(8), "f64")) == "(floor (/ (+ (cast f64 N) 7.0:f64) 8.0:f64))"

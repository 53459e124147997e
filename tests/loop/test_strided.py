"""What the indices alone say of two iterations, beside all elements that they touch."""
from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.loop.context import Context
from caten.loop.disjoint_accesses import Accesses
from caten.loop.statements import For, LoopProgram
from caten.schedule.analysis.loop_queries import loops_in


def nest(body: str, buffers: str = "(buffer Y f32 (N N) (0 1) inout) (buffer Z f32 (N) (0) inout)") -> tuple[For, Context]:
    """The outermost loop of a program, and what is known before it."""
    (text,) = read(f"(loop P {buffers} (size N) (size M) (kernel k {body}))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    return loops_in(program)[0], Context.of(program)


def apart(body: str, var: str = "i", iterations: int = 1 << 40, fixed: tuple[str, ...] = ()) -> set[str]:
    loop, context = nest(body)
    return Accesses(loop, {"Y", "Z"}, context).apart(var, iterations, fixed)


@pytest.mark.parametrize(("index", "separate"), [
    ("i 0", True), ("0 i", True), ("(+ i 3) 0", True), ("(* 2 i) 0", True), ("(- M i) 0", True), ("(+ (* 8 i) M) 0", True),
    ("0 0", False), ("M M", False), ("(* i M) 0", False), ("(floordiv i 2) 0", False), ("(mod i 8) 0", False), ("(* i i) 0", False)])
def test_an_axis_separates_iterations_where_it_moves_by_a_number(index: str, separate: bool) -> None:
    assert apart(f"(for i 0 N 1 serial (setf (aref Y {index}) 1.0))") == ({"Y"} if separate else set())


@pytest.mark.parametrize(("tile", "separate"), [("0 8", True), ("0 9", False), ("-1 7", True), ("-1 8", False), ("0 (min 8 (- N (* 8 i)))", True), ("0 M", False)])
def test_tiles_are_apart_where_none_is_longer_than_the_step(tile: str, separate: bool) -> None:
    body = f"(for i 0 N 1 serial (for j {tile} 1 serial (setf (aref Y (+ (* 8 i) j) 0) 1.0)))"
    assert apart(body) == ({"Y"} if separate else set())


@pytest.mark.parametrize(("vector", "separate"), [("(vref Y 8 (0 (* 8 i)))", True), ("(vref Y 8 (0 (* 4 i)))", False), ("(vref Y 8 (i 0))", True)])
def test_the_lanes_of_a_vector_are_elements(vector: str, separate: bool) -> None:
    assert apart(f"(for i 0 N 1 serial (setf {vector} (splat 8 1.0)))") == ({"Y"} if separate else set())


@pytest.mark.parametrize("body", [
    "(setf (aref Y i 0) (aref Y (+ i 1) 0))", "(setf (aref Y i 0) (aref Y (- M i) 0))", "(setf (aref Y i 0) 1.0) (setf (aref Y 0 i) 1.0)",
    "(setf (aref Y i 0) (aref Y (cast i64 (aref Z 0)) 0)) (setf (aref Z 0) 1.0)", "(let k i64 (* 2 i)) (setf (aref Y k 0) 1.0)"])
def test_accesses_that_move_otherwise_are_left_open(body: str) -> None:
    assert "Y" not in apart(f"(for i 0 N 1 serial {body})")


def test_other_names_may_differ_too_unless_they_are_fixed() -> None:
    body = "(for i 0 N 1 serial (for j 0 8 1 serial (setf (aref Y (+ (* 8 i) j) 0) 1.0)))"
    assert apart(body, "j") == set()
    assert apart(body, "j", fixed=("i",)) == {"Y"}


def test_what_may_wrap_is_left_open() -> None:
    """2^32 iterations that are 2^32 apart come back to the first element."""
    body = "(for i 0 N 1 serial (setf (aref Y (* 4294967296 i) 0) 1.0))"
    assert apart(body, iterations=1 << 20) == {"Y"}
    assert apart(body, iterations=1 << 32) == set()


@pytest.mark.parametrize(("body", "summed", "commuting"), [
    ("(incf (aref Z 0) 1.0)", True, True), ("(incf (aref Z M) 1.0 max)", True, True), ("(incf (aref Z i) 1.0)", False, True),
    ("(incf (aref Z 0) 1.0) (incf (aref Z 0) 2.0)", True, True), ("(incf (aref Z 0) 1.0) (incf (aref Z 1) 2.0)", False, True),
    ("(incf (aref Z 0) 1.0) (incf (aref Z 0) 2.0 max)", False, False), ("(incf (aref Z 0) (aref Z 1))", False, False),
    ("(incf (aref Z 0) (aref Z 0))", False, False), ("(incf (aref Z 0) 1.0) (for j 0 (cast i64 (aref Z 0)) 1 serial (incf (aref Z 0) 1.0))", False, False),
    ("(if (> (aref Z 0) 1.0) ((incf (aref Z 0) 1.0)))", False, False), ("(incf (aref Z (cast i64 (aref Z 0))) 1.0)", False, False),
    ("(for j 0 8 1 serial (for k j M 1 serial (incf (aref Z (+ j k)) 1.0)))", True, True),
    ("(for j 0 8 1 serial (for k i M 1 serial (incf (aref Z (+ j k)) 1.0)))", False, True),
    ("(if (< i M) ((incf (aref Z 0) 1.0)))", True, True), ("(if (= i M) ((incf (aref Z 0) 1.0)))", False, True),
    ("(if (and (<= M i) (< i N)) ((incf (aref Z 0) 1.0)))", True, True), ("(incf (aref Z 0) 1.0) (setf (aref Z 0) 0.0)", False, False)])
def test_what_is_only_added_to(body: str, summed: bool, commuting: bool) -> None:
    loop, context = nest(f"(for i 0 N 1 serial {body})")
    found = Accesses(loop, {"Z"}, context)
    assert ("Z" in found.summed()) == summed
    assert ("Z" in found.commuting()) == commuting


def drawn(rng: random.Random) -> tuple[str, list[list[tuple[int, int, int]]]]:
    """Accesses to Y, as a body and as the factors of i and j and the constant of each axis."""
    forms = [[(rng.choice((0, 1, 2, 3, 4, -1, -3)), rng.choice((0, 0, 1, 2, -1)), rng.randrange(-3, 4)) for _ in range(2)] for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.5:
        forms = [[(forms[0][axis][0], form[axis][1], form[axis][2]) for axis in range(2)] for form in forms]
    places = " ".join([f"(setf (aref Y {' '.join([f'(+ (+ (* {a} i) (* {b} j)) {c})' for a, b, c in form])}) 1.0)" for form in forms])
    return places, forms


def elements(forms: list[list[tuple[int, int, int]]], i: int, trips: int) -> Iterator[Any]:
    return (tuple([a * i + b * j + c for a, b, c in form]) for form, j in product(forms, range(trips)))


@pytest.mark.slow
def test_arrays_that_are_said_to_be_apart_are() -> None:
    rng, said = random.Random(5), 0
    for _ in range(600):
        trips, (places, forms) = rng.randrange(1, 5), drawn(rng)
        if apart(f"(for i 0 9 1 serial (for j 0 {trips} 1 serial {places}))"):
            said += 1
            touched = [set(elements(forms, i, trips)) for i in range(9)]
            assert not any(touched[a] & touched[b] for a in range(9) for b in range(a)), places
    assert said > 100

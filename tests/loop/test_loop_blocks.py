"""Iterations that keep to blocks of their own: blocks cut off by the end of the array, tails, vectors, conditions; and a net beside all elements touched."""
from __future__ import annotations

import random

import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.loop.block_accesses import arrays_in_disjoint_blocks
from caten.loop.context import Context
from caten.loop.statements import LoopProgram
from caten.schedule.analysis.loop_queries import loops_in

LENGTHS = (2, 3, 8, 12, 1024)


def apart(body: str, loop: str = "i 0 (floordiv (+ N 1023) 1024) 1") -> bool:
    """Is Y, of the outermost loop, written and read in blocks?"""
    (text,) = read(f"(loop P (buffer Y f32 (N N) (0 1) inout) (buffer X i64 (N) (0) in) (buffer Z i64 (N) (0) inout) (buffer W f32 (M N) (0 1) in) (size N) (size M) "
                   f"(kernel k (for {loop} serial {body})))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    return arrays_in_disjoint_blocks(loops_in(program)[0], Context.of(program), {"Y"}) == {"Y"}


def block(length: int, index: str = "(+ (* {} i) j)", end: str = "(min {0} (- N (* {0} i)))", start: str = "0") -> str:
    """A loop over one block, for its text in a loop over blocks of this length."""
    return f"(for j {start} {end.format(length)} 1 serial (setf (aref Y {index.format(length)} 0) 1.0))"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("cut", [2, 4, 8])
def test_blocks_in_parts_are_apart(length: int, cut: int) -> None:
    """A block, cut short by the end of the array, as tiles and what remains of it; under a condition, and beside a row that is the same in all."""
    end, tile = f"(min {length} (- N (* {length} i)))", f"(+ (* {length} i) (+ (* {cut} o) p))"
    tiles = f"(for o 0 (floordiv {end} {cut}) 1 serial (for p 0 {cut} 1 serial (setf (aref Y {tile} M) 1.0)))"
    tail = f"(for t (* {cut} (floordiv {end} {cut})) {end} 1 serial (if (= (mod t 3) (aref X t)) ((setf (aref Y (+ (* {length} i) t) 0) 1.0))))"
    lanes = f"(for v 0 (floordiv {end} {cut}) 1 serial (setf (vref Y {cut} ((+ (* {length} i) (* {cut} v)) 0) 0) (splat {cut} 1.0)))"
    last = f"(+ (* {length} i) (* {cut} (floordiv {end} {cut})))"
    masked = (f"(setf (vref Y {cut} ({last} 0) 0 (< (ramp {cut} (* {cut} (floordiv {end} {cut})) 1) (splat {cut} {end}))) (splat {cut} 1.0))")
    loop = f"i 0 (floordiv (+ N {length - 1}) {length}) 1"
    assert apart(f"{tiles} {tail} {lanes} {masked}", loop)
    assert not apart(f"{tiles} {tail.replace(f'{length} i', f'{length + 1} i')}", loop)


@pytest.mark.parametrize("length", LENGTHS)
def test_what_leaves_its_block_is_left_open(length: int) -> None:
    loop = f"i 0 (floordiv (+ N {length - 1}) {length}) 1"
    assert apart(block(length), loop)
    assert apart(block(length, "(- (- N 1) (+ (* {} i) j))"), loop)                                 # downwards from the end
    assert apart(block(length, "(+ (* {} i) (+ j 5))"), loop)
    assert not apart(block(length, end=f"{length + 1}"), loop)
    assert not apart(block(length, start="-1"), loop)
    assert not apart(block(length, "(+ (* {} i) (* 2 j))"), loop)
    assert not apart(block(length, end="(- N (* {} i))"), loop)
    assert not apart(f"{block(length)} (setf (aref Y (* {length} (+ i 1)) 0) 1.0)", loop)          # the first of the next block


@pytest.mark.parametrize("body", ["(setf (aref Y (+ (* 1024 i) (aref Z i)) 0) 1.0) (setf (aref Z 0) 0)", "(setf (aref Y (* 1024 (aref X i)) 0) 1.0)",
                                  "(setf (aref Y i 0) 1.0)", "(setf (aref Y (+ (* 1024 i) (* i i)) 0) 1.0)", "(setf (aref Y (* 1024 (floordiv i 2)) 0) 1.0)",
                                  "(for j 0 1024 1 serial (setf (aref Y (+ (+ (* 1024 i) j) (* N j)) 0) 1.0))"])
def test_other_indices_are_left_open(body: str) -> None:
    assert not apart(body)


def test_blocks_that_are_said_to_be_apart_are() -> None:
    """Random bodies of loops that step by blocks, beside the elements that each iteration touches, for sizes around the length."""
    rng, said = random.Random(7), 0
    for _ in range(400):
        length, sign, count = rng.choice((2, 3, 4)), rng.choice((1, 1, -1)), rng.randrange(1, 4)
        forms = [(rng.randrange(-2, 3) if rng.random() < 0.3 else 0, rng.choice((1, 1, 1, -1, 2)), rng.choice((length - 1, length, length, length + 1)),
                  rng.random() < 0.5) for _ in range(count)]
        body = "".join([f"(for j{k} 0 {f'(min {most} (- N (* {length} i)))' if cut else most} 1 serial "
                        f"(setf (aref Y (+ (* {sign * length} i) (+ (* {by} j{k}) {first})) 0) 1.0))" for k, (first, by, most, cut) in enumerate(forms)])
        if not apart(body, f"i 0 (floordiv (+ N {length - 1}) {length}) 1"):
            continue
        said += 1
        for size in range(4 * length):
            touched = [{sign * length * i + by * j + first for first, by, most, cut in forms for j in range(min(most, size - length * i) if cut else most)}
                       for i in range((size + length - 1) // length)]
            assert not any(touched[a] & touched[b] for a in range(len(touched)) for b in range(a)), body
    assert said > 60, said


ROWS = "i 0 M 1"


def row(index: str, end: str = "N", start: str = "0") -> str:
    return f"(for j {start} {end} 1 serial (setf (aref Y {index} 0) 1.0))"


@pytest.mark.parametrize("cut", [2, 8])
def test_rows_as_long_as_a_size_are_apart(cut: int) -> None:
    """Rows of N elements in one axis: element by element, as vectors, and the vector at the end that the row cuts off."""
    whole = f"(* {cut} (floordiv N {cut}))"
    lanes = f"(for v 0 (floordiv N {cut}) 1 serial (setf (vref Y {cut} ((+ (* i N) (* {cut} v)) 0) 0) (splat {cut} 1.0)))"
    masked = f"(setf (vref Y {cut} ((+ (* i N) {whole}) 0) 0 (< (ramp {cut} {whole} 1) (splat {cut} N))) (splat {cut} 1.0))"
    assert apart(row("(+ (* i N) j)"), ROWS)
    assert apart(f"{lanes} {masked}", ROWS)
    assert not apart(f"{lanes} {masked.replace('(splat ' + str(cut) + ' N)', '(splat ' + str(cut) + ' (+ N 1))')}", ROWS)
    assert not apart(row("(+ (* i N) j)", "(+ N 1)"), ROWS)
    assert not apart(row("(+ (* i N) j)") + row("(+ (* i (+ N 1)) j)"), ROWS)
    assert not apart(row("(+ (* i N) (* 2 j))"), ROWS)
    assert not apart(row("(+ (* i (aref Z 0)) j)") + "(setf (aref Z 0) 3)", ROWS)


def test_rows_that_are_said_to_be_apart_are() -> None:
    """Random bodies over rows as long as a size, beside the elements that each iteration touches."""
    rng, said = random.Random(9), 0
    for _ in range(300):
        forms = [(rng.randrange(-1, 2) if rng.random() < 0.3 else 0, rng.choice((1, 1, 1, -1, 2)), rng.choice((0, 0, 0, 1, -1)), rng.choice((1, 1, 1, 2)))
                 for _ in range(rng.randrange(1, 4))]
        text = "".join([f"(for j{k} 0 (+ N {most}) 1 serial (setf (aref Y (+ (* {times} (* i N)) (+ (* {by} j{k}) {first})) 0) 1.0))"
                        for k, (first, by, most, times) in enumerate(forms)])
        if not apart(text, ROWS):
            continue
        said += 1
        for n in range(6):
            touched = [{times * i * n + by * j + first for first, by, most, times in forms for j in range(n + most)} for i in range(4)]
            assert not any(touched[a] & touched[b] for a in range(len(touched)) for b in range(a)), text
    assert said > 40, said

"""Nests over reshaped and flat arrays: planned like those over the axes they stand for, with the same results."""
from __future__ import annotations

import numpy as np
import pytest
from schedule_nets import assert_same, assert_sound, program

import caten
from caten import driver, loading
from caten.core.program import Schedule
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram, Transpose, Vref
from caten.options import Options
from caten.schedule import autoscheduler, script

AVX512 = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))'
SIZES = ((0, 0, 0), (1, 1, 1), (17, 9, 2), (5, 66, 3), (3, 0, 4), (33, 16, 17))
FLAT = "(size M) (size N) (size K) (buffer a f32 ((* M K)) (0) in) (buffer b f32 ((* K N)) (0) in) (buffer c f32 ((* M N)) (0) inout)"
DENSE = "(size M) (size N) (size K) (buffer a f32 (M K) (0 1) in) (buffer b f32 (K N) (0 1) in) (buffer c f32 (M N) (0 1) inout)"


def scheduled(before: LoopProgram) -> list[str]:
    """The steps of the schedule, which is checked."""
    after = autoscheduler.schedule(before)
    assert_sound(after)
    fact = after.first(Schedule)
    assert fact is not None
    assert script.apply(before, script.parse_schedule(show(fact)).steps) is after
    assert_same(before, after, SIZES)
    return [show(step) if hasattr(step, "children") else " ".join(map(str, step)) for step in fact.steps]


@pytest.mark.slow
def test_a_product_of_flat_arrays_has_the_plan_of_one_of_matrices() -> None:
    nest = "(for i 0 M 1 serial (for j 0 N 1 serial (for k 0 K 1 serial (incf (aref c {}) (* (aref a {}) (aref b {}))))))"
    flat = scheduled(program(nest.format("(+ (* i N) j)", "(+ (* i K) k)", "(+ (* k N) j)"), FLAT, AVX512))
    dense = scheduled(program(nest.format("i j", "i k", "k j"), DENSE, AVX512))
    assert {step for step in flat if step.startswith("unflatten")} == {"unflatten c 0 N", "unflatten a 0 K", "unflatten b 0 N"}
    assert flat[3:] == dense


@pytest.mark.parametrize(("text", "first"), [
    ("(for i 0 (* M N) 1 serial (setf (aref c i) (aref X (mod i M) (floordiv i M))))", ["unfuse i M", "unflatten c 0 M"]),
    # what is behind another array that was joined with it
    ("(for i M (* M (+ N 1)) 1 serial (setf (aref c (- i M)) (aref X (mod i M) (- (floordiv i M) 1))))", ["unfuse i M", "unflatten c 0 M"]),
    ("(for r 0 K 1 serial (for i 0 (* M N) 1 serial (setf (aref d r i) (* (aref e r (floordiv i N)) (aref f r (mod i N))))))",
     ["unfuse i N", "unflatten d 1 N"])])
def test_quotients_by_a_size_become_loops(text: str, first: list[str]) -> None:
    arrays = """(size M) (size N) (size K) (buffer X f32 (M N) (0 1) in) (buffer c f32 ((* M N)) (0) out)
        (buffer d f32 (K (* M N)) (0 1) out) (buffer e f32 (K M) (0 1) in) (buffer f f32 (K N) (0 1) in)"""
    used = [part for part in ("X", "c", "d", "e", "f") if f"aref {part} " in text]
    params = " ".join([f"(buffer {part.strip()}" if n else part for n, part in enumerate(arrays.split("(buffer")) if not n or part.split()[0] in used])
    before = program(text, params, AVX512)
    assert scheduled(before)[:2] == first
    after = autoscheduler.schedule(before)
    assert any(isinstance(n, Vref | Transpose) for k in after.kernels for n in k.unique())
    assert "mod" not in show(after.kernels[0])


def test_a_number_that_divides_a_size_by_an_equation_of_the_call_divides_its_loop() -> None:
    """Pairs that lie next to each other are rotated: x has twice as many elements as c, in sizes of their own."""
    pairs = """[composite]
name = "Rotated"
inputs = ["x{float}[N]", "c{float}[M]"]
outputs = ["y{float}[N]"]
[implementation]
lang = "python"
code = "return np.stack([x[0::2] * c, x[1::2] - c], axis=-1).reshape(x.shape)"
"""
    made = []
    for opt in (1, 2):
        (loaded,) = loading.load_programs(SpecText("f.toml", pairs, "toml"), Options(opt=opt))
        loops = driver.advance(loaded, "loop", Options(opt=opt))
        assert isinstance(loops, LoopProgram)
        made.append(loops)
    before, after = made
    fact = after.first(Schedule)
    assert fact is not None
    assert "(unfuse i 2)" in show(fact)
    assert ["floordiv i 2" in show(loops.kernels[0]) for loops in made] == [True, False]
    assert_same(before, after, ((0, 0), (14, 7)))


@pytest.mark.parametrize(("value", "steps"), [
    # zeros between elements, from the first one or another one on; elements in turn
    ("(where (= (mod i 3) 0) (aref x (floordiv i 3)) 0.0)", ["unfuse i 3"]),
    ("(where (and (<= 1 i) (= (mod (+ i 2) 3) 0)) (aref x (- (floordiv (+ i 2) 3) 1)) 0.0)", ["unfuse i 3"]),
    ("(where (= (mod i 3) 0) (aref x (floordiv i 3)) (aref w (floordiv i 3)))", ["unfuse i 3"]),
    # elements next to each other; an element for each quotient; many remainders
    ("(where (= (mod i 3) 0) (aref z (* 3 (floordiv i 3))) 0.0)", []),
    ("(where (= (mod i 3) 0) (aref z i) 0.0)", []),
    ("(aref x (floordiv i 3))", []),
    ("(where (= (mod i 2) 0) (aref x (floordiv i 3)) 0.0)", []),
    ("(where (= (mod i 12) 0) (aref x (floordiv i 12)) 0.0)", [])])
def test_a_small_remainder_that_chooses_an_element_at_the_quotient_becomes_a_loop(value: str, steps: list[str]) -> None:
    size = 12 if "z" in value or "12" in value else 3
    params = " ".join(["(size M) (size N) (size K)", *[f"(buffer {n} f32 ({shape}) (0) {way})" for n, shape, way in (
        ("x", "M", "in"), ("w", "M", "in"), ("z", "(* 12 M)", "in"), ("y", f"(* {size} M)", "out"))
        if n == "y" or f"aref {n} " in value]])
    before = program(f"(for i 0 (* {size} M) 1 serial (setf (aref y i) {value}))", params, AVX512)
    assert [step for step in scheduled(before) if step.startswith("unf")] == steps


@pytest.mark.parametrize(("value", "steps"), [
    ("(aref x (mod i 2) j (floordiv i 2))", ["unfuse i 2"]),
    ("(max (aref x (mod i 2) j (floordiv i 2)) 0.0)", ["unfuse i 2"]),
    ("(tanh (aref x (mod i 2) j (floordiv i 2)))", []),                              # in vectors
    ("(aref x (floordiv i 4) j (mod i 4))", [])])                                    # rows next to each other
def test_elements_of_rows_that_alternate_are_loops_over_rows(value: str, steps: list[str]) -> None:
    shape = "M N 4" if "4" in value else "2 N (* 2 M)"
    before = program(f"(for j 0 N 1 serial (for i 0 (* 4 M) 1 serial (setf (aref y j i) {value})))",
                     f"(size M) (size N) (size K) (buffer x f32 ({shape}) (0 1 2) in) (buffer y f32 (N (* 4 M)) (0 1) out)", AVX512)
    assert [step for step in scheduled(before) if step.startswith("unf")] == steps


def test_the_last_of_an_odd_number_of_elements_that_alternate_stays_alone() -> None:
    before = program("(for j 0 N 1 serial (for i 0 M 1 serial (setf (aref y j i) (aref x (mod i 2) j (floordiv i 2)))))",
                     "(size M) (size N) (size K) (buffer x f32 (2 N M) (0 1 2) in) (buffer y f32 (N M) (0 1) out)",
                     AVX512)
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert_same(before, after, ((0, 3, 1), (1, 2, 1), (40, 2, 1), (41, 3, 1)))
    assert scheduled(before)[:3] == ["split i 2", "fuse io ii", "unfuse ioii 2"]


@pytest.mark.parametrize(("count", "group"), [("32", "8"), ("(* 4 M)", "4"), ("(* 8 M)", "M")])
def test_the_elements_of_groups_are_a_batch_of_products(count: str, group: str) -> None:
    """y[i] += x[c * (i / c) + p] · w[i mod c, p]: a grouped product, however long the groups are."""
    text = (f"(for i 0 {count} 1 serial (for j 0 N 1 serial (for p 0 {group} 1 serial "
            f"(incf (aref y i j) (* (aref x (+ (* {group} (floordiv i {group})) p) j) (aref w (mod i {group}) p))))))")
    arrays = (f"(size M) (size N) (size K) (buffer x f32 ({count} N) (0 1) in) (buffer w f32 ({group} {group}) (0 1) in) "
              f"(buffer y f32 ({count} N) (0 1) inout)")
    steps = scheduled(program(text, arrays, AVX512))
    assert f"unfuse i {group}" in steps
    assert any(step.startswith("stage") and " x " in step for step in steps)        # packed, as in a batch of products
    other = text.replace(f"(+ (* {group} (floordiv i {group})) p)", "i")            # each element by itself
    assert not any(step.startswith("unfuse") for step in scheduled_only(program(other, arrays, AVX512)))


def test_quotients_by_constants_and_outside_of_a_long_loop_stay() -> None:
    three = "(for i 0 (* 3 M) 1 serial (setf (aref y i) (aref x (floordiv i 3))))"
    steps = scheduled(program(three, "(size M) (size N) (size K) (buffer x f32 (M) (0) in) (buffer y f32 ((* 3 M)) (0) out)", AVX512))
    assert not any(step.startswith("unf") for step in steps)
    outside = "(for i 0 (* M N) 1 serial (for j 0 K 1 serial (setf (aref y i j) (aref x (mod i M) j))))"
    checks = f"(ensure 1 (<= M (floordiv 1099511627776 (max N 1)))) (check 1 \"M\") {AVX512}"
    steps = scheduled(program(outside, "(size M) (size N) (size K) (buffer x f32 (M K) (0 1) in) (buffer y f32 ((* M N) K) (0 1) out)", checks))
    assert not any(step.startswith("unf") for step in steps)


def test_an_index_that_may_leave_its_row_stays_one() -> None:
    text = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref y (+ (* i K) j)) (aref x i j))))"
    facts = f"(ensure 1 (<= N K)) (check 1 \"N\") {AVX512}"
    arrays = "(size M) (size N) (size K) (buffer x f32 (M N) (0 1) in) (buffer y f32 ((* M K)) (0) inout)"
    assert any(step.startswith("unflatten y 0 K") for step in scheduled_only(program(text, arrays, facts)))
    shifted = text.replace("(* i K) j)", "(* i K) (+ j 1))")
    assert not any(step.startswith("unf") for step in scheduled_only(program(shifted, arrays, facts)))


def scheduled_only(before: LoopProgram) -> list[str]:
    fact = autoscheduler.schedule(before).first(Schedule)
    assert fact is not None
    return [" ".join(map(str, step)) for step in fact.steps]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 5, 4, 2), (1, 1, 1, 1), (2, 40, 3, 33), (4, 3, 0, 5), (7, 1, 20, 1)])
def test_library_operators_that_reshape(shape: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=shape[:2]).astype("f4"), rng.normal(size=shape[2:]).astype("f4")
    np.testing.assert_array_equal(caten.ops.kron(x, y), np.kron(x, y))
    four = rng.normal(size=shape).astype("f4")
    for axes in ((3, 2, 1, 0), (1, 0, 2, 3), (0, 2, 3, 1)):
        np.testing.assert_array_equal(caten.ops.reshape(np.ascontiguousarray(four.transpose(axes)), shape=[-1]), four.transpose(axes).reshape(-1))

"""Complex numbers are computed by their real and imaginary parts: products of matrices, maps and sums."""
from __future__ import annotations

import numpy as np
import pytest

from caten.core.expr import Op
from caten.core.program import InOrder, resolve
from caten.core.text import read
from caten.loop import verifier
from caten.schedule.analysis.complex_vectors import is_in_parts
from caten.semantics import interpret
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.boundaries import PARTS
from caten.tensor.fusion import boundaries_of, is_contraction
from caten.tensor.lower import lower
from caten.tensor.values import TensorProgram

TARGET = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () false true))'
A, B = "(read a i p)", "(read b p j)"


def program(factors: str, sizes: str = "M N K", facts: str = TARGET, over: str = "") -> TensorProgram:
    m, n, k = sizes.split()
    over = over or f"((p {k}))"
    return resolve(read(
        f"(tensor T (size M) (size N) (size K) {facts} (buffer a c64 ({m} {k}) (0 1) in) (buffer b c64 ({k} {n}) (0 1) in) "
        f"(buffer r f32 ({k} {n}) (0 1) in) (buffer y c64 ({m} {n}) (0 1) out) "
        f"(define v0 (reduce c64 ((i {m}) (j {n})) {over} add true (* {factors}))) (output y v0))")[0])


def real_products(made: TensorProgram) -> int:
    """The number of products of real matrices; there are no others."""
    found = [d.value for d in ready_for_fusion(made).definitions if is_contraction(d.value)]
    assert {value.type for value in found} == {"f32"}
    return len(found)


@pytest.mark.parametrize(("factors", "count"), [
    (f"{A} {B}", 4), (f"(conj {A}) {B}", 4), (f"(conj {A}) (conj {B})", 4), (f"{A} (cast c64 (read r p j))", 2), (f"(cast c64 (read r p j)) {A}", 2)])
def test_products_are_real_ones(factors: str, count: int) -> None:
    made = program(factors)
    assert real_products(made) == count
    assert {b.why for b in boundaries_of(ready_for_fusion(made)) if b.why is PARTS}
    rng = np.random.default_rng(0)
    a, b, r = rng.integers(-4, 5, (2, 7, 5)), rng.integers(-4, 5, (2, 5, 6)), rng.integers(-4, 5, (5, 6)).astype("f4")
    given = {"M": 7, "N": 6, "K": 5, "a": (a[0] + 1j * a[1]).astype("c8"), "b": (b[0] + 1j * b[1]).astype("c8"), "r": r}
    results = []
    for node in (lower(made), lower(made, BLOCKS)):
        verifier.verify(node)
        own = {**given, "y": np.zeros((7, 6), "c8")}
        interpret.run(node, own)
        results.append(own["y"])
    assert np.array_equal(*results)
    assert results[0].any()


@pytest.mark.parametrize("made", [
    program(f"{A} {B}", sizes="4 4 4"),                                                       # few products
    program(f"{A} {B}", facts=f"{TARGET} (in-order)"),
    program(f"(exp {A}) {B}"),                                                                # no element of an array
    ], ids=["few", "in order", "a function"])
def test_other_sums_stay(made: TensorProgram) -> None:
    assert {d.value.type for d in ready_for_fusion(made).definitions if d.name == "v0"} == {"c64"}
    assert not [d for d in ready_for_fusion(made).definitions if d.value.type == "f32"]


def test_the_parts_of_an_array_are_defined_once() -> None:
    text = str(program(f"{A} {B}")).replace("(output y v0)", "(define v1 (reduce c64 ((i M) (j N)) ((p K)) add true (* (conj (read a i p)) (read b p j))))"
                                            " (define v2 (compute c64 ((i M) (j N)) (+ (read v0 i j) (read v1 i j)))) (output y v2)")
    made = ready_for_fusion(resolve(read(text)[0]))
    assert [d.name for d in made.definitions if d.name[0] in "ab"] == ["a_real", "a_imag", "b_real", "b_imag"]


@pytest.mark.parametrize(("value", "shape", "sums"), [
    ("(reduce c64 ((i M)) ((p K)) add true (* (read a i p) (read x p)))", "(M)", 2),
    ("(reduce c64 ((i M)) ((p K)) add true (* (conj (read a i p)) (- (read x p) 2j:c64)))", "(M)", 2),
    ("(reduce c64 ((i M)) ((p K)) add (< p i) (read a i p))", "(M)", 2),
    ("(reduce c64 ((i M)) ((p K)) add true (* (read a i p) (cast c64 (read r p))))", "(M)", 2),
    ("(reduce c64 ((i M)) ((p K)) add true (where (< p i) (neg (read a i p)) (complex (read r p) 1.0)))", "(M)", 2),
    ("(reduce c64 ((i M)) ((p K)) mul true (read a i p))", "(M)", 0),
    ("(compute c64 ((i M) (p K)) (+ (* (read a i p) (conj (read x p))) (read x p)))", "(M K)", 0)])
def test_sums_and_maps_are_computed_in_parts(value: str, shape: str, sums: int) -> None:
    made = resolve(read(
        f"(tensor T (size M) (size K) {TARGET} (buffer a c64 (M K) (0 1) in) (buffer x c64 (K) (0) in) (buffer r f32 (K) (0) in) "
        f"(buffer y c64 {shape} {'(0 1)' if 'K' in shape else '(0)'} out) (define v0 {value}) (output y v0))")[0])
    ready = ready_for_fusion(made)
    assert len([d for d in ready.definitions if d.value.type == "f32"]) == sums
    assert is_in_parts(lower(ready)) == (" mul true" not in value)
    rng = np.random.default_rng(0)
    a, x = rng.integers(-4, 5, (2, 7, 5)), rng.integers(-4, 5, (2, 5))
    given = {"M": 7, "K": 5, "a": (a[0] + 1j * a[1]).astype("c8"), "x": (x[0] + 1j * x[1]).astype("c8"), "r": rng.integers(-4, 5, 5).astype("f4")}
    results = []
    for node in (lower(ready), lower(made.replace(clauses=(*made.clauses, InOrder())))):
        verifier.verify(node)
        own = {**given, "y": np.zeros((7, 5) if "K" in shape else 7, "c8")}
        interpret.run(node, own)
        results.append(own["y"])
    assert np.array_equal(*results)
    assert results[0].any()


def test_maps_of_wide_complex_numbers_stay() -> None:
    """C compilers hold one of them in a register."""
    text = ("(tensor T (size M) {} (buffer a {} (M) (0) in) (buffer y {} (M) (0) out) "
            "(define v0 (compute {} ((i M)) (* (read a i) (read a i)))) (output y v0))")
    found = [ready_for_fusion(resolve(read(text.format(TARGET, *[dtype] * 3))[0])) for dtype in ("c64", "c128")]
    assert [any(isinstance(n, Op) and n.fn == "complex" for n in made.unique()) for made in found] == [True, False]


def test_maps_that_grow_too_long_stay() -> None:
    """Each square of a number has each of its parts four times."""
    def squared(times: int) -> TensorProgram:
        value = "(read a i)"
        for _ in range(times):
            value = f"(* {value} {value})"
        return resolve(read(f"(tensor T (size M) {TARGET} (buffer a c64 (M) (0) in) (buffer y c64 (M) (0) out) "
                            f"(define v0 (compute c64 ((i M)) {value})) (output y v0))")[0])
    assert [ready_for_fusion(squared(n)) == squared(n) for n in (1, 3, 8)] == [False, False, True]


def test_values_in_parts_are_read_by_their_parts() -> None:
    made = ready_for_fusion(resolve(read(
        f"(tensor T (size M) (size K) {TARGET} (buffer a c64 (M K) (0 1) in) (buffer y f32 (M) (0) out) "
        "(define v0 (reduce c64 ((i M)) ((p K)) add true (read a i p))) (define v1 (compute f32 ((i M)) (abs (read v0 i)))) (output y v1))")[0]))
    assert [d.value.type for d in made.definitions] == ["f32"] * 3


def test_real_maps_of_values_in_parts_that_grow_too_long_stay() -> None:
    def length(times: int) -> TensorProgram:
        value = "(read v0 i)"
        for _ in range(times):
            value = f"(* {value} {value})"
        return resolve(read(
            f"(tensor T (size M) (size K) {TARGET} (buffer a c64 (M K) (0 1) in) (buffer y f32 (M) (0) out) "
            "(define v0 (reduce c64 ((i M)) ((p K)) add true (read a i p))) "
            f"(define v1 (compute f32 ((i M)) (abs {value}))) (output y v1))")[0])
    found = [length(n) for n in (1, 8)]
    assert [ready_for_fusion(made).definitions[-1] == made.definitions[-1] for made in found] == [False, True]

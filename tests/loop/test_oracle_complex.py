"""The float64 reference of complex numbers of which one part is an infinity or NaN: the other part has a bound of its own, and is compared."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.frontend.op import OpProgram
from caten.semantics.comparison import Comparison, check, widened
from caten.semantics.interpret import run
from caten.semantics.oracle import bounded

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(("got", "expected", "passed"), [
    (complex(INF, 1), complex(INF, 1), True), (complex(INF, 1.001), complex(INF, 1), True), (complex(INF, 1.1), complex(INF, 1), False),
    (complex(1.001, -INF), complex(1, -INF), True), (complex(1.1, -INF), complex(1, -INF), False), (complex(1, INF), complex(1, -INF), False),
    (complex(NAN, 1.001), complex(NAN, 1), True), (complex(NAN, 1.1), complex(NAN, 1), False), (complex(1, NAN), complex(NAN, 1), False),
    (complex(NAN, INF), complex(INF, NAN), False), (complex(NAN, NAN), complex(NAN, NAN), True), (complex(INF, NAN), complex(INF, NAN), True),
    (complex(1, 2), complex(1, INF), False), (complex(1, INF), complex(1, 2), False), (complex(1, INF), complex(1.001, 3.403e38), True),
    (complex(1.001, 1), complex(1, 1), True), (complex(1.1, 1), complex(1, 1), False),
])
def test_each_part_is_compared(got: complex, expected: complex, passed: bool) -> None:
    result = check(np.array([got], np.complex64), np.array([expected]), np.array([0.001]), None, "c64")
    assert (result.passed, result.compared, result.loose) == (passed, 1, 0)


def test_an_ulp_is_that_of_the_whole_number() -> None:
    """A product's small part has the error of the great one."""
    assert check(np.complex64([1e6 + 0.05j]), np.array([1e6 + 0j]), None, None, "c64").passed
    assert not check(np.array([complex(INF, 0.05)], np.complex64), np.array([complex(INF, 0)]), None, None, "c64").passed


def compare(clauses: str, arguments: dict[str, Any]) -> tuple[Comparison, dict[str, Any], Any]:
    p = resolve(read(f"(op T {clauses})")[0])
    assert isinstance(p, OpProgram)
    wide = widened(p, arguments)
    own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    assert run(p, own) == run(bounded(p), wide) == 0
    assert not np.isnan(wide.get("Y__bound", np.zeros(()))).any()
    return check(own["Y"], wide["Y"], wide.get("Y__bound"), wide["Y__loose"], p.buffers["Y"].type), wide, own["Y"]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], odd: float) -> Any:
    """Some with a part that is an infinity or NaN."""
    made = (rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(np.complex64)
    for values in (made.real, made.imag):
        values[rng.random(shape) < odd] = rng.choice([INF, -INF, NAN])
    return made


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_onto_what_has_an_infinite_part_bounds_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, a, b = numbers(rng, (40,), 0.3), numbers(rng, (40, 9), 0.02), numbers(rng, (9,), 0)
    clauses = """(size N) (size K) (buffer A c64 (N K) (0 1) in) (buffer B c64 (K) (0) in) (buffer Y c64 (N) (0) inout)
                 (body (for i 0 N 1 serial (for k 0 K 1 serial (incf (aref Y i) (* (aref A i k) (aref B k))))))"""
    result, wide, own = compare(clauses, {"N": 40, "K": 9, "A": a, "B": b, "Y": y})
    partly = np.isfinite(wide["Y"].real) != np.isfinite(wide["Y"].imag)
    assert result.passed
    assert result.loose == 0
    assert partly.sum() > 5
    assert (wide["Y__bound"][partly] < 1e-3).all(), "the finite part decides"
    assert (wide["Y__bound"][partly] > 0).all()
    with np.errstate(invalid="ignore"):
        reverse = y.copy()
        for k in reversed(range(9)):
            products = a[:, k].real * b[k].real - a[:, k].imag * b[k].imag, a[:, k].real * b[k].imag + a[:, k].imag * b[k].real
            reverse.real, reverse.imag = reverse.real + products[0], reverse.imag + products[1]
        assert check(reverse, wide["Y"], wide["Y__bound"], wide["Y__loose"], "c64").passed, "in another order"
        for wrong in (own + np.where(partly, 0.01, 0).astype(np.complex64), np.where(np.isnan(own.real), own + 0.01j, own)):
            assert check(wrong, wide["Y"], wide["Y__bound"], wide["Y__loose"], "c64").passed == bool((wrong == own)[partly].all())
    finite_moved = own.copy()
    finite_moved.real[partly & np.isfinite(own.real)] += 0.01
    finite_moved.imag[partly & np.isfinite(own.imag)] += 0.01
    assert not check(finite_moved, wide["Y"], wide["Y__bound"], wide["Y__loose"], "c64").passed


def test_a_comparison_of_what_has_an_infinite_part_is_decided_by_the_other() -> None:
    """Two inexact numbers: equal up to an error in the finite part, or surely not."""
    x = np.array([complex(INF, 1), complex(INF, 1), complex(INF, 1), complex(NAN, 1), complex(INF, 1)], np.complex64)
    y = np.array([complex(INF, 1), complex(INF, 2), complex(-INF, 1), complex(NAN, 1), complex(1, INF)], np.complex64)
    one = np.complex64([1.1 + 0.3j])
    clauses = """(size N) (buffer A c64 (N) (0) in) (buffer B c64 (N) (0) in) (buffer S c64 (1) (0) in) (buffer Y i32 (N) (0) out)
                 (body (let s c64 (* (aref S 0) (aref S 0)))
                       (for i 0 N 1 serial (setf (aref Y i) (where (= (+ (aref A i) s) (+ (aref B i) s)) 1 0))))"""
    result, wide, _ = compare(clauses, {"N": 5, "A": x, "B": y, "S": one, "Y": np.zeros(5, np.int32)})
    assert wide["Y__loose"].tolist() == [1, 0, 0, 0, 0]
    assert result.passed

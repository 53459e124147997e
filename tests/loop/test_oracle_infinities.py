"""The float64 reference where infinities, NaN and zeros take part: its bounds hold what float32 does, and are finite where the result is sure."""
from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from caten.core.expr import FALSE, TRUE
from caten.core.program import resolve
from caten.core.scalars import OPERATORS
from caten.core.text import read
from caten.frontend.op import OpProgram
from caten.semantics import error_tracking, rounding_bounds
from caten.semantics.comparison import Comparison, check, widened
from caten.semantics.interpret import run
from caten.semantics.oracle import bounded

INF = float("inf")
SPECIAL = np.float32([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e-30, 80.0, -80.0, 200.0, -200.0, 1e20, -1e20, 3e38, -3e38, INF, -INF, np.nan])
FLOATS = [fn for fn, row in OPERATORS.items() if row.accepts("float") and fn not in ("where", "isnan", "isinf", "lt", "eq", "gt", "le", "ge", "ne")]


def compare(clauses: str, arguments: dict[str, Any], output: str = "Y") -> tuple[Comparison, dict[str, Any]]:
    """A program in its declared types against its bounded form."""
    p = resolve(read(f"(op T {clauses})")[0])
    assert isinstance(p, OpProgram)
    wide = widened(p, arguments)
    own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    assert run(p, own) == run(bounded(p), wide) == 0
    assert not np.isnan(wide.get(f"{output}__bound", np.zeros(()))).any(), "no bound is NaN"
    return check(own[output], wide[output], wide.get(f"{output}__bound"), wide[f"{output}__loose"], p.buffers[output].type), wide


def elementwise(expr: str, x: Any, y: Any = 0.0, z: Any = 0.0, out: str = "f32") -> tuple[Comparison, dict[str, Any]]:
    x, y, z = [np.array(a, np.float32) for a in np.broadcast_arrays(np.atleast_1d(x), y, z)]
    lets = " ".join(f"(let {n} f32 (aref {n.upper()} i))" for n in "xyz")
    buffers = " ".join(f"(buffer {n} f32 (N) (0) in)" for n in "XYZ")
    clauses = f"(size N) {buffers} (buffer R {out} (N) (0) out) (body (for i 0 N 1 serial {lets} (setf (aref R i) {expr})))"
    zeros = np.zeros(len(x), {"f32": np.float32, "i32": np.int32, "bool": np.bool_, "f16": np.float16}[out])
    return compare(clauses, {"N": len(x), "X": x, "Y": y, "Z": z, "R": zeros}, "R")


@pytest.mark.parametrize("fn", FLOATS)
def test_every_operator_on_every_combination_of_special_values(fn: str) -> None:
    """Each operand exact or rounded before."""
    row = OPERATORS[fn]
    values = SPECIAL if row.arity < 3 else SPECIAL[[0, 2, 3, 8, 14, 15, 16, 17, 18]]
    grid = [g.ravel() for g in np.meshgrid(*[values] * row.arity)]
    for inexact in product((False, True), repeat=row.arity):
        operands = " ".join(f"(* 1.0000001 {n})" if moved else n for n, moved in zip("xyz", inexact, strict=False))
        result, wide = elementwise(f"({row.spelling} {operands})", *grid)
        at = result.worst or (0,)
        given = [float(g[at]) for g in grid]
        assert result.passed, f"{fn} {given} inexact {inexact}: ratio {result.ratio}, wanted {wide['R'][at]}"
        if not any(inexact):
            assert result.loose == 0


@pytest.mark.parametrize(("expr", "value"), [
    ("(exp (- x (* 1.1 y)))", 0), ("(exp2 (- x (* 1.1 y)))", 0), ("(sigmoid (- x (* 1.1 y)))", 0), ("(/ (* 1.1 y) x)", 0), ("(rsqrt (neg x))", 0),
    ("(* (exp (- x (* 1.1 y))) (* 1.1 y))", 0), ("(tanh (- x (* 1.1 y)))", -1), ("(erfc (neg x))", 0), ("(max x (* 1.1 0.0))", 0), ("(atan2 (* 1.1 y) (neg x))", 0),
    ("(- x (* 1.1 y))", -INF), ("(+ x x)", -INF), ("(* x (* 1.1 y))", -INF), ("(/ x (* 1.1 y))", -INF), ("(min x (* 1.1 y))", -INF), ("(log (* 0.0 y))", -INF),
    ("(exp (neg x))", INF), ("(sqrt (neg x))", INF), ("(cast f32 (cast f16 (- x (* 1.1 y))))", -INF), ("(where (< x (* 1.1 y)) x y)", -INF), ("(- x x)", np.nan),
    ("(exp (+ 800.0 (* 1.1 y)))", INF), ("(* 3e38 (* 1.1 y))", INF), ("(cosh (* 200.0 (* 1.1 y)))", INF),
])
def test_what_is_sure_at_infinity_has_no_error(expr: str, value: float) -> None:
    """x = -∞ and y = 1.25; an operand of 1.1 · y is inexact."""
    result, wide = elementwise(expr, -INF, 1.25)
    assert result == Comparison(0.0, None, True, 0, 1)
    assert np.array_equal(wide["R"], [value], equal_nan=True)
    assert wide.get("R__bound", np.zeros(1)) == 0 or value == -1


@pytest.mark.parametrize("expr", [
    "(/ 1.0 (+ 1.0 (exp (neg (* 1.1 x)))))", "(log1p (exp (min (* 1.1 x) 20.0)))", "(/ (exp (* 1.1 x)) (+ 1.0 (exp (* 1.1 x))))", "(tanh (exp (* 1.1 x)))",
    "(+ (max (* 1.1 x) 0.0) (log1p (exp (neg (abs (* 1.1 x))))))", "(- 1.0 (/ 2.0 (+ 1.0 (exp (* 2.0 (* 1.1 x))))))", "(atan (* x (* 1.1 x)))",
])
def test_compositions_that_saturate_keep_finite_bounds(expr: str) -> None:
    x = np.concatenate([SPECIAL, np.linspace(-90, 90, 181, dtype=np.float32)])
    result, _ = elementwise(expr, x)
    assert result.passed
    assert result.compared > 0.98 * len(x)


def test_a_sum_of_infinities_of_one_sign_is_sure_and_one_whose_order_decides_is_not() -> None:
    p = "(size N) (buffer A f32 (N) (0) in) (buffer Y f32 () () inout) (body (for i 0 N 1 serial (incf (aref Y) (aref A i))))"

    def summed(*terms: float) -> tuple[Comparison, float]:
        result, wide = compare(p, {"N": len(terms), "A": np.float32(terms), "Y": np.zeros((), np.float32)})
        assert result.passed
        return result, float(wide["Y__bound"])
    assert summed(-INF, 1, 2)[1] == summed(-INF, -INF)[1] == summed(INF, 3e38, 3e38)[1] == summed(INF, -INF)[1] == 0
    assert summed(3e38, 3e38, 3e38)[1] == 0
    assert summed(3e38, 3e38, -3e38)[0].compared == summed(3e38, -3e38, 3e38, -3e38)[0].compared == 0
    assert 0 < summed(1e38, 1e38, -1e38)[1] < 1e32


PRODUCTS = "(size N) (buffer A f32 (N) (0) in) (buffer B f32 (N) (0) in) (buffer Y f32 () () inout) (body (for i 0 N 1 serial (incf (aref Y) (* (aref A i) (aref B i)))))"


def fused(x: Any, y: Any, z: Any) -> Any:
    """x · y + z, rounded once but for what float64 loses."""
    with np.errstate(all="ignore"):
        return np.float32(np.float64(x) * np.float64(y) + np.float64(z))


@pytest.mark.slice(2)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.slow
def test_a_sum_of_products_that_overflow_holds_in_any_order_fused_or_not(seed: int) -> None:
    """A fused multiply-add does not round its product, which may be a number then."""
    rng = np.random.default_rng(seed)
    values = np.float32([0.5, 1, -1, 2, -2.5, 3e38, -3e38, 2e38, 1e20, -1e20, 1e-30, INF, -INF])
    a, b = rng.choice(values[:-2], (2, 4))
    y = np.float32(rng.choice(values))
    if seed % 3 == 0:
        a[rng.integers(4)] = rng.choice([INF, -INF])
    result, wide = compare(PRODUCTS, {"N": 4, "A": a, "B": b, "Y": np.array(y)})
    assert result.passed
    for order in permutations(range(4)):
        for mixed in product((False, True), repeat=4):
            with np.errstate(all="ignore"):
                got, other = y, np.float32(0)
                for k, fuses in zip(order, mixed, strict=True):
                    got = fused(a[k], b[k], got) if fuses else got + a[k] * b[k]
                for k in order[2:]:
                    other = fused(a[k], b[k], other)
                halves = other + fused(a[order[1]], b[order[1]], fused(a[order[0]], b[order[0]], y))
            for one in (got, halves):
                assert check(np.array(one), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed, (a, b, y, order, mixed, one, wide["Y"])


def test_a_product_that_overflows_is_sure_where_nothing_is_against_it() -> None:
    def summed(start: float, *factors: tuple[float, float]) -> tuple[int, float]:
        a, b = np.float32(factors).T
        result, wide = compare(PRODUCTS, {"N": len(a), "A": a, "B": b, "Y": np.array(np.float32(start))})
        assert result.passed
        return result.compared, float(wide["Y"])
    assert summed(1, (3e38, 2), (2, 3)) == summed(INF, (3e38, 2)) == summed(0, (3e38, 2), (INF, 1)) == (1, INF)
    assert summed(-1, (3e38, -2), (-2, 3)) == summed(-INF, (3e38, -2)) == (1, -INF)
    assert summed(-3e38, (3e38, 1.5))[0] == summed(-INF, (3e38, 2))[0] == summed(0, (3e38, 2), (1, -INF))[0] == 0
    assert summed(0, (INF, 2), (1, -INF))[0] == summed(0, (0, INF), (1, 1))[0] == 1, "NaN in any order"


@pytest.mark.parametrize(("x", "y", "z", "open_"), [
    (3e38, 2, -3e38, True), (3e38, 2, 1, False), (3e38, 2, -INF, True), (3e38, 2, INF, False), (-3e38, 2, INF, True), (-3e38, 2, -1, False),
    (INF, 2, -INF, False), (INF, 2, -1, False), (3e38, 0.5, -INF, False), (3e38, 0.5, -3e38, False), (3e38, 2, np.nan, False),
])
def test_a_product_to_which_something_is_added_may_not_overflow(x: float, y: float, z: float, open_: bool) -> None:
    for expr in ("(+ (* x y) z)", "(+ z (* x y))"):
        result, _ = elementwise(expr, x, y, z)
        assert result.passed
        assert result.loose == open_
    assert elementwise("(- (* x y) (neg z))", x, y, z)[0].loose == 0, "that is not fused"


def test_what_may_be_anything_leaves_every_decision_on_it_open() -> None:
    """e^88.72284 lies at the edge where it overflows."""
    x = np.float32([88.72284])
    for expr, out in (("(isinf (exp (* 1.0 x)))", "bool"), ("(< (exp (* 1.0 x)) inf)", "bool"), ("(= (- (exp (* 1.0 x)) (exp (* 1.0 x))) 0.0)", "bool"), ("(cast i32 (exp (* 1.0 x)))", "i32"),
                      ("(isnan (- (exp (* 1.0 x)) (exp (* 1.0 x))))", "bool"), ("(/ 1.0 (exp (* 1.0 x)))", "f32"), ("(cast f16 (exp (* 1.0 x)))", "f16"), ("(sign (exp (* 1.0 x)))", "f32")):
        result, _ = elementwise(expr, x, out=out)
        assert (result.passed, result.loose, result.compared) == (True, 1, 0), expr


def test_fast_forms_may_give_0_for_what_is_below_twice_the_least_normal_number() -> None:
    p = resolve(read("(op T (size N) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (body (for i 0 N 1 serial (setf (aref Y i) (exp (aref X i))))))")[0])
    assert isinstance(p, OpProgram)
    for fast, passed in ((False, False), (True, True)):
        wide = widened(p, {"N": 2, "X": np.float32([-96, 1]), "Y": np.zeros(2, np.float32)})
        assert run(bounded(p, fast), wide) == 0
        assert check(np.float32([0, np.e]), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed is passed
        assert not check(np.float32([0, 0]), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed


def test_an_array_whose_bound_is_no_number_is_wrong_unless_it_is_equal() -> None:
    """No such bound is made; if one were, nothing may pass by it."""
    nan = np.full(2, np.nan)
    result = check(np.float32([3, 2]), np.array([1.0, 2.0]), nan, None, "f32")
    assert (result.passed, result.worst, result.loose, result.compared) == (False, (0,), 0, 2)
    assert check(np.float32([1, 2]), np.array([1.0, 2.0]), nan, None, "f32").passed


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinity has a rounding error, which is infinite, and a slope of 0 times that is NaN."""
    monkeypatch.setattr(rounding_bounds, "finite_size", rounding_bounds.size)
    monkeypatch.setattr(rounding_bounds, "is_finite", lambda x: TRUE)
    monkeypatch.setattr(rounding_bounds, "_is_exact_zero", lambda *_: FALSE)
    monkeypatch.setattr(error_tracking, "settled", lambda magnitude, bound, greatest: bound)


def test_a_bound_that_becomes_nan_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="no bound is NaN"):
        elementwise("(exp (- x (* 1.1 y)))", -INF, 1.25)

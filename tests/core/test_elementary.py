"""Elementary functions by their forms, evaluated by the meaning of the operators in them: within the bound of the row, special values included."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_decompose import compute, pairs, points, steps

from caten.core.expr import Expr, Op, Var
from caten.core.rewrite import rewrite
from caten.core.scalars import OPERATORS
from caten.mathematics import evaluate
from caten.mathematics.decompose import decompose
from caten.mathematics.elementary import elementary_table
from caten.mathematics.elementary.arithmetic import Arithmetic

SPECIAL, SPECIAL_PAIRS = 17, 14 * 14             # how many of `points` and `pairs` are special values
PRINCIPAL = frozenset(fn for fn, row in OPERATORS.items() if row.principal) - {"exp", "log", "sin"}
ARITHMETICS = [Arithmetic(dtype, fused, fast) for dtype in ("f32", "f64") for fused, fast in ((True, False), (True, True), (False, False))]
CASES = [pytest.param(fn, a, id=f"{fn}-{a.dtype}{'' if a.fused else '-unfused'}{'-fast' if a.fast else ''}")
         for fn in elementary_table.FORMS for a in ARITHMETICS if elementary_table.has_form(fn, a)]

PARTS = [pytest.param(fn, a, id=f"{fn}-{a.dtype}{'' if a.fused else '-unfused'}{'-fast' if a.fast else ''}")
         for fn in elementary_table.PARTIAL for a in ARITHMETICS]


def expanded(fn: str, a: Arithmetic) -> Expr:
    """The operator with every form in it expanded."""
    if fn in elementary_table.PARTIAL:
        return elementary_table.expand(fn, elementary_table.parameters(fn, a), a)        # type: ignore[no-any-return]
    rules = elementary_table.rules(a.fused, a.fast)
    whole = Op(fn, tuple(Var(v, a.dtype) for v in "xy"[:OPERATORS[fn].arity]))
    return rewrite(whole, rules)         # type: ignore[no-any-return]


def reference(fn: str, args: list[Any], dtype: str) -> tuple[Any, bool]:
    """The values rounded once, and whether they are: in float64 by way of long double, where numpy has the function and that is longer."""
    if dtype == "f64" and OPERATORS[fn].numpy and np.finfo(np.longdouble).nmant > 60:
        with np.errstate(all="ignore"):
            return getattr(np, OPERATORS[fn].numpy)(*[v.astype(np.longdouble) for v in args]).astype(np.float64), True
    return evaluate.apply(fn, args, dtype), dtype == "f32"


def allowed(fn: str, a: Arithmetic, exact: bool) -> float:
    """Steps: the bound of the row, and half of one for the reference's own rounding."""
    bound = max(OPERATORS[fn].ulp, elementary_table.FAST_ULP) if a.fast else OPERATORS[fn].ulp
    return math.floor(bound + 0.5) + (not exact)


def operands(fn: str, a: Arithmetic, every: int) -> list[Any]:
    """Every n-th point, and all of the special values at the end (of two operands: at the beginning)."""
    if OPERATORS[fn].arity == 2:
        return [np.concatenate([v[:SPECIAL_PAIRS], v[SPECIAL_PAIRS::every]]) for v in pairs(a.dtype)]
    x = points(a.dtype)
    x = np.concatenate([x[:-SPECIAL:every], x[-SPECIAL:]])
    most = elementary_table.limit(fn, a)
    return [x if most is None else x[np.isnan(x) | (np.abs(x) <= most)]]


@pytest.mark.slice(4)
@pytest.mark.parametrize(("fn", "a"), CASES)
@pytest.mark.slow
def test_a_form_is_within_its_bound(fn: str, a: Arithmetic, nightly: bool) -> None:
    args = operands(fn, a, 1 if nightly else 6)
    got, (expected, exact) = compute(expanded(fn, a), dict(zip("xy", args, strict=False))), reference(fn, args, a.dtype)
    assert got.dtype == expected.dtype
    apart = steps(got, expected)
    if a.fast:                                                      # what is below twice the least normal number may come out as 0
        apart = np.where((got == 0) & (np.abs(expected) < 2 * np.finfo(got.dtype).tiny), 0, apart)
    worst = int(np.argmax(apart))
    assert apart[worst] <= allowed(fn, a, exact), f"{fn} of {[v[worst] for v in args]}: {got[worst]!r}, not {expected[worst]!r}: {apart[worst]} steps"


@pytest.mark.slice(3)
@pytest.mark.parametrize("fn", elementary_table.NARROW_IF_FUSED)
def test_a_function_of_float32_is_as_near_as_the_table_says(fn: str) -> None:
    """Closer than whole steps tell: what a reduction or a constant in two parts loses is half a unit."""
    rng = np.random.default_rng(0)
    names = "xy"[:OPERATORS[fn].arity]
    args = [np.concatenate([rng.uniform(-most, most, 100_000) for most in (0.1, 1.0, 2.0, 10.0, 100.0, 32768.0)]).astype(np.float32) for _ in names]
    with np.errstate(all="ignore"):
        exact = getattr(np, str(OPERATORS[fn].numpy))(*[x.astype(np.float64) for x in args])
        *args, exact = [v[np.isfinite(exact) & (np.abs(exact) < np.finfo(np.float32).max) & (exact != 0)] for v in (*args, exact)]
        got = compute(expanded(fn, Arithmetic("f32")), dict(zip(names, args, strict=True))).astype(np.float64)
    assert len(exact) > 80_000
    apart = np.abs(got - exact) / np.ldexp(1.0, np.frexp(exact)[1] - 24)
    bound = elementary_table.measured(fn, "f32", fast=False)
    assert bound is not None
    assert apart.max() <= bound


@pytest.mark.parametrize(("fn", "a"), CASES)
def test_the_sign_of_zero_is_right(fn: str, a: Arithmetic) -> None:
    values = [np.array([0.0, -0.0, 1.0, math.inf, -math.inf], evaluate.numpy_type(a.dtype))]
    args = values if OPERATORS[fn].arity == 1 else [v.ravel() for v in np.meshgrid(*values * 2)]
    if elementary_table.limit(fn, a) is not None:
        args = [v[np.isfinite(v)] for v in args]
    got, expected = compute(expanded(fn, a), dict(zip("xy", args, strict=False))), evaluate.apply(fn, args, a.dtype)
    zero = expected == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize(("fn", "a"), CASES)
def test_a_form_holds_principal_operators_alone(fn: str, a: Arithmetic) -> None:
    found = {n.fn for n in decompose(expanded(fn, a), frozenset({"fma"})).unique() if isinstance(n, Op)}
    assert found <= PRINCIPAL
    assert a.fused or "fma" not in found


def test_fast_forms_have_fewer_operations() -> None:
    def size(fn: str, a: Arithmetic) -> int:
        return sum(isinstance(n, Op) for n in expanded(fn, a).unique())
    shorter = {(fn, d) for fn in elementary_table.FORMS for d in ("f32", "f64") if elementary_table.has_form(fn, Arithmetic(d))
               and size(fn, Arithmetic(d, fast=True)) < size(fn, Arithmetic(d))}
    assert {("exp", "f32"), ("exp", "f64"), ("log", "f32"), ("sin", "f32"), ("cos", "f32"), ("sigmoid", "f32"), ("tanh", "f64")} <= shorter
    assert size("exp", Arithmetic("f32", fast=True)) <= 16


def test_a_wrong_coefficient_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from caten.mathematics.elementary import exponential
    right = exponential.TAIL["f64"]
    monkeypatch.setitem(exponential.TAIL, "f64", (*right[:5], right[5] * (1 + 1e-6), *right[6:]))
    with pytest.raises(AssertionError, match="exp of"):
        test_a_form_is_within_its_bound("exp", Arithmetic("f64"), False)


def test_what_was_measured_is_within_the_table() -> None:
    for fn, errors in elementary_table.ERRORS.items():
        for (dtype, fast), found in zip([("f32", False), ("f64", False), ("f32", True), ("f64", True)], errors, strict=True):
            assert (found is not None) == elementary_table.has_form(fn, Arithmetic(dtype))
            bound = 2.0 if (fn, dtype) == ("pow", "f64") else OPERATORS[fn].ulp
            assert found is None or found <= (max(bound, elementary_table.FAST_ULP) if fast else bound), (fn, dtype, fast)
    assert elementary_table.ERRORS.keys() == elementary_table.FORMS.keys()


@pytest.mark.parametrize(("fn", "a"), [*[case for case in CASES if case.values[0] in ("exp", "exp2", "sigmoid")], *PARTS])
def test_results_of_zero_are_not_the_underflow_of_an_operation(fn: str, a: Arithmetic) -> None:
    """An operation whose result is subnormal, or rounds to zero from there, takes over a hundred cycles on many processors. Where e^x is 0, as for the
    -inf of a mask, no step of the form has such a result."""
    beyond = {"f32": [-105.0, -151.6, -200.0], "f64": [-747.0, -1077.0, -1500.0]}[a.dtype]
    x = np.array([-np.inf, -3e4, -2e3, *beyond], a.dtype.replace("f", "float"))
    tiny = np.finfo(x.dtype).tiny
    parts = [n for n in expanded(fn, a).unique() if n.dtype == a.dtype and isinstance(n, Op)]
    for part in parts:
        value = np.asarray(compute(part, {"x": x}))
        assert not np.any((np.abs(value) < tiny) & (value != 0)), part
        if part.fn == "mul":
            zero = np.broadcast_to(value == 0, x.shape)
            for arg in part.args:
                zero = zero & (np.asarray(compute(arg, {"x": x})) != 0)
            assert not np.any(zero), part


@pytest.mark.parametrize(("fn", "a"), PARTS)
def test_a_form_for_a_part_of_the_numbers_gives_the_same_bits_there(fn: str, a: Arithmetic, nightly: bool) -> None:
    x = points(a.dtype)
    x = np.concatenate([x, np.linspace(-120, 1, 5001 if nightly else 1001).astype(x.dtype)])
    if fn == "exp_of_nonpositive":
        x = x[~(x > 0)]
    got, whole = compute(expanded(fn, a), {"x": x}), compute(expanded("exp", a), {"x": np.minimum(x, 0)})
    assert len(x) > (4000 if nightly else 1000)
    assert np.array_equal(got, whole, equal_nan=True)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_exponentials_of_nonpositive_numbers_take_fewer_operations(dtype: str, fused: bool) -> None:
    def size(fn: str) -> int:
        return sum(isinstance(n, Op) for n in expanded(fn, Arithmetic(dtype, fused)).unique())
    assert size("exp_of_nonpositive") < size("exp_of_min_0") < size("exp") - 3

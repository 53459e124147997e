"""The meaning of every operator: against independent definitions, at the edges."""
from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from caten.core import integer_arithmetic
from caten.core.dtypes import DTYPES
from caten.core.expr import Const
from caten.core.scalars import OPERATORS
from caten.mathematics import evaluate

INT8 = [int(v) for v in range(-128, 128)]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-45, 1e-310, 3.4e38, math.inf, -math.inf, math.nan]


def accepted() -> list[tuple[str, str]]:
    return [(fn, dtype) for fn, row in OPERATORS.items() for dtype in DTYPES if row.defined_on(dtype)]


@pytest.mark.parametrize(("fn", "dtype"), accepted())
def test_every_row_gives_its_result_type_on_every_element_type_it_accepts(fn: str, dtype: str) -> None:
    row = OPERATORS[fn]
    like = evaluate.numpy_type(dtype)
    operands = (dtype,) * row.arity if fn != "where" else ("bool", dtype, dtype)
    scalars = [evaluate.numpy_type(t)(1) for t in operands]
    gives = DTYPES[row.result_type(operands)].numpy
    scalar = evaluate.apply(fn, scalars, dtype)
    assert np.asarray(scalar).dtype == gives
    arrays = [np.full(3, s) for s in scalars]
    array = evaluate.apply(fn, arrays, dtype)
    assert array.dtype == gives
    assert np.array_equal(array, np.full(3, scalar), equal_nan=like(0).dtype.kind in "fc")


@pytest.mark.parametrize("dtype", ["i8", "u8", "i64", "u64", "bool"])
@pytest.mark.slow
def test_folding_agrees_with_evaluation(dtype: str, nightly: bool) -> None:
    d = DTYPES[dtype]
    span = range(d.least, d.greatest + 1)[::1 if nightly else 5] if d.bits == 8 else [d.least, d.least + 1, d.greatest, d.greatest - 1, 0, 1, 2, 3, 7, 63, 64, 1 << 40]
    numbers = np.array(list(span), d.numpy)
    x, y = (a.ravel() for a in np.meshgrid(numbers, numbers))
    for fn, row in OPERATORS.items():
        compute = integer_arithmetic.function(fn, dtype)
        if not row.defined_on(dtype) or row.arity == 3:
            continue
        assert compute is not None, fn
        args = (x,) if row.arity == 1 else (x, y)
        expected = evaluate.apply(fn, args, dtype)
        plain = [[v.item() for v in a] for a in args]
        assert np.array_equal(expected, np.array([compute(*v) for v in zip(*plain, strict=True)], expected.dtype)), fn


def test_integers_wrap_in_their_own_width() -> None:
    assert evaluate.apply("add", (np.int8(127), np.int8(1)), "i8") == -128
    assert evaluate.apply("mul", (np.int32(1 << 20), np.int32(1 << 20)), "i32") == 0
    assert evaluate.apply("sub", (np.uint8(0), np.uint8(1)), "u8") == 255
    assert evaluate.apply("fma", (np.int8(100), np.int8(2), np.int8(0)), "i8") == -56


@pytest.mark.parametrize(("fn", "x", "y", "expected"), [
    ("floordiv", 7, -2, -4), ("mod", 7, -2, -1), ("truncdiv", 7, -2, -3), ("truncmod", 7, -2, 1), ("truncmod", -7, 2, -1),
    ("floordiv", 5, 0, 0), ("mod", 5, 0, 0), ("truncdiv", 5, 0, 0), ("truncmod", 5, 0, 0),
    ("floordiv", -128, -1, -128), ("truncdiv", -128, -1, -128), ("mod", -128, -1, 0),
    ("shl", 1, 7, -128), ("shl", 1, 8, 0), ("shl", 1, -1, 0), ("shr", -128, 100, -1), ("shr", 64, 100, 0), ("shr", -3, 1, -2),
])
def test_integer_edges(fn: str, x: int, y: int, expected: int) -> None:
    assert evaluate.apply(fn, (np.int8(x), np.int8(y)), "i8") == expected
    folded = integer_arithmetic.fold(fn, (Const(x, "i8"), Const(y, "i8")))
    assert folded is Const(expected, "i8")


def test_fold_declines_floats_and_types_results() -> None:
    assert integer_arithmetic.fold("add", (Const(1.0, "f32"), Const(2.0, "f32"))) is None
    assert integer_arithmetic.fold("and", (Const(1.0, "f32"), Const(2.0, "f32"))) is None
    assert integer_arithmetic.fold("lt", (Const(1, "i64"), Const(2, "i64"))) is Const(True, "bool")
    assert integer_arithmetic.fold("where", (Const(False, "bool"), Const(1, "i32"), Const(2, "i32"))) is Const(2, "i32")
    assert integer_arithmetic.convert("i8", Const(200, "i64")) is Const(-56, "i8")
    assert integer_arithmetic.convert("bool", Const(2, "i64")) is Const(True, "bool")
    assert integer_arithmetic.convert("f32", Const((1 << 24) + 1, "i64")) is None
    assert integer_arithmetic.convert("f32", Const(3, "i64")) is Const(3.0, "f32")


def test_max_and_min_propagate_nan_and_their_f_forms_ignore_it() -> None:
    one, nan = np.float32(1), np.float32(math.nan)
    for fn in ("max", "min"):
        assert math.isnan(evaluate.apply(fn, (one, nan), "f32"))
        assert math.isnan(evaluate.apply(fn, (nan, one), "f32"))
    for fn in ("fmax", "fmin"):
        assert evaluate.apply(fn, (one, nan), "f32") == 1 == evaluate.apply(fn, (nan, one), "f32")
    assert math.isnan(evaluate.apply("relu", (nan,), "f32"))
    assert math.isnan(evaluate.apply("clip", (nan, one, one), "f32"))
    assert evaluate.apply("clip", (np.float32(5), np.float32(3), np.float32(2)), "f32") == 2


def test_round_is_half_to_even() -> None:
    assert list(evaluate.apply("round", (np.array([0.5, 1.5, 2.5, -2.5]),), "f64")) == [0, 2, 2, -2]


def test_float_division_rounds_as_named() -> None:
    x, y = np.float64(-7.5), np.float64(2)
    assert [evaluate.apply(fn, (x, y), "f64") for fn in ("floordiv", "mod", "truncdiv", "truncmod")] == [-4, 0.5, -3, -1.5]


def test_fma_of_float32_is_not_rounded_to_float64_first() -> None:
    """x² lies between two numbers of float32, and x² + z above the middle by less than float64 sees."""
    x, z, above = np.float32(1 + 2**-12), np.float32(2**-80), np.float32(1 + 2**-11 + 2**-23)
    assert evaluate.apply("fma", (x, x, z), "f32") == above
    xs, zs = np.array([x, 2, x], np.float32), np.array([z, 1, -z], np.float32)
    assert evaluate.apply("fma", (xs, xs, zs), "f32").tolist() == [above, 5, 1 + 2**-11]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_is_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(7)
    like = evaluate.numpy_type(dtype)
    x, y = (rng.standard_normal(400).astype(like) for _ in range(2))
    z = (-(x * y) * (1 + rng.integers(-2, 3, 400) * np.finfo(like).eps)).astype(like)         # cancellation
    z[::3] = rng.standard_normal(len(z[::3]))
    x[:5], y[:5], z[:5] = [3e38, 1e-30, 0, -0.0, 1], [3e38, 1e-30, 1, 0.0, 1], [0, 0, -0.0, -0.0, math.inf]
    got = evaluate.apply("fma", (x, y, z), dtype)
    for i in range(len(x)):
        if math.isinf(z[i]):
            assert math.isinf(got[i])
            continue
        exact = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
        candidates = [got[i], np.nextafter(got[i], like(math.inf)), np.nextafter(got[i], like(-math.inf))]
        errors = [abs(Fraction(float(c)) - exact) for c in candidates if math.isfinite(c)]
        assert not math.isfinite(got[i]) or errors[0] == min(errors)


def test_functions_have_no_exceptions() -> None:
    for fn, row in OPERATORS.items():
        if row.accepts("float") and fn != "where":
            for dtype in ("f32", "f64"):
                values = np.array(EDGES, evaluate.numpy_type(dtype)) if dtype == "f64" else np.array([np.float32(v) for v in EDGES])
                for first in values:
                    for second in values if row.arity > 1 else values[:1]:
                        evaluate.apply(fn, (first, second, second)[:row.arity], dtype)


@pytest.mark.parametrize(("fn", "x", "expected"), [
    ("log", 0.0, -math.inf), ("log", -1.0, math.nan), ("exp", 1000.0, math.inf), ("sqrt", -1.0, math.nan), ("asin", 2.0, math.nan),
    ("log1p", -1.0, -math.inf), ("atanh", 1.0, math.inf), ("lgamma", -3.0, math.inf), ("sin", math.inf, math.nan), ("expm1", -1000.0, -1.0),
    ("sigmoid", -1000.0, 0.0), ("sigmoid", math.inf, 1.0), ("rsqrt", 0.0, math.inf), ("exp2", 5000.0, math.inf), ("acosh", 0.5, math.nan),
])
def test_function_edges(fn: str, x: float, expected: float) -> None:
    for dtype in ("f32", "f64"):
        got = float(evaluate.apply(fn, (x,), dtype))
        assert got == expected or (math.isnan(got) and math.isnan(expected))


@pytest.mark.parametrize(("fn", "x", "exact"), [("lgamma", -2.5, -0.05624371649767405), ("lgamma", -3.5, -1.3090066849930421), ("cbrt", -4.5, -1.6509636244473134)])
def test_functions_of_float64_that_python_computes_less_exactly(fn: str, x: float, exact: float) -> None:
    assert abs(evaluate.apply(fn, (x,), "f64") - exact) <= 4 * math.ulp(exact)


def test_the_modulus_of_a_complex_float32_is_rounded_once() -> None:
    x = np.array([0.1 + 3.3j, -2.7 + 0.4j], np.complex64)
    assert evaluate.apply("abs", (x,), "c64").tolist() == np.abs(x.astype(np.complex128)).astype(np.float32).tolist()


@pytest.mark.parametrize(("source", "target", "x", "expected"), [("i4", "u4", -3, 13), ("u4", "i4", 13, -3), ("i8", "bf16", -77, -77.0), ("u16", "bf16", 65535, 65536.0)])
def test_conversions_that_numpy_has_no_form_for(source: str, target: str, x: int, expected: float) -> None:
    values = np.array([x], evaluate.numpy_type(source))
    assert float(evaluate.cast(values, source, target)[0]) == expected


def test_lgamma_is_accurate_around_its_zeros() -> None:
    assert evaluate.apply("lgamma", (1 + 2.0**-40,), "f64") == pytest.approx(-0.5772156649015329 * 2.0**-40, rel=1e-12)
    assert evaluate.apply("lgamma", (2 + 2.0**-40,), "f64") == pytest.approx(0.42278433509846713 * 2.0**-40, rel=1e-12)
    for x in np.linspace(0.4, 9, 40):
        assert evaluate.apply("lgamma", (x,), "f64") == pytest.approx(math.lgamma(x), abs=1e-14)


def test_two_operand_poles() -> None:
    assert evaluate.apply("pow", (0.0, -1.0), "f64") == math.inf
    assert math.isnan(evaluate.apply("pow", (-2.0, 0.5), "f64"))
    assert evaluate.apply("pow", (10.0, 400.0), "f64") == math.inf
    assert evaluate.apply("atan2", (1.0, 0.0), "f32") == np.float32(math.pi / 2)


@pytest.mark.parametrize(("source", "target", "value", "expected"), [
    ("f32", "i8", 1000.0, 127), ("f32", "i8", -1000.0, -128), ("f64", "i64", 1e30, (1 << 63) - 1), ("f64", "i64", -1e30, -(1 << 63)),
    ("f64", "u64", 1.8e19, 18000000000000000000), ("f64", "u64", 1e30, (1 << 64) - 1), ("f32", "u8", -1.0, 0), ("f32", "i32", math.nan, 0),
    ("f32", "i32", -2.9, -2), ("f32", "u8", -0.5, 0), ("i64", "i8", 200, -56),
    ("i32", "u8", -1, 255), ("i8", "bool", 2, True), ("f32", "bool", 0.5, True),
    ("f32", "bool", -0.0, False), ("f32", "bool", math.nan, True), ("bool", "f32", True, 1.0), ("f64", "f32", 0.1, float(np.float32(0.1))),
    ("i64", "f32", (1 << 60) + (1 << 36) + 1, float((1 << 60) + (1 << 37))),            # once rounded: through float64 it would tie downwards
    ("c64", "f32", 3 + 4j, 3.0), ("f32", "c64", 2.0, 2 + 0j),
])
def test_casts(source: str, target: str, value: complex, expected: complex) -> None:
    for shape in ((), (2,)):
        got = evaluate.cast(np.full(shape, value, DTYPES[source].numpy)[()], source, target)
        assert np.asarray(got).dtype == DTYPES[target].numpy
        assert np.all(got == expected)


def test_bitcast() -> None:
    assert evaluate.bitcast(np.float32(1), "i32") == 0x3F800000
    assert evaluate.bitcast(np.int64(-1), "u64") == (1 << 64) - 1
    assert evaluate.bitcast(np.uint8(7), "bool")


def test_complex_numbers() -> None:
    z = np.complex64(3 - 4j)
    assert evaluate.apply("abs", (z,), "c64") == 5
    assert evaluate.apply("abs", (z,), "c64").dtype == np.float32
    assert evaluate.apply("imag", (z,), "c64") == -4
    assert evaluate.apply("conj", (z,), "c64") == 3 + 4j
    assert evaluate.apply("mul", (z, z), "c64") == -7 - 24j

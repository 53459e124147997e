"""16-bit floats and integers of 4 bits: rounding, conversions and arithmetic, against ml_dtypes, numpy and exact fractions."""
from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from caten.core import integer_arithmetic
from caten.core.dtypes import FORMATS, computed, rounded, short_bits, short_value
from caten.core.expr import Const
from caten.core.numpy_types import as_stored, kind_of, numpy_dtype
from caten.mathematics import evaluate

SHORT = ("f16", "bf16")
HALFWAY = {"f16": 1 + 2.0**-11, "bf16": 1 + 2.0**-8}


def every(dtype: str) -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))


def nearest(exact: Fraction, dtype: str) -> float:
    """The number nearest to a fraction, halves to even."""
    precision, last, greatest = FORMATS[dtype]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    place = Fraction(2) ** max(exponent + 1 - precision, last)
    value = round(size / place) * place
    return math.copysign(float(value) if value <= greatest else math.inf, exact)


@pytest.mark.parametrize("dtype", SHORT)
def test_bits_and_values_are_each_others_inverse(dtype: str) -> None:
    values = every(dtype).astype(np.float64)
    for bits in range(0, 1 << 16, 7):
        assert short_value(bits, dtype) == values[bits] or math.isnan(values[bits])
        assert short_bits(short_value(bits, dtype), dtype) == bits or math.isnan(values[bits])
    assert math.isnan(short_value(short_bits(math.nan, dtype), dtype))


@pytest.mark.parametrize("dtype", [*SHORT, "f32"])
def test_rounding_is_to_the_nearest_number_halves_to_even(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for x in np.ldexp(rng.uniform(-1, 1, 3000), rng.integers(-160, 132, 3000)).tolist():
        assert rounded(x, dtype) == nearest(Fraction(x), dtype)
    assert rounded(FORMATS[dtype][2] * (1 + 2.0**-30), dtype) == FORMATS[dtype][2]
    assert rounded(FORMATS[dtype][2] * 1.01, dtype) == math.inf
    assert math.copysign(1, rounded(-0.0, dtype)) == -1


@pytest.mark.parametrize("dtype", SHORT)
def test_a_float64_is_rounded_once(dtype: str) -> None:
    above, below = HALFWAY[dtype] + 2.0**-40, HALFWAY[dtype] - 2.0**-40         # float32 cannot tell them from the half
    assert float(evaluate.cast(np.float64(above), "f64", dtype)) > 1
    assert float(evaluate.cast(np.float64(below), "f64", dtype)) == 1
    assert float(evaluate.cast(np.float64(HALFWAY[dtype]), "f64", dtype)) == 1


@pytest.mark.parametrize("source", ["i64", "u64", "i32"])
def test_integers_are_rounded_once_to_bfloat16(source: str) -> None:
    rng = np.random.default_rng(1)
    kind = numpy_dtype(source)
    top = 1 << 30 if source == "i32" else 1 << 62
    shifts = np.array([int(v) >> int(s) for v, s in zip(rng.integers(0, top, 2000), rng.integers(0, 28, 2000), strict=True)])
    ties = [257 << 22, (257 << 22) + 1, (257 << 22) - 1, (259 << 22) + 1]
    values = np.array([*shifts, *ties], kind)
    for value, got in zip(values.tolist(), evaluate.cast(values, source, "bf16").astype(np.float64).tolist(), strict=True):
        assert got == nearest(Fraction(value), "bf16")


@pytest.mark.slice(2)
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("fn", ["add", "sub", "mul", "div"])
@pytest.mark.slow
def test_arithmetic_by_way_of_float32_is_correctly_rounded(fn: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    finite = every(dtype)[np.isfinite(every(dtype).astype(np.float32))]
    x, y = (rng.choice(finite, 4000) for _ in range(2))
    near = every(dtype)[np.arange(0x3C00, 0x3C00 + 4000) % (1 << 15)]
    for a, b in ((x, y), (x, near)):
        got = evaluate.apply(fn, (a, b), dtype).astype(np.float64)
        for p, q, r in zip(a.astype(np.float64).tolist(), b.astype(np.float64).tolist(), got.tolist(), strict=True):
            if q or fn != "div":
                exact = {"add": Fraction(p) + Fraction(q), "sub": Fraction(p) - Fraction(q), "mul": Fraction(p) * Fraction(q),
                         "div": Fraction(p) / Fraction(q) if q else Fraction(0)}[fn]
                assert r == nearest(exact, dtype)


@pytest.mark.parametrize("dtype", SHORT)
def test_square_roots_of_all_numbers_are_correctly_rounded(dtype: str) -> None:
    values = every(dtype)
    with np.errstate(all="ignore"):
        got, want = evaluate.apply("sqrt", (values,), dtype), evaluate.cast(np.sqrt(values.astype(np.float64)), "f64", dtype)
    assert np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)


def test_constants_fold_through_16_bit_floats() -> None:
    assert integer_arithmetic.convert("f16", Const(0.1, "f32")) is Const(0.0999755859375, "f16")
    assert integer_arithmetic.convert("f32", Const(0.1, "f16")) is Const(0.0999755859375, "f32")
    assert integer_arithmetic.convert("f16", Const(70000.0, "f64")) is Const(math.inf, "f16")
    assert integer_arithmetic.convert("bf16", Const(256, "i64")) is Const(256.0, "bf16")
    assert integer_arithmetic.convert("bf16", Const(257, "i64")) is None


@pytest.mark.parametrize(("value", "target", "expected"), [(7, "i4", 7), (8, "i4", -8), (-9, "i4", 7), (16, "u4", 0), (-1, "u4", 15)])
def test_integers_of_4_bits_wrap(value: int, target: str, expected: int) -> None:
    assert int(evaluate.cast(np.int32(value), "i32", target)) == expected
    assert integer_arithmetic.convert(target, Const(value, "i32")) is Const(expected, target)


@pytest.mark.parametrize(("value", "target", "expected"), [(7.9, "i4", 7), (99.0, "i4", 7), (-99.0, "i4", -8), (math.nan, "u4", 0), (-1.0, "u4", 0)])
def test_floats_saturate_in_4_bits(value: float, target: str, expected: int) -> None:
    assert int(evaluate.cast(np.float32(value), "f32", target)) == expected


def test_arithmetic_is_computed_in_float32_for_16_bit_floats_alone() -> None:
    assert [computed(d) for d in ("f16", "bf16", "f32", "i4")] == ["f32", "f32", "f32", "i4"]


def test_files_of_numpy_keep_the_size_alone() -> None:
    saved = np.frombuffer(struct.pack("<2H", 0x3F80, 0x4000), "V2")
    assert as_stored(saved, "bf16").tolist() == [1, 2]
    assert as_stored(saved, "f32").dtype == saved.dtype


def test_the_kinds_of_types_that_numpy_lacks_are_known() -> None:
    kinds = [kind_of(np.dtype(t)) for t in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4, np.float16, np.int8)]
    assert kinds == ["f", "i", "u", "f", "i"]

"""Operands of different types in functions: NumPy's types and NumPy's numbers."""
from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import caten
from caten.core.dtypes import DTYPES
from caten.errors import CatenError

TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128")
PAIRS = [(a, b) for a, b in itertools.permutations(TYPES, 2) if {a, b} not in [{"uint64", t} for t in ("int8", "int16", "int32", "int64")]]


def with_gcc(function: Callable[..., Any]) -> caten.OpFunction:
    """Made in a test, whose level it has."""
    return caten.op(function, runtime="gcc")


def product(x, y):
    return x * y


def half_of(x):
    return x * 0.5


def result_type(function: Any, *arrays: Any) -> str:
    """The element type of the result for these arguments."""
    found = re.search(r"result\{(\w+)\}", caten.op(function).spec_of(*arrays))
    assert found is not None
    return DTYPES[found.group(1)].numpy


@pytest.mark.parametrize("first", TYPES)
def test_types_of_products(first: str) -> None:
    for second in [b for a, b in PAIRS if a == first]:
        x, y = np.ones(3, first), np.ones(3, second)
        assert result_type(product, x, y) == (x * y).dtype.name, second


@pytest.mark.parametrize("dtype", TYPES)
def test_types_with_a_decimal(dtype: str) -> None:
    assert result_type(half_of, np.ones(3, dtype)) == (np.ones(3, dtype) * 0.5).dtype.name


def test_bfloat16() -> None:
    short = np.ones(3, ml_dtypes.bfloat16)
    assert [result_type(product, short, np.ones(3, t)) for t in ("int64", "bool", "float32", "float64")] == ["bfloat16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("second", ["int8", "int64"])
def test_types_that_no_type_holds(second: str) -> None:
    with pytest.raises(CatenError, match=r"E301: \* has operands of different types, uint64 and int"):
        caten.op(product).spec_of(np.ones(3, np.uint64), np.ones(3, second))


def elements(x, k, m, n, y):
    """Numbers of several types, element by element."""
    size = len(x)
    for i in range(size):
        double, s = n * 2, 0
        s += x[i]
        t = 1
        t += k[i]
        t += x[i]
        y[0, i] = i / size + x[i] / size
        y[1, i] = x[i] / n + n / 2 + x[i] / double
        y[2, i] = (1.0 / n) * x[i] + s + t
        y[3, i] = i if i % 2 else n
        y[4, i] = x[i] ** n + k[i] * x[i] - k[i]
        y[5, i] = float(k[i]) * x[i] + k[i] / 2 + k[i] * 0.5
        y[6, i] = np.sqrt(n) + np.sqrt(k[i]) + max(0, i - n) * x[i]
        y[7, i] = min(x[i], n) + (x[i] > n) * x[i] + (i % n) * 0.5
        y[8, i] = x[i] if k[i] > n else n
        y[9, i] = m[i] * x[i] + m[i]
        y[10, i] += k[i] * x[i]
        y[10, i] *= n
        y[10, i] -= m[i]


def arrays(x, k, m, n):
    """The same of whole arrays."""
    y = np.zeros((5, len(x)), dtype=np.float64)
    y[0] = x / n + np.where(m, x, n)
    y[1] = k * x + k / n + np.arange(len(x)) / n
    y[2] = k * 0.5 + k / 2 + (x > 0.5) * x
    y[3] = np.concatenate((k[:3], x[3:])) + np.stack((k, x))[1]
    y[4] += k @ (k * x) + m * k
    return y, k / n, m * x, np.maximum(k, x), x + [1, 2, 3, 4, 5, 6], x.sum() * n      # noqa: RUF005


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_numpy(dtype: str, tool: Any) -> None:
    tool("gcc")
    x, k, m = np.linspace(0.1, 4, 6).astype(dtype), np.arange(1, 7), np.array([True, False, True, True, False, True])
    own, others = np.ones((11, 6), dtype), np.ones((11, 6), dtype)
    elements(x, k, m, 3, own)
    with_gcc(elements)(x, k, m, 3, others)
    np.testing.assert_allclose(others, own, rtol=1e-5)
    for mine, theirs in zip(with_gcc(arrays)(x, k, m, 3), arrays(x, k, m, 3), strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def to_integers(x, k):
    k[0] = x[0]


def test_floats_are_no_integers() -> None:
    with pytest.raises(CatenError, match="E310: 'k' is int64, but the value is double"):
        caten.op(to_integers)(np.ones(3), np.arange(3))


def products(a, x):
    """A sum of elements of the other operand is no disjunction of them."""
    return a @ x, np.dot(a, x), np.tensordot(a, x, 1), np.inner(a, x.T), np.einsum("ij,jk->ik", a, x), np.einsum("ij,jk,ij->ik", a, x, a)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bool"])
def test_products_of_bools_are_bools_if_all_are(dtype: str) -> None:
    a, x = np.arange(12).reshape(3, 4) % 3 > 0, (np.arange(8).reshape(4, 2) % 5).astype(dtype)
    for found, wanted in zip(with_gcc(products)(a, x), products(a, x), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)

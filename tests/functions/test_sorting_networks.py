"""Sorts, medians and quantiles of axes with a few elements, whose number is known, are sorting networks."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.text import show
from caten.frontend.arrays.sorting_networks import MOST, network
from caten.frontend.spec_files import SpecText
from caten.options import Options
from daten import Tensor, gradients, operator

SPEC = """[composite]
name = "Ordered"
inputs = ["x{TYPE}[SHAPE]"]
outputs = ["a{...}[...]", "b{...}[...]", "c{...}[...]"]
[implementation]
lang = "python"
code = "return np.sort(x, axis=AXIS), np.median(x, axis=AXIS), np.percentile(x, 30, axis=AXIS)"
"""
rng = np.random.default_rng(3)


@pytest.mark.parametrize("count", range(MOST + 1))
def test_a_network_sorts(count: int) -> None:
    """If it sorts all sequences of 0 and 1, it sorts every sequence (Knuth 5.3.4, theorem Z). Of long ones, some."""
    every = (np.arange(1 << min(count, 12))[:, None] >> np.arange(count)) & 1
    rows = every if count <= 12 else rng.integers(0, 2, (1 << 12, count))
    expected = np.sort(rows, axis=1)
    for low, high in network(count):
        assert 0 <= low < high < count
        rows[:, [low, high]] = np.sort(rows[:, [low, high]], axis=1)
    np.testing.assert_array_equal(rows, expected)


def spec(dtype: str, shape: str, axis: int) -> str:
    return SPEC.replace("TYPE", dtype).replace("SHAPE", shape).replace("AXIS", str(axis))


@pytest.mark.slice(2)
@pytest.mark.parametrize(("dtype", "shape", "axis"), [
    ("float32", "M 9", -1), ("float64", "5 M", 0), ("uint8", "M 2 3", 1), ("int64", "8 M", 0), ("float32", "2 16 M", 1)])
def test_a_short_axis_is_ordered_as_by_numpy(dtype: str, shape: str, axis: int) -> None:
    extents = [int(word) if word.isdigit() else 21 for word in shape.split()]
    x = (rng.standard_normal(extents) * 50).astype(dtype)
    made = caten.compile(spec(dtype, shape, axis))(x)
    expected = np.sort(x, axis=axis), np.median(x, axis=axis), np.percentile(x, 30, axis=axis)
    for found, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_nan_is_the_greatest_and_is_the_median_beside_infinities() -> None:
    x = rng.choice(np.array([np.nan, np.inf, -np.inf, 1, 2, 3, 4]), (300, 5))
    made: Any = caten.compile(spec("double", "M 5", -1))(x)
    np.testing.assert_array_equal(made[0], np.sort(x, axis=-1))
    np.testing.assert_array_equal(np.isnan(made[1]), np.isnan(x).any(axis=1))
    known = ~np.isnan(x).any(axis=1)
    np.testing.assert_array_equal(made[1][known], np.median(x[known], axis=1))


def test_zeros_of_both_signs_stay() -> None:
    x = rng.choice(np.array([0.0, -0.0], np.float32), (100, 5))
    made: Any = caten.compile(spec("float", "M 5", -1))(x)
    np.testing.assert_array_equal(np.signbit(made[0]).sum(axis=1), np.signbit(x).sum(axis=1))


def test_of_equal_elements_each_has_the_gradient_of_one_place() -> None:
    x = Tensor(np.array([[1.0, 1, 2, 0], [3, 3, 3, 3], [0, 5, 5, 5]]), requires_grad=True)
    ordered, median, _ = operator(spec("double", "M 4", -1))(x)
    weights = np.arange(1.0, 13).reshape(3, 4)
    (of_order,) = gradients((ordered * Tensor(weights)).sum(), [x])
    np.testing.assert_array_equal(np.sort(of_order.numpy(), axis=1), weights)
    (of_median,) = gradients(median.sum(), [x])
    np.testing.assert_array_equal(np.sort(of_median.numpy(), axis=1), [[0, 0, 0.5, 0.5]] * 3)


@pytest.mark.parametrize(("shape", "axis"), [("M 12", -1), ("16 M", 0)])
def test_a_network_is_one_loop_nest_without_arrays_of_its_own(shape: str, axis: int) -> None:
    text = f"""[composite]
name = "Ordered"
inputs = ["x{{float}}[{shape}]"]
outputs = ["y{{float}}[...]"]
[implementation]
lang = "python"
code = "return np.sort(x, axis={axis})"
"""
    options = Options(opt=1)
    (program,) = loading.load_programs(SpecText("ordered.toml", text, "toml"), options)
    made = show(driver.advance(program, "loop", options))
    assert made.count("(kernel ") == 1
    assert "global)" not in made
    assert "scratch)" not in made

"""Products of a few rows with a right operand that is read in order: NumPy's numbers at all tails."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import caten

ROWS, SUMS, COLUMNS = (2, 3, 4, 9, 33, 128), (128, 129, 135, 400), (130, 544, 1025, 2079)
BODY = """
[composite]
name = "Product"
inputs = ["A{%s}[%s]%s", "B{%s}[K N]"]
outputs = ["C{%s}[M N]"]
[composite.implementation]
lang = "python"
code = "return %s"
"""


def spec(dtype: str, along_rows: bool, value: str) -> str:
    return BODY % (dtype, "M K", "<1 0>" if along_rows else "", dtype, dtype, value)


@pytest.mark.parametrize(("dtype", "along_rows", "value", "config"), [
    ("float32", False, "A @ B", {}), ("float32", False, "A @ B", {"OMP": "1"}), ("float64", False, "A @ B", {}),
    ("float32", True, "A @ B", {}), ("float32", False, "np.tanh(A @ B) + 1", {}), ("float32", False, "A @ B", {"MARCH": "x86_64_v3"}),
], ids=["float32", "threads", "float64", "left along the rows", "epilogue", "16 registers"])
@pytest.mark.slow
def test_products_are_those_of_numpy(dtype: str, along_rows: bool, value: str, config: dict[str, Any]) -> None:
    draw = np.random.default_rng(0)
    operator = caten.compile(spec(dtype, along_rows, value), config=config)
    for rows, summed, columns in product(ROWS, SUMS, COLUMNS):
        a, b = draw.standard_normal((rows, summed)).astype(dtype), draw.standard_normal((summed, columns)).astype(dtype)
        wanted = eval(value, {"A": a, "B": b, "np": np})
        made = operator(np.asfortranarray(a) if along_rows else a, b)
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-3, err_msg=f"{rows} x {summed} x {columns}")

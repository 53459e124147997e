"""Products of a few rows with a right operand that is read in order: NumPy's numbers at all tails."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import caten
from caten import compiler, driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options

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


@pytest.mark.slice(4)
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


@pytest.mark.slow
@pytest.mark.slice(3)
@pytest.mark.parametrize(("dtype", "value", "march"), [
    ("float32", "A @ B", "x86_64_v4"), ("float64", "A @ B", "x86_64_v4"), ("float32", "np.tanh(A @ B) + 1", "x86_64_v3")])
def test_the_next_rows_are_prefetched(dtype: str, value: str, march: str) -> None:
    """Each line of eight rows, once for a tile of columns."""
    options = Options(opt=2, config=(("MARCH", march),))
    (program,) = loading.load_programs(SpecText("f.toml", spec(dtype, False, value), "toml"), options)
    text = driver.render([program], options)
    lines = {line.strip() for line in text.splitlines() if "__builtin_prefetch(B + (8 * " in line}
    columns = 64 // np.dtype(dtype).itemsize
    lanes = (64 if march == "x86_64_v4" else 32) // np.dtype(dtype).itemsize
    assert len(lines) == 8 * 2 * lanes // columns


VECTOR = """
[composite]
name = "MatrixVector"
inputs = ["A{%s}[M K]", "x{%s}[K]"]
outputs = ["y{%s}[M]"]
[composite.implementation]
lang = "python"
code = "return %s"
"""


@pytest.mark.slice(2)
@pytest.mark.parametrize(("dtype", "value", "config"), [
    ("float32", "A @ x", {}), ("float32", "A @ x", {"OMP": "1"}), ("float64", "A @ x", {"MARCH": "x86_64_v3"}),
    ("float32", "np.exp(-(A @ x)) + 1", {})])
@pytest.mark.slow
def test_matrix_vector_products_are_those_of_numpy(dtype: str, value: str, config: dict[str, Any]) -> None:
    draw = np.random.default_rng(1)
    operator = caten.compile(VECTOR % (dtype, dtype, dtype, value), config=config)
    for rows, summed in product((0, 1, 7, 8, 9, 16, 133), (0, 1, 15, 16, 17, 63, 64, 131, 1000)):
        a, x = draw.standard_normal((rows, summed)).astype(dtype), draw.standard_normal(summed).astype(dtype) / 30
        wanted = eval(value, {"A": a, "x": x, "np": np})
        np.testing.assert_allclose(operator(a, x), wanted, rtol=1e-4, atol=1e-4, err_msg=f"{rows} x {summed}")


ATTENTION = """
[composite]
name = "OneQuery"
inputs = ["q{float}[H 1 D]", "k{float}[H T D]", "v{float}[H T E]"]
outputs = ["y{float}[H 1 E]"]
[composite.implementation]
lang = "python"
code = '''
s = q @ np.swapaxes(k, 1, 2)
p = np.exp(s - s.max(axis=-1, keepdims=True))
return (p / p.sum(axis=-1, keepdims=True)) @ v
'''
"""


@pytest.mark.slow
def test_sums_whose_terms_lie_across_the_results_gather_nothing() -> None:
    """In a kernel of rows, too: the lanes are results, and what moves along the sum alone is the same for all."""
    options = Options(config=(("MARCH", "x86_64_v4"),), binds=(("E", 64), ("D", 64)))
    text = compiler.build([SpecText("attention.toml", ATTENTION, "toml")], options).source
    assert "ct_gather" not in text.split("CT_API int32_t")[0].split("static void ct_one")[-1]
    operator = caten.compile(ATTENTION, sizes={"E": 64, "D": 64})
    draw = np.random.default_rng(2)
    q, k, v = [draw.standard_normal((2, t, 64)).astype(np.float32) for t in (1, 37, 37)]
    s = np.exp(q @ k.transpose(0, 2, 1))
    np.testing.assert_allclose(operator(q, k, v), s / s.sum(axis=-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)

"""A scatter of a sum adds into the other term, instead of into zeros that are added to it afterwards."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Compute, Reduce, Scatter, TensorProgram

SPEC = """[composite]
name = "Sums"
inputs = ["K{{u8}}[N]", "G{{{dtype}}}[N D]", "A{{{dtype}}}[M 256]", "B{{{dtype}}}[M D]"]
outputs = ["Y{{{dtype}}}[256 D]"{more}]
[composite.implementation]
lang = "python"
code = '''
Z = np.zeros((256, D), {numpy})
{body}
'''
"""
ONE = "np.add.at(Z, K, G)\n"


def spec(body: str, dtype: str = "f32", more: str = "", numpy: str = "np.float32") -> str:
    return SPEC.format(body=body, dtype=dtype, more=more, numpy=numpy)


def values(text: str, **options: Any) -> dict[str, Any]:
    given = Options(**options)
    (op,) = loading.loaded([SpecText("sums.toml", text)], given)
    program = driver.advance(op, "tensor", given)
    assert isinstance(program, TensorProgram)
    return {name: d.value for d in program.definitions for name in d.names}


def arrays(dtype: str = "f32") -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    kind = np.int32 if dtype == "i32" else np.float32
    return [draw.integers(0, 256, 300).astype(np.uint8), *[draw.integers(-9, 9, s).astype(kind) for s in ((300, 5), (7, 256), (7, 5))]]


def expected(given: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    index, g, a, b = given
    z = np.zeros((256, 5), g.dtype)
    np.add.at(z, index, g)
    return z, (a.T.astype(np.float64) @ b.astype(np.float64)).astype(g.dtype)


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("body", ["return Z + A.T @ B", "return A.T @ B + Z"])
def test_a_product_is_what_the_scatter_adds_to(body: str, dtype: str) -> None:
    text = spec(ONE + body, dtype, numpy="np.int32" if dtype == "i32" else "np.float32")
    found = list(values(text).values())
    assert [type(v) for v in found] == [Reduce, Scatter]
    given = arrays(dtype)
    z, product = expected(given)
    np.testing.assert_allclose(caten.compile(text)(*given), z + product, rtol=1e-6)


def test_what_is_no_value_yet_becomes_one() -> None:
    text = spec(ONE + "return Z + np.exp(A.sum(axis=0) * 0.01)[:, None]")
    found = list(values(text).values())
    assert [type(v) for v in found][-2:] == [Compute, Scatter]
    given = arrays()
    np.testing.assert_allclose(caten.compile(text)(*given), expected(given)[0] + np.exp(given[2].sum(axis=0) * np.float32(0.01))[:, None], rtol=1e-5, atol=1e-6)


def test_several_scatters_add_one_after_the_other() -> None:
    text = spec(ONE + "W = np.zeros((256, D), np.float32)\nnp.add.at(W, K, 2 * G)\nreturn Z + A.T @ B + W")
    assert [type(v) for v in values(text).values()] == [Reduce, Scatter, Scatter]
    given = arrays()
    z, product = expected(given)
    np.testing.assert_allclose(caten.compile(text)(*given), 3 * z + product, rtol=1e-5)


@pytest.mark.parametrize(("body", "more"), [
    (ONE + "return Z + A.T @ B, Z", ', "Q{f32}[256 D]"'),                              # an output of its own
    (ONE + "return Z + A.T @ B, np.exp(Z[::-1])", ', "Q{f32}[256 D]"'),                # read elsewhere
    (ONE + "return Z + Z[::-1]", ""),                                                  # and here
    (ONE + "return Z - A.T @ B", ""),
    ("Z = Z + 1\n" + ONE + "return Z + A.T @ B", ""),                                  # not into zeros
    ("np.maximum.at(Z, K, G)\nreturn Z + A.T @ B", ""),
])
def test_other_scatters_stay(body: str, more: str) -> None:
    text = spec(body, more=more)
    found = values(text)
    assert [type(found[v.source]) for v in found.values() if isinstance(v, Scatter)] == [Compute]
    one, other = caten.compile(text)(*arrays()), caten.compile(text, opt=0)(*arrays())
    for a, b in zip(one if isinstance(one, tuple) else (one,), other if isinstance(other, tuple) else (other,), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_sums_whose_order_is_to_stay_are_as_written() -> None:
    text = spec(ONE + "return Z + A.T @ B")
    assert all(not isinstance(v, Scatter) or isinstance(values(text, in_order=True)[v.source], Compute) for v in values(text, in_order=True).values())

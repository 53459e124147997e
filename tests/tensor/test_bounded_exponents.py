"""Exponents x - max x are minima with 0, wherever the maximum is computed, and results keep every bit."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.expr import Const, Op
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.values import TensorProgram


def spec(body: str, inputs: str = '"X{float}[M N]"', output: str = "Y{float}[M N]", lang: str = "python") -> str:
    return (f'[composite]\nname = "T"\ninputs = [{inputs}]\noutputs = ["{output}"]\n'
            f'[implementation]\nlang = "{lang}"\ncode = """\n{body}\n"""\n')


def exponentials(text: str, options: Options | None = None) -> tuple[int, int]:
    """How many exponentials of the values are of a minimum with 0, and of something else."""
    (loaded,) = loading.load_programs(SpecText("exponents.toml", text), Options())
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    found = {n for d in ready_for_fusion(made).definitions for n in d.value.unique() if isinstance(n, Op) and n.fn == "exp"}
    bounded = [n for n in found if isinstance(n.args[0], Op) and n.args[0].fn == "min" and n.args[0].args[1] == Const(0.0, "f32")]
    return len(bounded), len(found) - len(bounded)


SOFTMAX = "E = np.exp(X - X.max(axis={0}, keepdims=True))\nreturn E / E.sum(axis={0}, keepdims=True)"
LOOPS = """
(dotimes (i M)
  (set top (- inf))
  (dotimes (j N) (maxcf top (aref X i j)))
  (dotimes (j N) (setf (aref Y i j) (exp (- (aref X i j) top)))))"""


@pytest.mark.parametrize("text", [
    spec(SOFTMAX.format(1)), spec(SOFTMAX.format(0)), spec(SOFTMAX.format(None)), spec(LOOPS, lang="lisp"),
    spec("S = X * 0.125 + B\nD = S - S.max(axis=1, keepdims=True)\nreturn np.exp(D) / np.exp(D).sum(axis=1, keepdims=True)", '"X{float}[M N]", "B{float}[N]"'),
    spec("S = np.where(np.arange(N) <= np.arange(M)[:, None], X, -np.inf)\nreturn np.exp(S - S.max(axis=1, keepdims=True))"),
    spec("m = X.max(axis=1)\nreturn np.log(np.exp(X - m[:, None]).sum(axis=1)) + m", output="y{float}[M]"),
    spec("return np.exp(A - A.max(axis=(0, 2), keepdims=True))", '"A{float}[M N K]"', "Y{float}[M N K]"),
])
def test_the_exponents_of_a_softmax_are_bounded(text: str) -> None:
    assert exponentials(text) == (1, 0)


@pytest.mark.parametrize("text", [
    spec("return np.exp(X - X.min(axis=1, keepdims=True))"), spec("return np.exp(X - A.max(axis=1, keepdims=True))", '"X{float}[M N]", "A{float}[M N]"'),
    spec("return np.exp(X * 2 - X.max(axis=1, keepdims=True))"), spec("return np.exp(X.max(axis=1, keepdims=True) - X)"),
    spec("return np.exp(X - X[:, :N // 2].max(axis=1, keepdims=True))"), spec("return np.exp(X[::-1] - X.max(axis=1, keepdims=True))"),
    spec("return np.exp(X - X.max(axis=1))", '"X{float}[N N]"', "Y{float}[N N]"), spec("return np.exp(X + X.max(axis=1, keepdims=True))"),
    spec("return np.exp(np.where(np.arange(N) <= np.arange(M)[:, None], X, -np.inf) - X.min())"),
    spec("S = np.where(np.arange(N) <= np.arange(M)[:, None], X, -np.inf)\nreturn np.exp(X - S.max(axis=1, keepdims=True))"),
])
def test_what_may_be_above_0_is_not(text: str) -> None:
    assert exponentials(text) == (0, 1)


@pytest.mark.slow
@pytest.mark.scheduled
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_special_values_stay(dtype: str) -> None:
    """Infinities, NaN and results below the normal range, in rows of every length of a tail."""
    kernel = caten.compile(spec(SOFTMAX.format(1)).replace("float", dtype))
    kind = np.dtype(dtype if dtype == "double" else np.float32)
    rng = np.random.default_rng(3)
    for width in (1, 2, 7, 8, 9, 31, 67, 300):
        x = (rng.standard_normal((9, width)) * 40).astype(kind)
        x[1] = -np.inf
        x[2, width // 2] = np.nan
        x[3, width // 2] = np.inf
        x[4, ::2] = -np.inf
        x[5] = 7.0
        x[6] = np.linspace(-110, 0, width)
        x[7, 0] = 3e38
        with np.errstate(all="ignore"):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            expected = e / e.sum(axis=1, keepdims=True)
        got: Any = kernel(x)
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=3e-45, err_msg=str(width))

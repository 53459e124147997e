"""Slices whose step is computed from sizes, `x[::len(w)]`: what NumPy computes, and what is refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError


def taken(x: Any, w: Any) -> Any:
    k = len(w)
    return x[::k], x[1::k], x[::-k], x[:, ::k].sum(axis=1), x[::2 * k], x[-1::-k, :k], x[:0:-k], x.ravel()[::x.shape[1] + 1]


def stored(x: Any, w: Any) -> Any:
    k, y = len(w), x.copy()
    y[::k] = 0
    y[1::k] += 1
    y[::-k, 0] *= 5
    y[1:, ::k] = y[:-1, ::k]
    return y


@pytest.mark.parametrize(("shape", "k"), [((10, 7), 3), ((12, 7), 4), ((1, 1), 1), ((3, 4), 1)])
def test_what_numpy_computes(shape: tuple[int, int], k: int) -> None:
    x, w = np.random.default_rng(0).standard_normal(shape).astype(np.float32), np.ones(k)
    for a, b in zip(caten.op(taken, runtime="numpy")(x, w), taken(x, w), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(caten.op(stored, runtime="numpy")(x, w), stored(x, w))


def test_a_step_of_nothing() -> None:
    with pytest.raises(CatenError, match=r"does not hold|the step of this slice is 0"):
        caten.op(taken, runtime="numpy")(np.ones((2, 2)), np.ones(0))


# What only proofs about products, or about the extrema in the bound of a loop, show to be in bounds.
IN_BOUNDS = {"q": ["x.ravel()[k::2 * k]", "x.ravel()[::k][::-1]", "x.ravel()[1:-2:k]", "x[1:-2:m, 0][::-1]", "x.ravel()[::2 * k + 1] * x.ravel()[::2 * k + 1][::-1]"],
             "q r": ["x[::n // 2, 1:k:k]", "x.reshape(n, -1)[::2, ::k]"], "": ["x[1:-2:m, 0][::-1].sum()"]}


@pytest.mark.slow
@pytest.mark.scheduled
def test_accesses_that_only_facts_about_sizes_show_to_be_in_bounds() -> None:
    cases = [(f"Slice{n}", shape, text) for n, (shape, text) in enumerate([(shape, text) for shape, texts in IN_BOUNDS.items() for text in texts])]
    operators = caten.compile("\n".join([f'''[[composite]]
name = "{name}"
inputs = ["x{{double}}[n m]", "w{{double}}[k]"]
outputs = ["R{{double}}[{shape}]"]
[composite.implementation]
lang = "python"
code = "return {text}"
''' for name, shape, text in cases]))
    for n, m, k in ((9, 4, 3), (4, 5, 1), (20, 13, 2)):
        x = np.random.default_rng(0).standard_normal((n, m))
        for name, _, text in cases:
            np.testing.assert_allclose(operators[name](x, np.ones(k)), eval(text, {"x": x, "n": n, "m": m, "k": k}), err_msg=text)

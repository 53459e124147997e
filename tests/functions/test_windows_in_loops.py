"""Windows that move with the variable of a loop: that they are inside in the first and the last iteration is a condition of the call."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten


def correlated(x: Any, k: Any) -> Any:
    n = x.shape[0] - k.shape[0] + 1
    out = np.zeros(n, x.dtype)
    for j in range(k.shape[0]):
        out += k[j] * x[j:j + n]
    return out


def downwards(x: Any, k: Any) -> Any:
    n = x.shape[0] - k.shape[0] + 1
    out = np.zeros(n, x.dtype)
    for j in range(k.shape[0] - 1, -1, -1):
        out += k[j] * x[j:j + n]
    return out


def every_second(x: Any, k: Any) -> Any:
    n = x.shape[0] - k.shape[0] + 1
    out = np.zeros(n, x.dtype)
    for j in range(0, k.shape[0], 2):
        out += k[j] * x[j:j + n]
    return out


def convolved(x: Any, k: Any) -> Any:
    n = x.shape[0]
    out = np.zeros(n + k.shape[0] - 1, x.dtype)
    for j in range(k.shape[0]):
        out[j:j + n] += k[j] * x
    return out


def into(x: Any, k: Any, z: Any) -> Any:
    for j in range(k.shape[0]):
        z += k[j] * x[j:j + z.shape[0]]
    return z


def images(x: Any, k: Any, z: Any) -> Any:
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = (x[i:i + k.shape[0], 2 * j:2 * j + k.shape[1]] * k).sum()
    return z


def stated(x: Any, k: Any, z: Any) -> Any:
    for i in range(z.shape[0]):
        if i + k.shape[0] <= x.shape[0]:
            z[i] = x[i:i + k.shape[0]].sum()
    return z


def whole(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize(("function", "shapes"), [
    (correlated, ((9,), (3,))), (correlated, ((3,), (3,))), (correlated, ((9,), (0,))), (downwards, ((9,), (3,))),
    (every_second, ((9,), (4,))), (convolved, ((9,), (3,))), (into, ((9,), (3,), (7,))), (into, ((9,), (3,), (6,))),
    (into, ((9,), (0,), (30,))), (images, ((9, 12), (3, 4), (7, 5))), (images, ((9, 12), (3, 4), (4, 0))),
    (stated, ((9,), (3,), (9,))), (stated, ((9,), (3,), (40,)))])
def test_what_numpy_computes(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    given = [whole(*shape) for shape in shapes]
    wanted = function(*[x.copy() for x in given])
    np.testing.assert_array_equal(caten.op(function)(*given), wanted)


@pytest.mark.parametrize(("function", "shapes"), [
    (into, ((9,), (3,), (8,))), (images, ((9, 12), (3, 4), (7, 6))), (images, ((9, 12), (3, 4), (8, 5)))])
def test_a_window_that_leaves_the_array_fails_the_call(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(caten.CatenError, match="E711"):
        caten.op(function)(*[whole(*shape) for shape in shapes])


def chosen(x: Any, z: Any) -> Any:
    for i in range(z.shape[0]):
        if x[i] > 0:
            z[i] = x[i:i + 3].sum()
    return z


def outside(x: Any, z: Any) -> Any:
    for i in range(x.shape[0]):
        z[i] = x[i:i + 3].sum()
    return z


@pytest.mark.parametrize("function", [chosen, outside])
def test_what_no_call_or_not_each_iteration_needs_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(caten.CatenError, match=r"E326: this needs .*\n(.*\n)*.*an 'if' around the statement states it"):
        caten.op(function)(whole(9), whole(9))

"""`break`, `continue` and `return` where elements decide: what Python computes, and loops that end early."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten


def with_gcc(function: Callable[..., Any]) -> caten.OpFunction:
    """Made in a test, whose level it has."""
    return caten.op(function, runtime="gcc")


def breaks_and_continues(x, A):
    y = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(A.shape[1]):
            if A[i, j] > 0.9:
                break
            if A[i, j] < 0.2:
                continue
            y[i] += A[i, j]
        else:
            y[i] = -1
    return y


def nested_conditions(x):
    s = 0.0
    for i, v in enumerate(x, 1):
        if v > 0.5:
            if v > 0.8:
                s += i
                continue
            elif v > 0.7:
                break
            s += 2
        s += v
    return s


def position(x):
    for i in range(len(x)):
        if x[i] > 0.7:
            return i
    return -1


def exists(x):
    for v in x:
        if v > 0.9:
            return True
    return x[0] > 0.5


def branches(v):
    if v < 0.3:
        return -v
    elif v < 0.6:
        return 0.0
    return v


def of_functions(x, A):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = branches(x[i]) + branches(x[i] * 2) + first_above(A[i], x[i])
    return y


def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return len(x)


def two_loops(x, A):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > 0.9:
                return i, j, A[i, j] * 2
    return -1, -1, 0.0


def other_end(x):
    for i in range(len(x)):
        if x[i] > 0.9:
            return i
    else:
        return -1


def changed(x, A):
    for i in range(A.shape[0]):
        A[i] *= 2
        if A[i, 0] > 1.2:
            return A, i
        A[i, 0] = 0
    return A, -1


def arrays(x):
    if x[0] > 0.5:
        return x * 2
    y = x + 1
    if x[1] > 0.5:
        return y
    return y * 3


def of_sizes(x):
    if len(x) > 3:
        return x.sum()
    return x.max()


def nothing(x, A):
    if x.max() > 0.8:
        return
    A[:] = 0


FUNCTIONS = (breaks_and_continues, nested_conditions, position, exists, of_functions, two_loops, other_end, changed, arrays, of_sizes, nothing)


@pytest.mark.slice(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_what_python_computes(function: Callable[..., Any], tool: Any) -> None:
    tool("gcc")
    operator, count = with_gcc(function), function.__code__.co_argcount
    for seed in range(40):
        rng = np.random.default_rng(seed)
        given = [rng.random(6), rng.random((6, 5))][:count]
        own = [a.copy() for a in given]
        made, wanted = operator(*given), function(*own)
        for mine, theirs in zip(given, own, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        if wanted is None:
            assert made is None
            continue
        for a, b in zip(made if isinstance(made, tuple) else (made,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_loop_that_is_left_ends(tool: Any) -> None:
    """In C: 2^36 iterations would take minutes."""
    tool("gcc")

    def least(limit: int) -> int:
        found = 0
        for n in range(1, 68719476736):
            if n * n > limit:
                found = n
                break
        return found
    assert with_gcc(least)(10_000) == 101
    text = with_gcc(least).operator(10_000).source
    assert "if (!(going" in text
    assert caten.op(runtime="numpy")(least)(10_000) == 101

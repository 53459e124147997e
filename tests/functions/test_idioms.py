"""Functions as people write them for NumPy and numba: what Python computes with them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import idioms
import numpy as np
import pytest

import caten

FUNCTIONS = [value for name, value in vars(idioms).items() if name.endswith("_of")]


def with_gcc(function: Callable[..., Any]) -> caten.OpFunction:
    """Made in a test, whose level it has."""
    return caten.op(function, runtime="gcc")


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(6), np.array([1, 3, 2, 6, 5, 4]), rng.random((6, 8)), np.zeros(6)]


@pytest.mark.slice(12)
@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__.removesuffix("_of") for f in FUNCTIONS])
@np.errstate(all="ignore")
def test_what_python_computes(function: Callable[..., Any], tool: Any) -> None:
    tool("gcc")
    own, others = arguments(), arguments()
    wanted, made = function(*own), with_gcc(function)(*others)
    assert isinstance(made, tuple) == isinstance(wanted, tuple)
    for mine, theirs in zip(made if isinstance(made, tuple) else (made,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert np.shape(mine) == np.shape(theirs)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-9)
    for mine, theirs in zip(others, own, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)

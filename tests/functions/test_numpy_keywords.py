"""Keywords of NumPy's functions: what `caten.op` makes of them is what NumPy computes, in values, shapes and types."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError

RNG = np.random.default_rng(11)
X = RNG.standard_normal((5, 4))
I = RNG.integers(0, 7, (5, 4))  # noqa: E741
S = RNG.integers(-9, 9, (5, 4)).astype(np.int8)


def slopes(x: Any, i: Any, s: Any) -> Any:
    at = np.array([0.0, 0.5, 2.0, 2.25])
    return (*np.gradient(x, edge_order=2), np.gradient(i, 2, axis=1, edge_order=2), np.gradient(x, at, axis=1), np.gradient(x, at, axis=1, edge_order=2), *np.gradient(x, 0.5, at, edge_order=1), np.gradient(x[0], [0, 1, 3, 4]),
            np.diff(s, n=0, prepend=1), np.trapezoid(i, [0, 1, 3, 4]), np.trapezoid(x, dx=2, axis=0))


def padded(x: Any, i: Any, s: Any) -> Any:
    return (np.pad(x, 2, mode="linear_ramp"), np.pad(i, ((0, 1), (2, 3)), "linear_ramp", end_values=((1, 2), (3, 4))), np.pad(s, ((1, 2),), "linear_ramp", end_values=(5, -4)), np.pad(i, 1, constant_values=((1, 2), (3, 4))),
            np.pad(s, ((1, 0), (2, 2)), constant_values=(-5, 6)), np.pad(i, 1, constant_values=1.5), np.pad(x, ((1, 0), (0, 2)), "maximum"), np.pad(s, 2, "mean"), np.pad(i, (1, 2), "median", stat_length=3),
            np.pad(x, 1, "minimum", stat_length=((1, 2), (3, 4))), np.pad(x, (1, 2), "reflect", reflect_type="odd"), np.pad(i, 2, "symmetric", reflect_type="odd"), np.pad(x, ((1,), (2,)), "wrap"))


def repeated(x: Any, i: Any, s: Any) -> Any:
    return np.repeat(x, [2, 0, 1, 3, 1], axis=0), np.repeat(i, (0, 1, 2, 1), axis=-1), s.repeat([3], axis=1), np.repeat(x[0], [2, 2, 2, 2]), np.repeat(x, 0, axis=1), np.roll(i, (1, 2)), np.roll(x, [1, -2], axis=1), np.roll(x, 1, axis=(0, 1))


def spaced(x: Any, i: Any, s: Any) -> Any:
    a, width = np.linspace(x, i, 4, axis=-1, retstep=True)
    return (a, width, np.linspace(x[0], 2, 3, endpoint=False), np.linspace(0, 10, 4, dtype=int), np.linspace(0, 1, 1, retstep=True)[1], np.linspace(0, 1, 5, retstep=True)[1], np.linspace(0, x[0], len(x), axis=1), np.linspace(i, 9, 1),
            np.linspace(i[0], 9, len(i), dtype=np.int32), np.logspace(0, x[0], 3, base=2), np.logspace(0, 2, 3, dtype=int), np.geomspace(1, 1000, 4), np.geomspace(-1, -x[0] * x[0], 3, endpoint=False))


@pytest.mark.parametrize("function", [slopes, padded, repeated, spaced], ids=lambda f: f.__name__)
def test_what_numpy_computes(function: Callable[..., Any]) -> None:
    found, wanted = caten.op(function, runtime="numpy")(X, I, S), function(X, I, S)
    assert len(found) == len(wanted)
    for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (n, a.shape, a.dtype) == (n, np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=f"{function.__name__} {n}")


@pytest.mark.parametrize(("call", "message"), [
    ("np.gradient(x, edge_order=3)", "E326: the edge_order of np.gradient is 1 or 2, and not 3"), ("np.gradient(x[:2], axis=0, edge_order=2)", "E323: axis 0 of .* is too short for np.gradient: it needs 3 elements"),
    ("np.pad(x, 1, 'mirror')", "E327: np.pad with the mode 'mirror' is not supported yet"), ("np.pad(x, 1, 'mean', stat_length=0)", "E322: the stat_length of np.pad are 1 element or more"),
    ("np.repeat(x, i[0], axis=1)", "E328: how many elements np.repeat makes is not known before the call"), ("np.repeat(x[None], [1, 2], axis=0)", "E320: 2 numbers say how often np.repeat repeats"), ("np.roll(x, (1, 2, 3), axis=(0, 1))", "E321: 3 shifts are given for 2 axes"),
    ("np.geomspace(-1, 2)", "E326: the ends of np.geomspace have the same sign, and neither is 0")])
def test_refusals(call: str, message: str) -> None:
    spec = f'[composite]\nname = "f"\ninputs = ["x{{f64}}[M N]", "i{{i64}}[M N]"]\noutputs = ["y{{...}}[...]"]\n[implementation]\nlang = "python"\ncode = """return {call}"""\n'
    with pytest.raises(CatenError, match=message):
        caten.compile(spec, runtime="numpy")(X, I)

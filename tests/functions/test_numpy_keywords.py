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
WHOLE = RNG.integers(0, 7, (5, 4))
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


def turned(x: Any, i: Any, s: Any) -> Any:
    return (np.rot90(x, 3, axes=(1, 0)), np.rot90(i, k=-1, axes=(-1, 0)), np.rot90(s, 2), *np.meshgrid(x[0], i[:, 0], sparse=True), np.full((2, 3), 1, dtype=bool), np.full(3, 2.7, dtype=int), np.zeros_like(x, shape=(2, 3)),
            np.full_like(s, 7, shape=4), np.delete(x, [0, 2], axis=0), np.delete(i, slice(1, -1 + 4), axis=1), np.delete(x, [-1, -3]), np.delete(x, slice(-2, None), axis=0), np.insert(x, [0, 2, 2], 5, axis=0), np.insert(i, [1, 3], [7, 8]), np.clip(x, 0, None, dtype=np.float32))


def among(x: Any, i: Any, s: Any) -> Any:
    z, bits = x + 1j * i, (i > 2).astype(np.uint8)
    return (np.isin(i, [1, 2], invert=True), np.isin(z, z[0]), np.isin(x, [1, 2j], invert=True), np.isin(i > 2, [True]), np.packbits(bits, bitorder="little"), np.packbits(i > 2, axis=0, bitorder="big"), np.unpackbits(bits, axis=1, count=11),
            np.unpackbits(bits, count=-5, bitorder="little"), np.interp(x, [5.0, 1.0, 9.0], [1.0, 2.0, 4.0], period=10), np.interp(i, [1, 2, 4], x[0, :3], left=-1, right=7), np.convolve(i[0] > 2, i[1] > 1), np.correlate(i[0] > 2, i[1] > 1, "same"), np.kron(i > 2, s > 0))


def spread(x: Any, i: Any, s: Any) -> Any:
    z = x + 1j * i
    return (np.cov(x, aweights=np.abs(x[0])), np.cov(x, fweights=i[0], aweights=[1, 2, 3, 4], ddof=2), np.cov(x[0], x[1], fweights=[1, 2, 0, 3], bias=True), np.cov(z), np.corrcoef(z), np.cov(i, dtype=np.float32), np.corrcoef(x[0], dtype=np.float64))


def known(x: Any, i: Any, s: Any) -> Any:
    z = np.where(x > 0.5, np.nan, x)
    return (np.nansum(z, axis=0, dtype=np.float32), np.nansum(z, where=i > 2), np.nanprod(z, axis=1, initial=2), np.nanmax(z, initial=-1, axis=0), np.nanmin(z, initial=0, where=i > 2), np.nanmean(z, where=i > 2), np.nanmean(i, axis=0, dtype=np.float64),
            np.nanvar(z, axis=0, ddof=1, where=i < 7), np.nanstd(i, dtype=np.float32), np.nansum(s, where=s > 0, keepdims=True))


def along_axes(x: Any, i: Any, s: Any) -> Any:
    return (np.ptp(x, axis=1, keepdims=True), np.ptp(i), np.ptp(s, axis=(0, 1)), np.count_nonzero(i, axis=(0, 1)), np.count_nonzero(x > 0, axis=0, keepdims=True), np.count_nonzero(s), np.cross(x[:3], i[:3], axis=0),
            np.cross(x[:3, :3], i[:3, :3], axisa=0), np.cross(x[:, 1:], i[0, 1:]), np.cross(x[:3], x[1:4], axisa=0, axisb=0, axisc=0))


def powers(x: Any, i: Any, s: Any) -> Any:
    z = x + 1j * i
    return z ** 2, z ** 7, z ** -3, z ** 0, z ** 0.5, z ** 1j, 2 ** z, i ** (x + 1j), z ** i, z ** z, (0 * z) ** i, np.power(x, 2 + 0j), np.clip(z, 0, 1 + 2j), np.clip(x, 0, 2j), np.concatenate([z, z], dtype=np.complex64, casting="unsafe")


@pytest.mark.parametrize("function", [slopes, padded, repeated, spaced, turned, among, spread, known, along_axes, powers], ids=lambda f: f.__name__)
def test_what_numpy_computes(function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        found, wanted = caten.op(function, runtime="numpy")(X, WHOLE, S), function(X, WHOLE, S)
    assert len(found) == len(wanted)
    for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (n, a.shape, a.dtype) == (n, np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=f"{function.__name__} {n}")


@pytest.mark.parametrize(("call", "message"), [
    ("np.gradient(x, edge_order=3)", "E326: the edge_order of np.gradient is 1 or 2, and not 3"), ("np.gradient(x[:2], axis=0, edge_order=2)", "E323: axis 0 of .* is too short for np.gradient: it needs 3 elements"),
    ("np.pad(x, 1, 'mirror')", "E327: np.pad with the mode 'mirror' is not supported yet"), ("np.pad(x, 1, 'mean', stat_length=0)", "E322: the stat_length of np.pad are 1 element or more"),
    ("np.repeat(x, i[0], axis=1)", "E328: how many elements np.repeat makes is not known before the call"), ("np.repeat(x[None], [1, 2], axis=0)", "E320: 2 numbers say how often np.repeat repeats"), ("np.roll(x, (1, 2, 3), axis=(0, 1))", "E321: 3 shifts are given for 2 axes"),
    ("np.rot90(x, axes=(0,))", "E321: np.rot90 turns in the plane of two axes"), ("np.interp(x, x[0], x[1], period=0)", "E326: the period of np.interp is a number other than 0"), ("np.delete(x, i[0])", "E328: the indices of np.delete are numbers that are known"),
    ("np.delete(x, [0, -1])", "E327: the indices of np.delete are all counted from the front, or all from the end"), ("np.delete(x, slice(1, -1))", "E328: the slice of np.delete has numbers"), ("np.nanmax(x, where=x > 0)", "E322: np.max with 'where' needs 'initial'"),
    ("np.where(x > 0)", "E328: at how many places a condition holds is not known before the call"), ("np.where(x > 0, x)", "E322: np.where lacks its argument 'y'"), ("np.concatenate([x, x], dtype=int)", "E310: double is not converted to int64 here"),
    ("np.geomspace(-1, 2)", "E326: the ends of np.geomspace have the same sign, and neither is 0")])
def test_refusals(call: str, message: str) -> None:
    spec = f'[composite]\nname = "f"\ninputs = ["x{{f64}}[M N]", "i{{i64}}[M N]"]\noutputs = ["y{{...}}[...]"]\n[implementation]\nlang = "python"\ncode = """return {call}"""\n'
    with pytest.raises(CatenError, match=message):
        caten.compile(spec, runtime="numpy")(X, WHOLE)

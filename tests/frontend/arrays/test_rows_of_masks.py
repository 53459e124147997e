"""Rows that a mask selects, `X[labels == k].mean(axis=0)`: what NumPy computes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten

RNG = np.random.default_rng(3)
X = RNG.standard_normal((9, 4)).astype(np.float32)
B = RNG.standard_normal((3, 5, 4))
LABELS = np.array([0, 1, 2, 0, 1, 1, 0, 2, 0])
KEYS = np.array([True, False, True, True, False])


def reductions(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    m = labels == 1
    return (x[m].sum(axis=0), x[m].mean(axis=0), x[m].max(0), x[m].min(axis=0), np.std(x[m], axis=0), np.var(x[m], axis=0, ddof=1), x[m].prod(axis=0), (x[m] > 0).any(axis=0), np.all(x[m] > 0, 0),
            x[m].sum(), x[m].mean(keepdims=True), x[m].max(axis=(0, 1)), x[m].sum(axis=0, keepdims=True), x[m].mean(axis=-2, dtype=np.float64), labels[m].max(), np.count_nonzero(x[m] > 0, axis=0))


def numbers_of_rows(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    m = labels != 1
    return (np.array(len(x[m])), np.array(x[m].shape[0]), x[m].size + 0 * x.sum(), np.array(np.shape(x[m])[1]), x[m].ndim * x[0], np.array(x[labels > 7].shape[0]), x[labels > 7].sum(axis=0), (x[labels > 7] > 0).all(axis=0))


def centroids(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    return np.stack([x[labels == k].mean(axis=0) for k in range(3)])


def within_groups(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    """Scatter and distances of a group about its centre."""
    g = x[labels == 0]
    d = g - g.mean(axis=0)
    w = x[:, 0] ** 2
    return (d.T @ d / (len(g) - 1), np.linalg.norm(d, axis=1).sum(), (d * w[labels == 0][:, None]).sum(axis=0), np.dot(w[labels == 0], g), (g @ x[:4].T).max(axis=0), np.average(g, axis=0, weights=w[labels == 0]),
            np.linalg.norm(d), g[:, 1].mean(), g[:, 1:3].sum(axis=0), g[..., -1].std(), abs(g).sum(axis=1).max(), g.sum(axis=1).mean(), max(g[:, 0]), sum(g[:, 2]), g.T.sum(axis=1), np.argmax(g, axis=1).max(), np.where(g > 0, g, 0).sum(axis=0))


def averages_and_ranges(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    m, i = labels == 1, (b[0] * 9).astype(np.int32)
    return (np.average(x[m], axis=0), np.average(x[m]), np.average(i[keys], axis=0, keepdims=True), np.average(x[m], axis=0, returned=True)[1], np.average(b[b > 0]), np.average(b[b > 0], returned=True)[1], np.average(x[m], axis=0, weights=None),
            np.ptp(x[m], axis=0), np.ptp(x[m]), np.ptp(b[:, keys], axis=1, keepdims=True), np.ptp(i[keys], axis=0), np.ptp(b[b > 0]), np.ptp(x[m], axis=1).sum())


def on_other_axes(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    return (b[:, keys].mean(axis=1), b[:, keys, 0].sum(axis=1), b[1, keys].max(axis=0), b[0, :, x[0] > 0].sum(axis=0), b[..., x[0] > 0].sum(axis=-1), b[:, keys, None].mean(axis=(1, 2)), b[b > 0].sum(), b[:, b[0] > 0].sum(axis=1),
            b[b[..., 0] > 0].mean(axis=0), b[b[..., 0] > 0].sum(axis=0, keepdims=True), b[:, keys, 1:3].std(axis=(0, 1)), (b[:, keys] - b[:, keys].mean(axis=1, keepdims=True)).max(axis=1), (b[:, keys] @ x[:4].T).sum(axis=1),
            (b[:, keys].sum(axis=0)).sum(axis=0), b[:, keys].transpose(1, 0, 2).sum(axis=0), np.argmax(b[:, keys].sum(axis=2).sum(axis=1)))


def of_other_types(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    i, h, z, f = (b[0] * 9).astype(np.int8), b[1].astype(np.float16), b[2] + 1j * b[0], b[0] > 0
    return (i[keys].sum(axis=0), i[keys].mean(axis=0), i[keys].max(axis=0), i[keys].min(axis=0), h[keys].mean(axis=0), h[keys].max(), z[keys].sum(axis=0), z[keys].mean(axis=0), z[keys].var(axis=0), f[keys].sum(axis=0), f[keys].any(axis=0),
            f[keys].max(axis=0), f[keys].min(axis=0), i.astype(np.uint64)[keys].min(axis=0), np.nanmean(np.where(b[0] > 0, np.nan, b[0])[keys], axis=0), np.nansum(i[keys], axis=0), i[keys].astype(np.float32).std(axis=1).sum())


def stored(x: Any, labels: Any, b: Any, keys: Any) -> Any:
    y, z, u, v, w = x.copy(), b.copy(), x * 2, x.copy(), b.copy()
    y[labels == 1] = x[0]
    y[labels == 2] += np.arange(4)
    y[labels == 0, 1] = 7
    z[:, keys] = np.array([[[1.0]], [[2.0]], [[3.0]]])
    z[0, keys, 1:3] *= -1
    z[b > 1] = 1
    z[b[..., 1] < 0] = [0, 1, 2, 3]
    u[labels == 1] = np.exp(x[labels == 1])
    u[labels == 0] -= u[labels == 0].mean(axis=0)
    v[:, x[0] > 0] /= v[:, x[0] > 0].sum(axis=0)
    v[labels == 2] = v[labels == 2][:, ::-1]
    w[..., x[0] > 0] = 0
    return y, z, u, v, w


FUNCTIONS = [reductions, numbers_of_rows, centroids, within_groups, averages_and_ranges, on_other_axes, of_other_types, stored]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_numpy_computes(function: Callable[..., Any]) -> None:
    given = X, LABELS, B, KEYS
    wanted, found = function(*given), caten.op(function, runtime="numpy")(*given)
    for n, (a, b) in enumerate(zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True)):
        assert np.shape(a) == np.shape(b), n
        assert np.asarray(a).dtype == np.asarray(b).dtype, n
        np.testing.assert_allclose(a, b, rtol=2e-3 if np.asarray(b).dtype == np.float16 else 1e-5, atol=1e-5, err_msg=str(n))

"""Operators of the library whose specs have no reference, against NumPy and plain Python."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.numpy_types import named
from caten.errors import CatenError

rng = np.random.default_rng(11)


def real(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def windows(x: np.ndarray, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], fill: float) -> np.ndarray:
    """[N C out… kernel…] of images [N C …]."""
    n = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]], constant_values=fill)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axis=tuple(range(2, 2 + n)))
    return view[(slice(None), slice(None), *[slice(None, None, s) for s in stride], *[slice(None, None, d) for d in dilation])]


def conv(x: np.ndarray, w: np.ndarray, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> np.ndarray:
    n = w.ndim - 2
    parts = [np.tensordot(windows(xg, w.shape[2:], stride, padding, dilation, 0.0), wg, axes=((1, *range(2 + n, 2 + 2 * n)), tuple(range(1, 2 + n))))
             for xg, wg in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)]
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)


def conv_transpose(x: np.ndarray, w: np.ndarray, stride: tuple[int, ...], padding: tuple[int, ...]) -> np.ndarray:
    """By spreading each pixel."""
    kernel = w.shape[2:]
    full = np.zeros((x.shape[0], w.shape[1], *[(e - 1) * s + k for e, s, k in zip(x.shape[2:], stride, kernel, strict=True)]))
    for at in np.ndindex(*x.shape[2:]):
        place = tuple([slice(a * s, a * s + k) for a, s, k in zip(at, stride, kernel, strict=True)])
        full[(slice(None), slice(None), *place)] += np.tensordot(x[(slice(None), slice(None), *at)], w, axes=1)
    return full[(slice(None), slice(None), *[slice(p, e - p) for p, e in zip(padding, full.shape[2:], strict=True)])]


def normal(x: np.ndarray, axes: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def channels(v: np.ndarray, n: int) -> np.ndarray:
    return v.reshape(-1, *[1] * (n - 2))


def scattered(x: np.ndarray, index: np.ndarray, updates: np.ndarray, at: Any) -> np.ndarray:
    made = x.copy()
    at(made, index, updates)
    return made


def rotary(x: np.ndarray, interleaved: bool) -> np.ndarray:
    t, d = x.shape[-2:]
    z = np.exp(1j * np.arange(t)[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d))
    pairs = (x[..., 0::2] + 1j * x[..., 1::2] if interleaved else x[..., :d // 2] + 1j * x[..., d // 2:]) * z
    return np.stack((pairs.real, pairs.imag), -1).reshape(x.shape) if interleaved else np.concatenate((pairs.real, pairs.imag), -1)


def bilinear(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    for axis, wide in ((2, size[0]), (3, size[1])):
        extent = x.shape[axis]
        p = np.maximum((np.arange(wide) + 0.5) * extent / wide - 0.5, 0)
        x = np.apply_along_axis(lambda row, p=p, extent=extent: np.interp(p, np.arange(extent), row), axis, x)
    return x


Q, K, V, IMAGE, FLAT, TABLE = real(2, 5, 4), real(2, 7, 4), real(2, 7, 3), real(2, 4, 7, 6), real(40), real(6, 5)
MASK, POSITIVE, TARGET = rng.random((5, 7)) < 0.7, rng.random((6, 5)), np.array([0, 4, 2, -1, 3, 1])
MASK[:, 0] = True
INDEX, SORTED, SQUARE = np.array([3, 0, 5, 3]), np.sort(real(9)), real(5, 5) + 4 * np.eye(5)
SIGN = np.sign(real(6, 5))
GROUPED_Q, GROUPED_K, GROUPED_V = real(1, 4, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 4)
START, COLUMN, VALUE, DENSE = np.array([0, 2, 2, 5]), np.array([0, 3, 1, 2, 0]), real(5), np.zeros((3, 4))
for _row in range(3):
    for _k in range(START[_row], START[_row + 1]):
        DENSE[_row, COLUMN[_k]] += VALUE[_k]
ROW, B = np.array([0, 0, 2, 2, 2]), real(4, 3)
ONE = (1, 1)
C, W, BIAS = IMAGE.shape[1], real(4), real(4)
CHOSEN = np.take_along_axis(TABLE, np.maximum(TARGET, 0)[:, None], 1)[:, 0]
LOSSES = np.where(TARGET >= 0, np.log(np.exp(TABLE).sum(1)) - CHOSEN, 0)
TOTALS = rng.integers(0, 6, 50)
BIG = rng.integers(-2**31, 2**31, 40).astype(np.int32)
SHIFT = rng.integers(0, 32, 40).astype(np.int32)
GRID = rng.random((1, 3, 2, 2)) * 1.6 - 0.8


def sampled() -> np.ndarray:
    x, made = IMAGE[:1], np.zeros((1, C, 3, 2))
    for p, q in np.ndindex(3, 2):
        gx, gy = ((GRID[0, p, q, 0] + 1) * 6 - 1) / 2, ((GRID[0, p, q, 1] + 1) * 7 - 1) / 2
        for i, j in np.ndindex(7, 6):
            made[0, :, p, q] += x[0, :, i, j] * max(0, 1 - abs(i - gy)) * max(0, 1 - abs(j - gx))
    return made


def with_past(q: np.ndarray, k: np.ndarray, v: np.ndarray, past_k: np.ndarray, past_v: np.ndarray, scale: float = 0.5) -> np.ndarray:
    """Causal attention over the past and the present, joined."""
    joined_k, joined_v = np.concatenate([past_k, k]).transpose(1, 2, 0), np.concatenate([past_v, v]).transpose(1, 0, 2)
    seen = np.arange(joined_v.shape[1]) <= len(past_k) + np.arange(len(q))[:, None]
    return (softmax(np.where(seen, q.transpose(1, 0, 2) @ joined_k * scale, -np.inf)) @ joined_v).transpose(1, 0, 2)


@pytest.mark.parametrize(("new", "old"), [(1, 6), (4, 6), (3, 0), (1, 0)])
def test_attention_with_a_past_is_that_of_all_tokens(new: int, old: int) -> None:
    draw = np.random.default_rng(5)
    given = [draw.standard_normal((n, 2, size)) for n, size in ((new, 4), (new, 4), (new, 3), (old, 4), (old, 3))]
    np.testing.assert_allclose(caten.ops.attention_with_past(*given), with_past(*given), rtol=1e-12)
    np.testing.assert_allclose(caten.ops.attention_with_past(*given, scale=2.0), with_past(*given, scale=2.0), rtol=1e-12)


CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Callable[[], Any]]] = [
    ("attention", (Q, K, V), {}, lambda: softmax(Q @ K.swapaxes(1, 2) / 2) @ V),
    ("attention", (Q, K, V), {"causal": True, "scale": 0.3}, lambda: softmax(np.where(np.arange(7) <= np.arange(5)[:, None], Q @ K.swapaxes(1, 2) * 0.3, -np.inf)) @ V),
    ("attention_mask", (Q, K, V, MASK), {}, lambda: softmax(np.where(MASK, Q @ K.swapaxes(1, 2) / 2, -np.inf)) @ V),
    ("attention_bias", (Q, K, V, real(5, 7) * 0 + 1.5 * MASK), {}, lambda: softmax(Q @ K.swapaxes(1, 2) / 2 + 1.5 * MASK) @ V),
    ("grouped_query_attention", (GROUPED_Q, GROUPED_K, GROUPED_V), {}, lambda: softmax(GROUPED_Q @ GROUPED_K.repeat(2, 1).swapaxes(2, 3) / 2) @ GROUPED_V.repeat(2, 1)),
    *[("rotary_embedding", (real(2, 5, 8) * 0 + np.arange(8.0),), {"interleaved": i}, lambda i=i: rotary(np.broadcast_to(np.arange(8.0), (2, 5, 8)), i)) for i in (False, True)],
    ("left_shift", (BIG, SHIFT), {}, lambda: BIG << SHIFT), ("right_shift", (BIG, SHIFT), {}, lambda: BIG >> SHIFT),
    *[(f"conv{n}d", (IMG, KER), {"stride": (s,) * n, "padding": (p,) * n, "dilation": (d,) * n, "groups": g}, lambda IMG=IMG, KER=KER, s=s, p=p, d=d, g=g, n=n: conv(IMG, KER, (s,) * n, (p,) * n, (d,) * n, g))
      for n in (1, 2, 3) for s, p, d, g in ((1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)) for IMG, KER in [(real(2, 4, *(7, 6, 8)[:n]), real(6, 4 // g, *(3, 2, 3)[:n]))]],
    *[(f"conv_transpose{n}d", (IMG, KER), {"stride": (s,) * n, "padding": (p,) * n}, lambda IMG=IMG, KER=KER, s=s, p=p, n=n: conv_transpose(IMG, KER, (s,) * n, (p,) * n))
      for n in (1, 2, 3) for s, p in ((1, 0), (2, 1)) for IMG, KER in [(real(2, 3, *(4, 3, 5)[:n]), real(3, 2, *(3, 3, 3)[:n]))]],
    ("im2col", (IMAGE,), {"padding": (1, 0), "stride": (2, 1)}, lambda: windows(IMAGE, (3, 3), (2, 1), (1, 0), ONE, 0.0).transpose(0, 1, 4, 5, 2, 3).reshape(2, 36, -1)),
    *[(f"max_pool{n}d", (IMG,), {"kernel": (3,) * n, "stride": (2,) * n, "padding": (1,) * n}, lambda IMG=IMG, n=n: windows(IMG, (3,) * n, (2,) * n, (1,) * n, (1,) * n, -np.inf).max(axis=tuple(range(2 + n, 2 + 2 * n))))
      for n in (1, 2, 3) for IMG in [real(2, 3, *(7, 6, 5)[:n])]],
    *[(f"avg_pool{n}d", (IMG,), {}, lambda IMG=IMG, n=n: windows(IMG, (2,) * n, (2,) * n, (0,) * n, (1,) * n, 0.0).mean(axis=tuple(range(2 + n, 2 + 2 * n))))
      for n in (1, 2, 3) for IMG in [real(2, 3, *(7, 6, 5)[:n])]],
    ("lp_pool2d", (IMAGE,), {}, lambda: np.sqrt((windows(IMAGE, (2, 2), (2, 2), (0, 0), ONE, 0.0) ** 2).sum((4, 5)))),
    ("global_avg_pool", (IMAGE,), {}, lambda: IMAGE.mean((2, 3), keepdims=True)), ("global_max_pool", (IMAGE,), {}, lambda: IMAGE.max((2, 3), keepdims=True)),
    ("adaptive_avg_pool2d", (IMAGE,), {"size": (3, 2)}, lambda: np.stack([np.stack([IMAGE[:, :, a:b, c:d].mean((2, 3)) for c, d in ((0, 3), (3, 6))], -1) for a, b in ((0, 3), (2, 5), (4, 7))], -2)),
    ("blackman_window", (), {"n": 9, "dtype": "float64"}, lambda: np.blackman(9)), ("bartlett_window", (), {"n": 9, "dtype": "float64"}, lambda: np.bartlett(9)),
    ("cummax", (TABLE,), {"axis": 0}, lambda: np.maximum.accumulate(TABLE, 0)), ("cummin", (TABLE,), {}, lambda: np.minimum.accumulate(TABLE, 1)),
    ("cumulative_trapezoid", (FLAT,), {"dx": 0.5}, lambda: np.cumsum(0.25 * (FLAT[1:] + FLAT[:-1]))),
    ("cumsum", (TABLE,), {"exclusive": True, "reverse": True}, lambda: TABLE[:, ::-1].cumsum(1)[:, ::-1] - TABLE),
    ("resize_nearest", (IMAGE,), {"size": (3, 9)}, lambda: IMAGE[:, :, np.arange(3) * 7 // 3][:, :, :, np.arange(9) * 6 // 9]),
    ("resize_bilinear", (IMAGE,), {"size": (10, 4)}, lambda: bilinear(IMAGE, (10, 4))), ("grid_sample", (IMAGE[:1], GRID), {}, sampled),
    ("gather_nd", (TABLE, np.array([[0, 2], [5, -1]])), {}, lambda: TABLE[[0, 5], [2, -1]]), ("one_hot", (np.array([1, 3]),), {"depth": 4}, lambda: np.eye(4)[[1, 3]]),
    ("scatter", (FLAT, INDEX, real(4) * 0 + np.arange(4.0)), {}, lambda: scattered(FLAT, INDEX, np.arange(4.0), lambda m, i, u: m.__setitem__(i, u))),
    ("scatter_add", (TABLE, INDEX, TABLE[:4]), {}, lambda: scattered(TABLE, INDEX, TABLE[:4], np.add.at)), ("scatter_max", (FLAT, INDEX, FLAT[-4:]), {}, lambda: scattered(FLAT, INDEX, FLAT[-4:], np.maximum.at)),
    ("index_fill", (TABLE, INDEX, 2.5), {}, lambda: scattered(TABLE, INDEX, np.float64(2.5), lambda m, i, u: m.__setitem__(i, u))),
    ("segment_sum", (TABLE, np.array([0, 3, 3, 1, 0, 3])), {}, lambda: scattered(np.zeros((4, 5)), np.array([0, 3, 3, 1, 0, 3]), TABLE, np.add.at)),
    ("bincount", (TOTALS,), {"bins": 6}, lambda: np.bincount(TOTALS, minlength=6)), ("weighted_bincount", (TOTALS[:40], FLAT), {"bins": 6}, lambda: np.bincount(TOTALS[:40], FLAT, 6)),
    ("histogram", (FLAT,), {"bins": 5, "low": -1.0}, lambda: np.histogram(FLAT, 5, (-1, 1))[0]),
    *[("searchsorted", (SORTED, np.concatenate((FLAT, SORTED))), {"right": r}, lambda r=r: np.searchsorted(SORTED, np.concatenate((FLAT, SORTED)), "right" if r else "left")) for r in (False, True)],
    ("cholesky", (SQUARE @ SQUARE.T,), {}, lambda: np.linalg.cholesky(SQUARE @ SQUARE.T)), ("inverse", (SQUARE,), {}, lambda: np.linalg.inv(SQUARE)), ("det", (SQUARE,), {}, lambda: np.linalg.det(SQUARE)),
    ("solve", (SQUARE[::-1].copy(), TABLE[:5]), {}, lambda: np.linalg.solve(SQUARE[::-1], TABLE[:5])),
    *[("triangular_solve", (SQUARE, TABLE[:5]), {"lower": low}, lambda low=low: np.linalg.solve(np.tril(SQUARE) if low else np.triu(SQUARE), TABLE[:5])) for low in (True, False)],
    ("binary_cross_entropy", (POSITIVE, POSITIVE[::-1].copy()), {}, lambda: -(POSITIVE[::-1] * np.log(POSITIVE) + (1 - POSITIVE[::-1]) * np.log(1 - POSITIVE)).mean()),
    ("kl_div", (np.log(POSITIVE), POSITIVE[::-1].copy()), {"reduction": "sum"}, lambda: (POSITIVE[::-1] * np.log(POSITIVE[::-1] / POSITIVE)).sum()),
    ("sigmoid_focal_loss", (TABLE, SIGN * 0 + 1), {}, lambda: (0.25 * -np.log(1 / (1 + np.exp(-TABLE))) * (1 - 1 / (1 + np.exp(-TABLE))) ** 2).mean()),
    ("triplet_margin_loss", (TABLE, TABLE + 0.1, -TABLE), {}, lambda: np.maximum(1 + np.sqrt(5) * 0.1 - 2 * np.linalg.norm(TABLE, axis=1), 0).mean()),
    ("cross_entropy", (TABLE, TARGET), {}, lambda: LOSSES.sum() / 5), ("nll_loss", (TABLE, TARGET), {}, lambda: -CHOSEN[TARGET >= 0].mean()),
    ("multi_margin_loss", (TABLE, np.abs(TARGET)), {}, lambda: np.mean([sum(max(0, 1 - row[t] + v) for c, v in enumerate(row) if c != t) / 5 for row, t in zip(TABLE, np.abs(TARGET), strict=True)])),
    ("cosine_embedding_loss", (TABLE, TABLE[::-1].copy(), np.ones(6)), {}, lambda: (1 - (TABLE * TABLE[::-1]).sum(1) / np.linalg.norm(TABLE, axis=1) / np.linalg.norm(TABLE[::-1], axis=1)).mean()),
    ("nearest_center", (TABLE, TABLE[::-2].copy()), {}, lambda: ((TABLE[:, None] - TABLE[::-2]) ** 2).sum(-1).argmin(1)),
    ("diag", (FLAT[:4],), {}, lambda: np.diag(FLAT[:4])), ("block_diag", (TABLE, SQUARE), {}, lambda: np.block([[TABLE, np.zeros((6, 5))], [np.zeros((5, 5)), SQUARE]])),
    ("toeplitz", (np.arange(3.0), np.array([0.0, 7, 8, 9])), {}, lambda: np.array([[0.0, 7, 8, 9], [1, 0, 7, 8], [2, 1, 0, 7]])),
    ("depth_to_space", (np.arange(8.0).reshape(1, 8, 1, 1),), {"mode": "CRD"}, lambda: np.array([[[[0.0, 1], [2, 3]], [[4, 5], [6, 7]]]])),
    ("depth_to_space", (np.arange(8.0).reshape(1, 8, 1, 1),), {}, lambda: np.array([[[[0.0, 2], [4, 6]], [[1, 3], [5, 7]]]])),
    ("space_to_depth", (np.arange(4.0).reshape(1, 1, 2, 2),), {}, lambda: np.arange(4.0).reshape(1, 4, 1, 1)), ("channel_shuffle", (IMAGE,), {}, lambda: IMAGE[:, [0, 2, 1, 3]]),
    ("sliding_windows", (TABLE,), {"step": 2}, lambda: np.lib.stride_tricks.sliding_window_view(TABLE, 3, 1)[:, ::2]),
    ("batch_norm", (IMAGE, W, BIAS, W + 1, BIAS ** 2), {}, lambda: (IMAGE - channels(W + 1, 4)) / np.sqrt(channels(BIAS ** 2, 4) + 1e-5) * channels(W, 4) + channels(BIAS, 4)),
    ("instance_norm", (IMAGE, W, BIAS), {}, lambda: normal(IMAGE, (2, 3)) * channels(W, 4) + channels(BIAS, 4)),
    ("group_norm", (IMAGE, W, BIAS), {}, lambda: normal(IMAGE.reshape(2, 2, 2, 7, 6), (2, 3, 4)).reshape(IMAGE.shape) * channels(W, 4) + channels(BIAS, 4)),
    ("min_max_scale", (TABLE,), {"axis": 0}, lambda: (TABLE - TABLE.min(0)) / np.ptp(TABLE, axis=0)),
    ("local_response_norm", (IMAGE,), {"size": 3, "alpha": 0.5}, lambda: IMAGE / (1 + 0.5 / 3 * np.stack([(IMAGE[:, max(0, c - 1):c + 2] ** 2).sum(1) for c in range(4)], 1)) ** 0.75),
    ("matrix_power", (SQUARE,), {"n": 5}, lambda: np.linalg.matrix_power(SQUARE, 5)), ("corrcoef", (TABLE,), {}, lambda: np.corrcoef(TABLE)),
    *[("norm", (TABLE,), {"ord": o, "axis": 1}, lambda o=o: np.linalg.norm(TABLE, o, 1)) for o in (0, 1, 2, 3, math.inf, -math.inf)],
    ("nanvar", (np.where(TABLE > 1, np.nan, TABLE),), {"axis": 1}, lambda: np.nanvar(np.where(TABLE > 1, np.nan, TABLE), axis=1)),
    ("quantile", (TABLE,), {"q": 0.3}, lambda: np.quantile(TABLE, 0.3, axis=1)), ("isin", (TOTALS, np.array([5, 2, 9])), {}, lambda: np.isin(TOTALS, [5, 2, 9])),
    ("csr_matvec", (START, COLUMN, VALUE, B[:, 0].copy()), {}, lambda: DENSE @ B[:, 0]), ("csr_matmul", (START, COLUMN, VALUE, B), {}, lambda: DENSE @ B), ("csr_to_dense", (START, COLUMN, VALUE), {}, lambda: DENSE),
    ("coo_matvec", (ROW, COLUMN, VALUE, B[:, 0].copy()), {}, lambda: DENSE @ B[:, 0]), ("coo_matmul", (ROW, COLUMN, VALUE, B), {}, lambda: DENSE @ B),
    ("digamma", (np.array([1.0, 0.5, 10.0, -0.5]),), {}, lambda: np.array([-0.5772156649015329, -1.9635100260214235, 2.251752589066721, 0.03648997397857652])),
    ("erfinv", (np.array([0.0, 0.5, -0.99, 1.0]),), {}, lambda: np.array([0.0, 0.4769362762044699, -1.8213863677184496, np.inf])),
    ("betaln", (np.array([2.0, 0.5]), np.array([3.0, 0.5])), {}, lambda: np.log([1 / 12, math.pi])),
    ("dct", (FLAT[:6],), {}, lambda: np.array([2 * sum(FLAT[n] * math.cos(math.pi * k * (2 * n + 1) / 12) for n in range(6)) for k in range(6)])),
    ("cast", (np.array([1.7, -2.7, 300.0, np.nan]),), {"dtype": "int8"}, lambda: np.array([1, -2, 127, 0])),
    ("quantize", (FLAT, 0.01, np.int8(3)), {}, lambda: np.clip(np.round(FLAT / 0.01) + 3, -128, 127)), ("fake_quantize", (FLAT, 0.01, 3.0), {}, lambda: (np.clip(np.round(FLAT / 0.01) + 3, -128, 127) - 3) * 0.01),
]


@pytest.mark.slice(24)
@pytest.mark.parametrize("n", range(len(CASES)), ids=[f"{n}-{name}" for n, (name, *_) in enumerate(CASES)])
def test_what_numpy_gives(n: int) -> None:
    name, args, named, wanted = CASES[n]
    made, expected = getattr(caten.ops, name)(*args, **named), np.asarray(wanted())
    assert np.shape(made) == expected.shape
    np.testing.assert_allclose(np.asarray(made, np.float64), expected, rtol=1e-9 if np.asarray(made).dtype != np.float32 else 1e-5, atol=1e-9)


def test_several_results() -> None:
    lu, pivots = caten.ops.lu(SQUARE[::-1].copy())
    rows = np.arange(5)
    for k, other in enumerate(pivots):
        rows[[k, other]] = rows[[other, k]]
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(5)) @ np.triu(lu), SQUARE[::-1][rows], atol=1e-12)
    q, r = caten.ops.qr(TABLE)
    np.testing.assert_allclose(q @ r, TABLE, atol=1e-12)
    np.testing.assert_allclose(q.T @ q, np.eye(5), atol=1e-12)
    y, mean, variance = caten.ops.batch_norm_training(IMAGE, W, BIAS)
    np.testing.assert_allclose(y, normal(IMAGE, (0, 2, 3)) * channels(W, 4) + channels(BIAS, 4), atol=1e-12)
    np.testing.assert_allclose((mean, variance), (IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))), atol=1e-12)
    for largest in (True, False):
        values, indices = caten.ops.topk(TABLE, k=2, largest=largest)
        order = np.argsort(-TABLE if largest else TABLE, 1)[:, :2]
        assert indices.tolist() == order.tolist()
        assert values.tolist() == np.take_along_axis(TABLE, order, 1).tolist()
    values, counts, number = caten.ops.unique_counts(TOTALS)
    assert (values[:number].tolist(), counts[:number].tolist()) == tuple([each.tolist() for each in np.unique(TOTALS, return_counts=True)])
    q8, scale, zero = caten.ops.dynamic_quantize(FLAT.astype(np.float32))
    assert np.abs((q8.astype(float) - zero) * scale - FLAT).max() <= 0.51 * scale


KEY = np.array([17, 4], np.uint32)


@pytest.mark.slice(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_extreme_of_16_bit_floats(dtype: str) -> None:
    for shape, axis in (((7,), 0), ((50, 33), 0), ((50, 33), 1), ((3, 4, 5), None), ((40000,), 0)):
        x = real(*shape).astype(named(dtype))
        for _ in range(2):
            for name in ("argmax", "argmin", "max", "min"):
                assert np.array_equal(getattr(caten.ops, name)(x, axis=axis), getattr(np, name)(x.astype(np.float32), axis=axis).astype(x.dtype if "arg" not in name else np.int64),
                                      equal_nan=True)
            x.reshape(-1)[x.size // 2] = np.nan


def test_random_bits_are_those_of_threefry() -> None:
    """Random123's known answer for Threefry-2x32 with 20 rounds: key 0, counter 0."""
    assert hex(caten.ops.random_bits(np.zeros(2, np.uint32), shape=(1,))[0]) == "0x6b200159"


@pytest.mark.slice(6)
@pytest.mark.parametrize(("name", "named", "mean", "variance"), [
    ("uniform", {}, 1 / 2, 1 / 12), ("normal", {}, 0, 1), ("randint", {"high": 6}, 2.5, 35 / 12), ("bernoulli", {"p": 0.3}, 0.3, 0.21), ("rademacher", {}, 0, 1), ("exponential", {}, 1, 1),
    ("gumbel", {}, 0.5772, math.pi ** 2 / 6), ("laplace", {}, 0, 2), ("logistic", {}, 0, math.pi ** 2 / 3), ("weibull", {"k": 2.0}, math.sqrt(math.pi) / 2, 1 - math.pi / 4), ("gamma_random", {}, 2, 2),
    ("gamma_random", {"alpha": 0.5}, 0.5, 0.5), ("beta_random", {}, 0.4, 0.04)])
def test_random_numbers_have_their_moments(name: str, named: dict[str, Any], mean: float, variance: float) -> None:
    made = np.asarray(getattr(caten.ops, name)(KEY, shape=(40_000,), **named), np.float64)
    assert abs(made.mean() - mean) < 5 * math.sqrt(variance / len(made))
    assert abs(made.var() / variance - 1) < 0.1


def test_permutations_and_dropout() -> None:
    assert sorted(caten.ops.permutation(KEY, n=50).tolist()) == list(range(50))
    dropped = caten.ops.dropout(KEY, np.ones(10_000), p=0.25)
    assert set(dropped.tolist()) == {0.0, 1 / 0.75}
    assert abs(dropped.mean() - 1) < 0.03


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
def test_a_transform_of_four_axes(opt: int) -> None:
    """Its rows are numbered by a product of three sizes, which could wrap where the last size is 0."""
    x = rng.standard_normal((2, 3, 2, 5)).astype(np.float32)
    np.testing.assert_allclose(caten.compile("ops:rfft", opt=opt)(x), np.fft.rfft(x), rtol=1e-4, atol=1e-4)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_those_of_numpy_to_the_last_bit(name: str, dtype: type) -> None:
    """Of quotients that one division finds, of larger ones, and of those on either side of a whole number."""
    draw = np.random.default_rng(1)
    special = np.array([0, -0.0, 1, -1, 0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-40, 1e30, 1e-30, 7, 2**22, 2**24, 2**51, 0.1, 1e-45], dtype)
    x, y = (v.ravel() for v in np.meshgrid(special, special))
    whole = draw.integers(-1000, 1000, 20_000).astype(dtype)
    part = draw.integers(1, 30, 20_000).astype(dtype) / dtype(7)
    far = [(draw.standard_normal(20_000) * 10.0 ** draw.uniform(-9, 9, 20_000)).astype(dtype) for _ in range(2)]
    x, y = np.concatenate([x, whole * part, np.nextafter(whole * part, dtype(0)), far[0]]), np.concatenate([y, part, part, far[1]])
    with np.errstate(all="ignore"):
        found, expected = getattr(caten.ops, name)(x, y), getattr(np, name)(x, y)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_fourier_transforms_of_lengths_of_all_kinds(nightly):
    """Powers of 2 and 4, odd factors, the greatest prime that is one, primes above, and products with them."""
    for n in (45,) if not nightly else (1, 2, 3, 4, 5, 8, 12, 16, 45, 64, 77, 141, 250, 251, 257, 263, 482, 514, 539, 1000, 1018, 1024, 2048, 3001):
        x = real(2, n) + 1j * real(2, n)
        expected = np.fft.fft(x, norm="ortho")
        assert np.abs(caten.ops.fft(x, norm="ortho") - expected).max() < 3e-15 * np.abs(expected).max(), n
    for n in (2, 3, 7, 65, 264) if nightly else ():
        x = real(3, n) + 1j * real(3, n)
        np.testing.assert_allclose(caten.ops.irfft(x), np.fft.irfft(x), atol=1e-14)


def test_every_operator_can_be_taken_from_the_module_and_called_in_a_body():
    for name in dir(caten.ops):
        assert getattr(caten.ops, name) is not None
    for body, inputs in (("matrix_transpose(x)", "x{float}[M N]"), ("rot90(x)", "x{float}[M N]"), ("einsum(x, y)", "x{float}[M N] y{float}[N K]"),
                         ("tensordot(x, y, axes=1)", "x{float}[M N] y{float}[N K]")):
        caten.compile(f"""[composite]
name = "Called"
inputs = {[f"{each}]" for each in inputs.rstrip("]").split("] ")]!r}
outputs = ["z{{float}}[...]"]

[composite.implementation]
lang = "python"
code = "return {body}"
""".replace("'", '"'))


@pytest.mark.slice(3)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_works_on_the_bits_of_floats(dtype: str) -> None:
    info = np.finfo(dtype)
    x = np.array([0, -0.0, 1, -1, 0.75, 3, -1e-3, info.tiny, -info.tiny / 4, info.smallest_subnormal, info.max, -info.max, np.inf, -np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        for to in (np.inf, -np.inf, 0.0, 1.0, np.nan):
            want = np.nextafter(x, np.asarray(to, dtype))
            found = caten.ops.nextafter(x, np.full_like(x, to))
            np.testing.assert_array_equal(found, want)
            other = (x != to) | (np.signbit(x) == np.signbit(to))              # of equal numbers NumPy's float16 gives the first, C the second
            assert (np.signbit(found) == np.signbit(want))[~np.isnan(want) & other].all()
        finite = abs(x[np.isfinite(x) & (abs(x) < info.max)])
        np.testing.assert_array_equal(caten.ops.spacing(finite), np.spacing(finite))
        for found, want in zip(caten.ops.frexp(x), np.frexp(x), strict=True):
            np.testing.assert_array_equal(found[np.isfinite(x)], want[np.isfinite(x)])


@pytest.mark.slice(4)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_bits_and_divisors_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 12, 84, 96, info.max, info.max - 1, info.min, info.min + 1], dtype)
    np.testing.assert_array_equal(caten.ops.bitwise_count(x), np.bitwise_count(x))
    small = x[1:-2]
    a, b = np.meshgrid(small, small)
    np.testing.assert_array_equal(caten.ops.gcd(a, b), np.gcd(a, b))
    for little in (x[:4], x[:7]):
        np.testing.assert_array_equal(caten.ops.lcm(little[:, None], little[:4]), np.lcm(little[:, None], little[:4]))
    packed = caten.ops.packbits(x)
    np.testing.assert_array_equal(packed, np.packbits(x != 0))
    np.testing.assert_array_equal(caten.ops.unpackbits(packed), np.unpackbits(packed))


def test_bessel_and_its_window() -> None:
    x = np.concatenate((np.linspace(-9, 9, 50), [20.0, 100.0, 700.0]))
    np.testing.assert_allclose(caten.ops.i0(x), np.i0(x), rtol=2e-14)
    np.testing.assert_allclose(caten.ops.kaiser_window(n=9, beta=5.0, dtype="float64"), np.kaiser(9, 5), rtol=1e-13)


def test_layers_with_a_state() -> None:
    """Against the steps written out."""
    x, h0, c0 = real(5, 2, 3), real(2, 4), real(2, 4)
    w, r, v, u = real(16, 3), real(16, 4), real(16), real(12)

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))
    h, states = h0, []
    for step in x:
        h = np.tanh(step @ w[:4].T + h @ r[:4].T + v[:4])
        states.append(h)
    for found, want in zip(caten.ops.rnn(x, w[:4], r[:4], v[:4], h0), (np.stack(states), h), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)
    h, c, states = h0, c0, []
    for step in x:
        i, f, g, o = np.split(step @ w.T + h @ r.T + v, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    for found, want in zip(caten.ops.lstm(x, w, r, v, h0, c0), (np.stack(states), h, c), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)
    h, states = h0, []
    for step in x:
        a, b = np.split(step @ w[:12].T + v[:12], 3, axis=-1), np.split(h @ r[:12].T + u, 3, axis=-1)
        k = sigmoid(a[1] + b[1])
        h = (1 - k) * np.tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]) + k * h
        states.append(h)
    for found, want in zip(caten.ops.gru(x, w[:12], r[:12], v[:12], u, h0), (np.stack(states), h), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)


def test_linear_recurrences() -> None:
    """Against the steps written out, in both directions."""
    factors, terms = real(3, 6), real(3, 6)
    for reverse in (False, True):
        want = terms.copy()
        for at in range(1, 6):
            here, before = (5 - at, 6 - at) if reverse else (at, at - 1)
            want[:, here] += factors[:, here] * want[:, before]
        np.testing.assert_allclose(caten.ops.linear_recurrence(factors, terms, reverse=reverse), want, rtol=1e-12)
    mix, add, weights, terms, start = real(4, 2, 2, 3, 5), real(4, 2, 3, 3, 5), real(15, 5), real(4, 2, 3, 5), real(2, 3, 5)
    s, states = start, []
    for d, g, b in zip(mix, add, terms, strict=True):
        gates = (s[0] @ weights.T).reshape(3, 3, 5)
        s = np.einsum("cdnh,dnh->cnh", d, s) + np.einsum("cknh,nkh->cnh", g, gates) + b
        states.append(s)
    for found, want in zip(caten.ops.gated_recurrence(mix, add, weights, terms, start), (np.stack(states), s), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)


def test_alignments_of_a_target_are_counted() -> None:
    """ctc_loss against all paths of labels, blanks and repetitions left out."""
    steps, classes, target = 4, 3, [1, 2]
    logs = np.log(softmax(real(steps, 1, classes)))
    total = 0.0
    for path in np.ndindex(*[classes] * steps):
        kept = [label for n, label in enumerate(path) if label and (not n or path[n - 1] != label)]
        total += math.exp(sum(logs[t, 0, label] for t, label in enumerate(path))) if kept == target else 0.0
    found = caten.ops.ctc_loss(logs, np.array([target]), np.array([steps]), np.array([2]), reduction="sum")
    np.testing.assert_allclose(found, -math.log(total), rtol=1e-12)


@pytest.mark.parametrize(("name", "more"), [("bincount", ()), ("weighted_bincount", (np.ones(3),))])
@pytest.mark.parametrize("outside", [-1, 3])
def test_what_is_counted_is_the_number_of_a_bin(name: str, more: tuple[Any, ...], outside: int) -> None:
    """A negative number is no index from the end."""
    with pytest.raises(CatenError, match=rf"E711: {name}: .* is outside \[0, 3\)"):
        getattr(caten.ops, name)(np.array([0, 1, outside]), *more, bins=3)

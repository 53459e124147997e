"""numba: loops as one would write them, with fastmath; parallel where there are threads."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

from ..problems import Problem, empty
from . import Call

VERSION = numba.__version__
f32 = np.float32
_parallel = False


def prepare(threads: int) -> None:
    global _parallel
    _parallel = threads > 1
    numba.set_num_threads(threads)


def gelu(x: Any, a: Any, b: Any, y: Any) -> None:
    for i in prange(x.size):
        z = x[i] * a[i] + b[i]
        y[i] = f32(0.5) * z * (f32(1) + np.tanh(f32(0.7978845608) * (z + f32(0.044715) * z * z * z)))


def softmax(x: Any, y: Any) -> None:
    for r in prange(x.shape[0]):
        top = x[r, 0]
        for i in range(x.shape[1]):
            top = max(top, x[r, i])
        s = f32(0)
        for i in range(x.shape[1]):
            v = np.exp(x[r, i] - top)
            y[r, i] = v
            s += v
        s = f32(1) / s
        for i in range(x.shape[1]):
            y[r, i] *= s


def layernorm(x: Any, g: Any, b: Any, y: Any) -> None:
    n = x.shape[1]
    for r in prange(x.shape[0]):
        s = f32(0)
        for i in range(n):
            s += x[r, i]
        mean, q = s / f32(n), f32(0)
        for i in range(n):
            d = x[r, i] - mean
            q += d * d
        factor = f32(1) / np.sqrt(q / f32(n) + f32(1e-5))
        for i in range(n):
            y[r, i] = (x[r, i] - mean) * factor * g[i] + b[i]


def softmax_of_columns(x: Any, y: Any) -> None:
    m, n = x.shape
    for block in prange((n + 255) // 256):
        first, last = block * 256, min(n, block * 256 + 256)
        top, s = x[0, first:last].copy(), np.zeros(last - first, f32)
        for i in range(m):
            for j in range(first, last):
                top[j - first] = max(top[j - first], x[i, j])
        for i in range(m):
            for j in range(first, last):
                v = np.exp(x[i, j] - top[j - first])
                y[i, j] = v
                s[j - first] += v
        for i in range(m):
            for j in range(first, last):
                y[i, j] /= s[j - first]


def rmsnorm(x: Any, g: Any, y: Any) -> None:
    n = x.shape[1]
    for r in prange(x.shape[0]):
        q = f32(0)
        for i in range(n):
            q += x[r, i] * x[r, i]
        factor = f32(1) / np.sqrt(q / f32(n) + f32(1e-5))
        for i in range(n):
            y[r, i] = x[r, i] * factor * g[i]


def residual_layernorm(x: Any, d: Any, g: Any, b: Any, y: Any) -> None:
    n = x.shape[1]
    for r in prange(x.shape[0]):
        s = f32(0)
        for i in range(n):
            v = x[r, i] + d[r, i]
            y[r, i] = v
            s += v
        mean, q = s / f32(n), f32(0)
        for i in range(n):
            c = y[r, i] - mean
            q += c * c
        factor = f32(1) / np.sqrt(q / f32(n) + f32(1e-5))
        for i in range(n):
            y[r, i] = (y[r, i] - mean) * factor * g[i] + b[i]


def cross_entropy(x: Any, labels: Any, y: Any) -> None:
    for r in prange(x.shape[0]):
        top, s = x[r, 0], f32(0)
        for i in range(x.shape[1]):
            top = max(top, x[r, i])
        for i in range(x.shape[1]):
            s += np.exp(x[r, i] - top)
        y[r] = np.log(s) + top - x[r, labels[r]]


def total(x: Any, y: Any) -> None:
    s = f32(0)
    for i in prange(x.size):
        s += x[i]
    y[0] = s


def column_sum(x: Any, y: Any) -> None:
    n = x.shape[1]
    for block in prange((n + 511) // 512):
        last = min(n, block * 512 + 512)
        for j in range(block * 512, last):
            y[j] = 0
        for i in range(x.shape[0]):
            for j in range(block * 512, last):
                y[j] += x[i, j]


def transpose(x: Any, y: Any) -> None:
    m, n = x.shape
    for block in prange((n + 31) // 32):
        for other in range((m + 31) // 32):
            for i in range(block * 32, min(n, block * 32 + 32)):
                for j in range(other * 32, min(m, other * 32 + 32)):
                    y[i, j] = x[j, i]


def sine(x: Any, y: Any) -> None:
    for i in prange(x.size):
        y[0, i] = np.sin(x[0, i])


def arange(y: Any) -> None:
    for i in prange(y.size):
        y[i] = i


def im2col(x: Any, y: Any) -> None:
    size = x.shape[2]
    for c in prange(x.shape[1]):
        for i in range(3):
            for j in range(3):
                for h in range(size):
                    for w in range(size):
                        a, b = h + i - 1, w + j - 1
                        y[0, c, i, j, h, w] = x[0, c, a, b] if 0 <= a < size and 0 <= b < size else f32(0)


def _compiled(function: Callable[..., None]) -> Callable[[Problem], Call]:
    def make(p: Problem) -> Call:
        kernel, inputs, out = numba.njit(parallel=_parallel, fastmath=True)(function), p.inputs, empty(*p.output.shape)

        def call() -> Any:
            kernel(*inputs, out)
            return out
        return call
    return make


CALLS = {kind: _compiled(f) for kind, f in {
    "gelu": gelu, "softmax": softmax, "layernorm": layernorm, "sum": total, "column sum": column_sum,
    "transpose": transpose, "sin": sine, "softmax of columns": softmax_of_columns, "rmsnorm": rmsnorm,
    "residual layernorm": residual_layernorm, "cross-entropy": cross_entropy,
    "arange": arange, "im2col": im2col}.items()}

"""Workloads as data: arrays of float32, the result in float64, and how caten's operator is called with them."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PAGE = 4096
EPSILON = 1e-5                 # of layernorm
LONG = 100_000
GELU = math.sqrt(2 / math.pi)


@dataclass
class Problem:
    """One workload. `inputs` go to every peer in this order; `output` is the array that caten fills; `result` is
    compared with `reference`, scaled by its greatest element. `arguments` and `keywords` are those of caten's
    operator, `sizes` its sizes and scalars."""

    kind: str
    inputs: tuple[Array, ...]
    output: Array
    reference: Array
    flops: int
    bytes: int
    tolerance: float
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int | float] = field(default_factory=dict)

    def error(self, result: Any) -> float:
        """The greatest difference from the reference, as a fraction of the reference's greatest element."""
        scale = float(np.max(np.abs(self.reference))) or 1.0
        return float(np.max(np.abs(np.asarray(result,
                                              np.float64).reshape(self.reference.shape) - self.reference))) / scale


def empty(*shape: int) -> Array:
    """An array of float32 at the beginning of a page."""
    size = math.prod(shape) * 4
    memory = np.empty(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start:start + size].view(np.float32).reshape(shape)


def drawn(*shape: int, low: float = -1.0, high: float = 1.0) -> Array:
    """Uniform in [low, high), from the shape as seed."""
    array = empty(*shape)
    array[...] = np.random.default_rng([*shape]).uniform(low, high, shape)
    return array


def matmul(M: int, N: int, K: int, B: int | None = None) -> Problem:
    """C = A @ B, for every batch if there is one. The operator without a batch adds to C, which begins as zeros."""
    batch = () if B is None else (B,)
    a, b, c = drawn(*batch, M, K), drawn(*batch, K, N, low=-0.5), empty(*batch, M, N)
    c[...] = 0
    return Problem("matmul", (a, b), c, a.astype(np.float64) @ b.astype(np.float64), 2 * M * N * K * (B or 1),
                   4 * (M * K + K * N + M * N) * (B or 1), 2e-5, (a, b, c),
                   sizes=dict(zip("BMNK"[not batch:], (*batch, M, N, K), strict=True)))


def gelu(N: int) -> Problem:
    """gelu(x·a + b) in the form with tanh."""
    x, a, b, y = drawn(N, low=-4, high=4), drawn(N), drawn(N, low=-0.5), empty(N)
    z = x.astype(np.float64) * a + b
    return Problem("gelu", (x, a, b), y, 0.5 * z * (1 + np.tanh(GELU * (z + 0.044715 * z ** 3))), 0, 16 * N, 5e-6,
                   (x, a, b),
                   {"out": y}, sizes={"N": N})


def softmax(M: int, N: int) -> Problem:
    """Of every row."""
    x, y = drawn(M, N, low=-8, high=8), empty(M, N)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    tolerance = 2e-5 if N < LONG else 1e-3                 # a long sum, added one by one
    return Problem("softmax", (x,), y, e / e.sum(1, keepdims=True), 0, 8 * M * N, tolerance, (x,), {"out": y},
                   sizes={"M": M, "N": N})


def layernorm(M: int, N: int) -> Problem:
    """Of every row, with a factor and a summand for every column."""
    x, g, b, y = drawn(M, N), drawn(N), drawn(N, low=-0.5), empty(M, N)
    X = x.astype(np.float64)
    reference = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + EPSILON) * g + b
    return Problem("layernorm", (x, g, b), y, reference, 0, 8 * M * N, 2e-5, (x, g, b, EPSILON), {"out": y},
                   sizes={"M": M, "N": N, "eps": EPSILON})


def total(N: int) -> Problem:
    """The sum of all elements."""
    x, s = drawn(N, low=0), empty(1)
    return Problem("sum", (x,), s, np.asarray(x.sum(dtype=np.float64)), 0, 4 * N, 1e-4, (x,), {"out": s},
                   sizes={"N": N})


def column_sum(M: int, N: int) -> Problem:
    """The sum of every column."""
    x, y = drawn(M, N, low=0), empty(N)
    return Problem("column sum", (x,), y, x.sum(0, dtype=np.float64), 0, 4 * M * N, 1e-4, (x,), {"out": y},
                   sizes={"M": M, "N": N})


def transpose(M: int, N: int) -> Problem:
    """Rows become columns."""
    x, y = drawn(M, N), empty(N, M)
    return Problem("transpose", (x,), y, x.T, 0, 8 * M * N, 0.0, (x,), {"out": y}, sizes={"M": M, "N": N})


def windows(x: Array, k: int, stride: int, pad: int) -> Array:
    """A view of (N, C, H, W), padded: (N, C, k, k, H_out, W_out)."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(2, 3))[:, :, ::stride, ::stride].transpose(0,
                                                                                                                     1,
                                                                                                                     4,
                                                                                                                     5,
                                                                                                                     2,
                                                                                                                     3)


def conv(C: int, H: int, k: int, stride: int, pad: int, filters: int, N: int = 1) -> Problem:
    """Square windows over square pictures, NCHW."""
    out = (H + 2 * pad - k) // stride + 1
    x, w, y = drawn(N, C, H, H), drawn(filters, C, k, k), empty(N, filters, out, out)
    columns = windows(x.astype(np.float64), k, stride, pad).reshape(N, C * k * k, out * out)
    reference = (w.reshape(filters, -1).astype(np.float64) @ columns).reshape(y.shape)
    outer = {} if stride == 1 else {"H_out": out, "W_out": out}
    return Problem("conv", (x, w), y, reference, 2 * N * filters * C * k * k * out * out,
                   4 * (x.size + w.size + y.size), 2e-5, (x, w),
                   {"out": y, **outer}, {"k": k, "stride": stride, "pad": pad},
                   {"N": N, "C": C, "H": H, "W": H, "O": filters, **outer})


def sine(N: int, rows: int = 0) -> Problem:
    """Of a matrix of angles in ±100, a square if `rows` is 0."""
    rows = rows or math.isqrt(N)
    x, y = drawn(rows, N // rows, low=-100, high=100), empty(rows, N // rows)
    return Problem("sin", (x,), y, np.sin(x.astype(np.float64)), 0, 8 * N, 1e-5, (x, y),
                   sizes={"M": rows, "N": N // rows})


def arange(N: int) -> Problem:
    """0, 1, 2, …"""
    y = empty(N)
    return Problem("arange", (), y, np.arange(N, dtype=np.float64), 0, 4 * N, 0.0, (y, 1.0, 0.0), {}, {"N": N},
                   {"N": N, "A": 1.0, "B": 0.0})


def im2col(C: int, H: int, N: int = 1) -> Problem:
    """The columns of a 3 × 3 convolution, padded by 1."""
    x, y = drawn(N, C, H, H), empty(N, C, 3, 3, H, H)
    return Problem("im2col", (x,), y, windows(x, 3, 1, 1), 0, 4 * (x.size + y.size), 0.0, (x,), {"out": y},
                   sizes={"N": N, "C": C, "H": H, "W": H})


"""numpy, with preallocated outputs where its functions take them."""
from __future__ import annotations

import numpy as np

from .. import programs
from ..problems import EPSILON, GELU, Array, Problem, empty, windows
from . import Call

VERSION = np.__version__


def prepare(threads: int) -> None:
    """Nothing: its BLAS reads the environment."""


def matmul(p: Problem) -> Call:
    (a, b), out = p.inputs, empty(*p.output.shape)
    return lambda: np.matmul(a, b, out=out)


def gelu(p: Problem) -> Call:
    (x, a, b), out, t = p.inputs, empty(*p.output.shape), empty(*p.output.shape)

    def call() -> Array:
        np.multiply(x, a, out=out)
        np.add(out, b, out=out)
        np.multiply(out, out, out=t)
        np.multiply(t, np.float32(0.044715 * GELU), out=t)
        np.add(t, np.float32(GELU), out=t)
        np.multiply(t, out, out=t)
        np.tanh(t, out=t)
        np.add(t, np.float32(1), out=t)
        np.multiply(t, np.float32(0.5), out=t)
        return np.multiply(t, out, out=t)
    return call


def softmax(p: Problem) -> Call:
    (x,), out = p.inputs, empty(*p.output.shape)

    def call() -> Array:
        np.subtract(x, x.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        return np.divide(out, out.sum(1, keepdims=True), out=out)
    return call


def layernorm(p: Problem) -> Call:
    (x, g, b), out = p.inputs, empty(*p.output.shape)

    def call() -> Array:
        np.subtract(x, x.mean(1, keepdims=True), out=out)
        variance = np.einsum("ij,ij->i", out, out) / np.float32(x.shape[1])
        np.multiply(out, (1 / np.sqrt(variance + np.float32(EPSILON)))[:, None], out=out)
        np.multiply(out, g, out=out)
        return np.add(out, b, out=out)
    return call


def total(p: Problem) -> Call:
    x, = p.inputs
    return lambda: x.sum()


def column_sum(p: Problem) -> Call:
    (x,), out = p.inputs, empty(*p.output.shape)
    return lambda: x.sum(0, out=out)


def transpose(p: Problem) -> Call:
    (x,), out = p.inputs, empty(*p.output.shape)

    def call() -> Array:
        np.copyto(out, x.T)
        return out
    return call


def conv(p: Problem) -> Call:
    (x, w), c = p.inputs, p.constants

    def call() -> Array:
        columns = windows(x, c["k"], c["stride"], c["pad"]).reshape(x.shape[0], w[0].size, -1)
        return (w.reshape(len(w), -1) @ columns).reshape(p.output.shape)
    return call


def sine(p: Problem) -> Call:
    (x,), out = p.inputs, empty(*p.output.shape)
    return lambda: np.sin(x, out=out)


def arange(p: Problem) -> Call:
    n = p.constants["N"]
    return lambda: np.arange(n, dtype=np.float32)


def im2col(p: Problem) -> Call:
    (x,), out = p.inputs, empty(*p.output.shape)

    def call() -> Array:
        np.copyto(out, windows(x, 3, 1, 1))
        return out
    return call


def program(p: Problem) -> Call:
    formula, inputs = programs.FORMULAS[p.kind], p.inputs
    return lambda: formula(np, *inputs)


CALLS = {**dict.fromkeys(programs.FORMULAS, program), "matmul": matmul, "gelu": gelu, "softmax": softmax,
         "layernorm": layernorm, "sum": total, "column sum": column_sum, "transpose": transpose, "conv": conv,
         "sin": sine, "arange": arange, "im2col": im2col}

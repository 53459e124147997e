"""Programs of whole arrays as workloads: a body in Python per program (specs/programs), and its formula for numpy and
JAX. Torch has formulas of its own, with the functions that its users call.

Every program is compared in one call: caten's fused kernels, the functions of a library, and what compilers make of the
same formula."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from .problems import EPSILON, GELU, Array, Problem, drawn, empty

SPECS = Path(__file__).resolve().parent / "specs" / "programs"
HEADS, WIDTH, CLASSES = 12, 64, 50_257


def softmax(xp: Any, x: Any, axis: int) -> Any:
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def rmsnorm(xp: Any, x: Any, g: Any) -> Any:
    return x / xp.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(EPSILON)) * g


def layernorm(xp: Any, x: Any, g: Any, b: Any) -> Any:
    c = x - x.mean(-1, keepdims=True)
    return c / xp.sqrt((c * c).mean(-1, keepdims=True) + x.dtype.type(EPSILON)) * g + b


def gelu(xp: Any, x: Any) -> Any:
    one = x.dtype.type
    return one(0.5) * x * (one(1) + xp.tanh(one(GELU) * (x + one(0.044715) * x * x * x)))


def batchnorm(xp: Any, x: Any, g: Any, b: Any) -> Any:
    c = x - x.mean(axis=(0, 2, 3), keepdims=True)
    variance = (c * c).mean(axis=(0, 2, 3), keepdims=True)
    return c / xp.sqrt(variance + x.dtype.type(EPSILON)) * g[:, None, None] + b[:, None, None]


def convolution(xp: Any, x: Any, w: Any) -> Any:
    """Of square windows of odd sides, with zeros around the image."""
    k = w.shape[2]
    p = xp.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return sum([xp.einsum("nchw,oc->nohw", p[:, :, i:i + x.shape[2], j:j + x.shape[3]], w[:, :, i, j])
                for i in range(k) for j in range(k)])


def resnet_block(xp: Any, x: Any, w: Any, b: Any, v: Any, d: Any) -> Any:
    """Two convolutions and a residual (the normalisations are part of weights and biases, as for inference)."""
    z = xp.maximum(convolution(xp, x, w) + b[:, None, None], 0)
    return xp.maximum(convolution(xp, z, v) + d[:, None, None] + x, 0)


def attention(xp: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    s = q @ k.transpose(0, 2, 1) * q.dtype.type(0.125)
    if causal:
        t = np.arange(q.shape[1])
        s = xp.where(t[None, :] <= t[:, None], s, q.dtype.type(-np.inf))
    return softmax(xp, s, -1) @ v


def crossentropy(xp: Any, x: Any, labels: Any) -> Any:
    top = x.max(axis=1, keepdims=True)
    return xp.log(xp.exp(x - top).sum(axis=1)) + top[:, 0] - x[np.arange(len(x)), labels]


def mlp(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return softmax(xp, xp.maximum(x @ w1 + b1, 0) @ w2 + b2, -1)


def block(xp: Any, x: Any, g1: Any, b1: Any, wq: Any, wk: Any, wv: Any, wo: Any, g2: Any, b2: Any, w1: Any, c1: Any,
          w2: Any, c2: Any) -> Any:
    n = layernorm(xp, x, g1, b1)
    q, k, v = [(n @ w).reshape(len(x), HEADS, WIDTH).transpose(1, 0, 2) for w in (wq, wk, wv)]
    x = x + attention(xp, q, k, v, True).transpose(1, 0, 2).reshape(x.shape) @ wo
    return x + gelu(xp, layernorm(xp, x, g2, b2) @ w1 + c1) @ w2 + c2


# Kind -> the formula of its inputs, for numpy and JAX.
FORMULAS: Mapping[str, Callable[..., Any]] = {
    "softmax of columns": partial(softmax, axis=0), "rmsnorm": rmsnorm, "batchnorm": batchnorm,
    "gelu(x W + b)": lambda xp, x, w, b: gelu(xp, x @ w + b),
    "conv + bias + relu": lambda xp, x, w, b: xp.maximum(convolution(xp, x, w) + b[:, None, None], 0),
    "1x1 conv + bias + relu": lambda xp, x, w, b: xp.maximum(convolution(xp, x, w[:, :, None, None])
                                                             + b[:, None, None], 0),
    "block of ResNet": resnet_block,
    "residual layernorm": lambda xp, x, r, g, b: layernorm(xp, x + r, g, b),
    "attention": partial(attention, causal=False), "causal attention": partial(attention, causal=True),
    "cross-entropy": crossentropy, "mlp": mlp, "block": block,
}


def problem(kind: str, *inputs: Array, flops: int = 0, tolerance: float = 2e-5) -> Problem:
    """The problem of a program on its inputs."""
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in inputs]
    reference = np.asarray(FORMULAS[kind](np, *wide))
    output = empty(*reference.shape)
    moved = sum([a.nbytes for a in (*inputs, output)])
    return Problem(kind, inputs, output, reference, flops, moved, tolerance, inputs, {"out": output})


def rows(kind: str, m: int, n: int) -> Problem:
    """Programs over the rows or columns of a matrix."""
    x, g, b = drawn(m, n, low=-8, high=8), drawn(n), drawn(n, low=-0.5)
    others = {"softmax of columns": (), "rmsnorm": (g,), "residual layernorm": (drawn(m, n, low=-0.5), g, b),
              "cross-entropy": (np.random.default_rng(m).integers(0, n, m),)}[kind]
    return problem(kind, x, *others)


def affine_gelu(m: int, k: int, n: int) -> Problem:
    return problem("gelu(x W + b)", drawn(m, k), drawn(k, n, low=-0.5), drawn(n), flops=2 * m * k * n)


def normalised_batch(n: int, c: int, side: int) -> Problem:
    return problem("batchnorm", drawn(n, c, side, side), drawn(c), drawn(c, low=-0.5))


def convolved(kind: str, c: int, side: int, o: int) -> Problem:
    window = () if kind[0] == "1" else (3, 3)
    return problem(kind, drawn(1, c, side, side), drawn(o, c, *window, low=-0.5), drawn(o, low=-0.5),
                   flops=2 * c * o * side * side * (9 if window else 1), tolerance=1e-4)


def residual_block(c: int, side: int) -> Problem:
    scale = np.float32(1 / (9 * c) ** 0.5)
    return problem("block of ResNet", drawn(1, c, side, side), drawn(c, c, 3, 3, low=-0.5) * scale, drawn(c, low=-0.5),
                   drawn(c, c, 3, 3, low=-0.5) * scale, drawn(c, low=-0.5), flops=36 * c * c * side * side,
                   tolerance=1e-4)


def heads(kind: str, t: int) -> Problem:
    q, k, v = (drawn(HEADS, t, WIDTH, low=low) for low in (-1, -0.9, -0.8))
    return problem(kind, q, k, v, flops=4 * HEADS * t * t * WIDTH // (2 if kind[0] == "c" else 1), tolerance=1e-4)


def perceptron(n: int) -> Problem:
    return problem("mlp", drawn(n, 784), drawn(784, 128), drawn(128), drawn(128, 10), drawn(10),
                   flops=2 * n * (784 * 128 + 1280), tolerance=1e-4)


def transformer(t: int) -> Problem:
    e = HEADS * WIDTH
    scaled = [drawn(*shape) * np.float32(0.03) for shape in ((e, e), (e, e), (e, e), (e, e))]
    return problem("block", drawn(t, e), drawn(e), drawn(e), *scaled, drawn(e), drawn(e),
                   drawn(e, 4 * e) * np.float32(0.03), drawn(4 * e), drawn(4 * e, e) * np.float32(0.03), drawn(e),
                   flops=24 * t * e * e + 2 * t * t * e, tolerance=1e-4)


CONVOLUTIONS = (("conv + bias + relu", "convolution_relu"), ("1x1 conv + bias + relu", "pointwise_relu"))
Sized = tuple[str, str, Callable[[], Problem]]           # a name, the file of the spec, and what makes the problem


def _rows(kind: str, file: str, m: int, n: int) -> Sized:
    return f"{kind} {m}x{n}", file, partial(rows, kind, m, n)


def table(seed: int | None = None) -> list[Sized]:
    """The programs at sizes that are chosen, or with a seed at three sizes each that nobody chose."""
    if seed is None:
        return [
            _rows("softmax of columns", "softmax_columns", 1024, 1024),
            _rows("rmsnorm", "rmsnorm", 4096, 768),
            _rows("residual layernorm", "residual_layernorm", 4096, 768),
            _rows("cross-entropy", "cross_entropy", 64, CLASSES),
            *[(f"gelu(x W + b) 512x{k}x768", "affine_gelu", partial(affine_gelu, 512, k, 768)) for k in (64, 256, 768)],
            *[(f"{kind} {c}x{side}x{side}", file, partial(convolved, kind, c, side, c)) for kind, file in CONVOLUTIONS
              for c, side in ((64, 56), (256, 14), (512, 7))],
            *[(f"block of ResNet {c}x{side}x{side}", "resnet_block", partial(residual_block, c, side))
              for c, side in ((64, 56), (256, 14))],
            ("batchnorm 8x64x56x56", "batchnorm", partial(normalised_batch, 8, 64, 56)),
            *[(f"{kind} {t}", kind.replace(" ", "_"), partial(heads, kind, t))
              for t in (128, 256, 1024, 2048) for kind in ("attention", "causal attention")],
            ("mlp 64x784x128x10", "mlp", partial(perceptron, 64)),
            ("block of GPT-2, 128 tokens", "block", partial(transformer, 128)),
        ]
    rnd = Random(seed)

    def size(greatest: int) -> int:
        return max(2, round(greatest ** rnd.uniform(0.4, 1)))
    made: list[Sized] = []
    for _ in range(3):
        made += [_rows(kind, file, size(2000), size(2000)) for kind, file in (
            ("softmax of columns", "softmax_columns"), ("rmsnorm", "rmsnorm"),
            ("residual layernorm", "residual_layernorm"), ("cross-entropy", "cross_entropy"))]
        m, k, n, c, side, t = size(1000), size(1000), size(1000), size(128), size(80), size(1500)
        made += [(f"gelu(x W + b) {m}x{k}x{n}", "affine_gelu", partial(affine_gelu, m, k, n)),
                 *[(f"{kind} {c}x{side}x{side}", file, partial(convolved, kind, c, side, n))
                   for kind, file in CONVOLUTIONS],
                 (f"block of ResNet {c}x{side}x{side}", "resnet_block", partial(residual_block, c, side)),
                 (f"batchnorm 4x{c}x{side}x{side}", "batchnorm", partial(normalised_batch, 4, c, side)),
                 (f"attention {t}", "attention", partial(heads, "attention", t)),
                 (f"causal attention {t}", "causal_attention", partial(heads, "causal attention", t)),
                 (f"mlp {m}x784x128x10", "mlp", partial(perceptron, m))]
    return made

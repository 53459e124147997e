"""torch, eager."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from ..problems import EPSILON, Problem, empty
from ..programs import HEADS, WIDTH
from . import Call

VERSION = torch.__version__

# Kind -> from the problem's constants, a function of its inputs.
FORMULAS: Mapping[str, Callable[[Mapping[str, int]], Callable[..., Any]]] = {
    "matmul": lambda c: lambda a, b: a @ b,
    "gelu": lambda c: lambda x, a, b: F.gelu(x * a + b, approximate="tanh"),
    "softmax": lambda c: lambda x: torch.softmax(x, -1),
    "layernorm": lambda c: lambda x, g, b: F.layer_norm(x, (x.shape[1],), g, b, EPSILON),
    "sum": lambda c: lambda x: x.sum(),
    "column sum": lambda c: lambda x: x.sum(0),
    "transpose": lambda c: lambda x: x.t().contiguous(),
    "conv": lambda c: lambda x, w: F.conv2d(x, w, stride=c["stride"], padding=c["pad"]),
    "sin": lambda c: lambda x: torch.sin(x),
    "arange": lambda c: lambda: torch.arange(c["N"], dtype=torch.float32),
    "im2col": lambda c: lambda x: F.unfold(x, 3, padding=1),
    "softmax of columns": lambda c: lambda x: torch.softmax(x, 0),
    "rmsnorm": lambda c: lambda x, g: F.rms_norm(x, (x.shape[1],), g, EPSILON),
    "residual layernorm": lambda c: lambda x, r, g, b: F.layer_norm(x + r, (x.shape[1],), g, b, EPSILON),
    "batchnorm": lambda c: lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.1, EPSILON),
    "conv + bias + relu": lambda c: lambda x, w, b: F.relu(F.conv2d(x, w, b, padding=1)),
    "1x1 conv + bias + relu": lambda c: lambda x, w, b: F.relu(F.conv2d(x, w[:, :, None, None], b)),
    "block of ResNet": lambda c: lambda x, w, b, v, d: F.relu(
        F.conv2d(F.relu(F.conv2d(x, w, b, padding=1)), v, d, padding=1) + x),
    "gelu(x W + b)": lambda c: lambda x, w, b: F.gelu(torch.addmm(b, x, w), approximate="tanh"),
    "attention": lambda c: lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
    "causal attention": lambda c: lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None],
                                                                                 is_causal=True)[0],
    "cross-entropy": lambda c: lambda x, labels: F.cross_entropy(x, labels, reduction="none"),
    "mlp": lambda c: lambda x, w1, b1, w2, b2: torch.softmax(torch.addmm(b2, F.relu(torch.addmm(b1, x, w1)), w2), -1),
    "block": lambda c: _block,
}


def _block(x: Any, g1: Any, b1: Any, wq: Any, wk: Any, wv: Any, wo: Any, g2: Any, b2: Any, w1: Any, c1: Any, w2: Any,
          c2: Any) -> Any:
    n = F.layer_norm(x, (x.shape[1],), g1, b1, EPSILON)
    q, k, v = [(n @ w).reshape(len(x), HEADS, WIDTH).transpose(0, 1)[None] for w in (wq, wk, wv)]
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1).reshape(x.shape)
    x = torch.addmm(x, a, wo)
    z = F.gelu(torch.addmm(c1, F.layer_norm(x, (x.shape[1],), g2, b2, EPSILON), w1), approximate="tanh")
    return x + torch.addmm(c2, z, w2)


def prepare(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def inputs(p: Problem) -> list[torch.Tensor]:
    """The same memory, as tensors."""
    return [torch.from_numpy(a) for a in p.inputs]


def _plain(p: Problem) -> Call:
    given, f = inputs(p), FORMULAS[p.kind](p.constants)
    return lambda: f(*given)


def _out(function: Callable[..., Any]) -> Callable[[Problem], Call]:
    def make(p: Problem) -> Call:
        given, out = inputs(p), torch.from_numpy(empty(*p.output.shape))
        return lambda: function(*given, out=out)
    return make


def _arange(p: Problem) -> Call:
    n, out = p.constants["N"], torch.from_numpy(empty(*p.output.shape))
    return lambda: torch.arange(n, dtype=torch.float32, out=out)


CALLS = dict.fromkeys(FORMULAS, _plain) | {"matmul": _out(torch.matmul), "sin": _out(torch.sin), "arange": _arange}

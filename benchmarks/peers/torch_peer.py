"""torch, eager."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from ..problems import EPSILON, Problem, empty
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
}


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

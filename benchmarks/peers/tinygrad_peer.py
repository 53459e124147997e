"""tinygrad, with its JIT; it needs a clang of its own. A call waits for its result."""
from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tinygrad import Device, Tensor, TinyJit, dtypes

from ..problems import EPSILON, Problem
from . import Call

VERSION = version("tinygrad")
WARM = 3                       # calls until its JIT has captured the kernels


def prepare(threads: int) -> None:
    """It calls a compiler by the name `clang`: where there are only names with a version, the newest gets that name,
    too."""
    found = [file for folder in os.get_exec_path() for file in Path(folder).glob("clang-*") if file.name[6:].isdigit()]
    if found and shutil.which("clang") is None:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        Path(folder, "clang").symlink_to(max(found, key=lambda file: int(file.name[6:])))
        os.environ["PATH"] += f"{os.pathsep}{folder}"


FORMULAS: Mapping[str, Callable[[Mapping[str, int]], Callable[..., Any]]] = {
    "matmul": lambda c: lambda a, b: a @ b,
    "gelu": lambda c: lambda x, a, b: (x * a + b).gelu(),
    "softmax": lambda c: lambda x: x.softmax(-1),
    "layernorm": lambda c: lambda x, g, b: x.layernorm(eps=EPSILON) * g + b,
    "sum": lambda c: lambda x: x.sum(),
    "column sum": lambda c: lambda x: x.sum(0),
    "transpose": lambda c: lambda x: x.permute(1, 0).contiguous(),
    "conv": lambda c: lambda x, w: x.conv2d(w, stride=c["stride"], padding=c["pad"]),
    "sin": lambda c: lambda x: x.sin(),
    "arange": lambda c: lambda: Tensor.arange(c["N"], dtype=dtypes.float32).contiguous(),
}


def jitted(p: Problem) -> Call:
    given, device = [Tensor(a, device="CPU").clone().realize() for a in p.inputs], Device["CPU"]
    formula = FORMULAS[p.kind](p.constants)
    f = TinyJit(lambda *arrays: formula(*arrays).realize())

    def call() -> Any:
        result = f(*given)
        device.synchronize()
        return result
    for _ in range(WARM):
        call()
    return call


CALLS = dict.fromkeys(FORMULAS, jitted)

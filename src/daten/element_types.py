"""Element types as objects: `x.dtype`."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from caten.core.dtypes import DTYPES, SPELLINGS
from caten.core.numpy_types import numpy_dtype
from caten.functions.call_keys import dtype_of


class DType:
    """An element type. It equals its name and NumPy's type: `x.dtype == "float32"`."""

    __slots__ = ("caten", "name")

    def __init__(self, caten: str) -> None:
        self.caten, self.name = caten, DTYPES[caten].numpy

    @property
    def kind(self) -> str:
        """bool, int, uint, float or complex."""
        return DTYPES[self.caten].kind

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return DTYPES[self.caten].bytes

    @property
    def numpy(self) -> np.dtype:
        """The element type of NumPy."""
        return numpy_dtype(self.caten)

    @property
    def dtype(self) -> np.dtype:
        """The same: so NumPy takes this object where it takes a type, as in np.zeros(3, x.dtype)."""
        return self.numpy

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.caten == other.caten
        try:
            return isinstance(other, str | type | np.dtype) and type_named(other) == self.caten
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


@cache
def dtype(caten: str) -> DType:
    """The object of an element type."""
    return DType(caten)


def type_named(given: Any) -> str:
    """What caten calls an element type: "float32", a type of NumPy or one of ours. TypeError if there is none."""
    if isinstance(given, DType):
        return given.caten
    found = SPELLINGS.get(given.lower()) if isinstance(given, str) else dtype_of(np.empty(0, np.dtype(given)))
    if found is None:
        raise TypeError(f"no tensor has elements of type {given}")
    return found

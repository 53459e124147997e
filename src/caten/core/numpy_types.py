"""The element types in numpy. Those that numpy lacks come from ml_dtypes, which is imported where one is used."""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from .dtypes import DTYPES

if TYPE_CHECKING:
    import numpy as np

EXTENDED = frozenset(("bf16", "i4", "u4"))


@cache
def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy dtype of an element type; elements of 4 bits take a byte each."""
    import numpy as np
    if dtype in EXTENDED:
        import ml_dtypes
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, DTYPES[dtype].numpy))
        return found
    return np.dtype(DTYPES[dtype].numpy)


def named(name: str) -> np.dtype[Any]:
    """The dtype of a name or code of numpy's, or of a name of ml_dtypes'."""
    import numpy as np
    known = next((d for d in EXTENDED if DTYPES[d].numpy == name), None)
    return np.dtype(name) if known is None else numpy_dtype(known)


def as_stored(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The array with the element type it was saved with: files of numpy keep only the size of the types that numpy
    lacks."""
    raw = array.dtype.kind == "V" and array.dtype.names is None
    if dtype in EXTENDED and raw and array.dtype.itemsize == numpy_dtype(dtype).itemsize:
        return array.view(numpy_dtype(dtype))
    return array


def kind_of(dtype: np.dtype[Any]) -> str:
    """numpy's letter for the kind of an element type, `b i u f c`, of those of ml_dtypes too."""
    known = {"bfloat16": "f", "int4": "i", "uint4": "u"}
    return known.get(dtype.name, dtype.kind) if dtype.kind == "V" else dtype.kind

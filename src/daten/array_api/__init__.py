"""The Python array API standard, version 2024.12, over lazy tensors: `import daten.array_api as xp`.

docs/array_api.md lists what is missing and what differs. Arrays are lazy: the result of a function is computed when its
elements are needed. Functions compute immediately if the shape of their result depends on values (`nonzero`,
`unique_*`, masks as indices).
"""
from math import e, inf, nan, pi
from typing import Any

from ..tensor import Tensor
from . import fft, linalg
from .creation_functions import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .data_types import (
    Info,
    astype,
    bool,
    can_cast,
    complex64,
    complex128,
    finfo,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    result_type,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .elementwise import *
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import *
from .statistical_functions import *

__array_api_version__ = "2024.12"
newaxis = None


def __array_namespace_info__() -> Any:
    """The capabilities, element types and devices of the namespace."""
    return Info()


__all__ = sorted({n for n in globals() if not n.startswith("_")} - {
    "Any", "Info", "creation_functions", "data_types", "elementwise", "linear_algebra", "manipulation",
    "statistical_functions"})

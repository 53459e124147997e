"""`np.finfo(dtype)` and `np.iinfo(dtype)`: the limits of an element type, which are known when a body is compiled."""
from __future__ import annotations

from typing import ClassVar

from ...core.dtypes import DTYPES, FORMATS, part
from ...frozen import frozen
from .builder import Builder


@frozen
class TypeLimits:
    """`numbers`: by the names that NumPy has for them."""

    numbers: dict[str, float]
    described: ClassVar[str] = "the limits of an element type"


def finfo(b: Builder, dtype: str) -> TypeLimits:
    """Of floats, and of the parts of complex numbers."""
    dtype = part(dtype)
    if dtype not in FORMATS:
        b.fail("E322", f"np.finfo takes a type of floats, not {DTYPES[dtype].numpy}", "np.iinfo has those of integers")
    digits, last, greatest = FORMATS[dtype]
    tiny = 2.0 ** (last + digits - 1)
    return TypeLimits({"eps": 2.0 ** (1 - digits), "max": greatest, "min": -greatest, "tiny": tiny,
                       "smallest_normal": tiny, "smallest_subnormal": 2.0 ** last, "bits": DTYPES[dtype].bits})


def iinfo(b: Builder, dtype: str) -> TypeLimits:
    """Of integers."""
    type_ = DTYPES[dtype]
    if type_.kind not in ("int", "uint"):
        b.fail("E322", f"np.iinfo takes a type of integers, not {type_.numpy}", "np.finfo has those of floats")
    return TypeLimits({"max": type_.greatest, "min": type_.least, "bits": type_.bits})

"""What may be accumulated in any order: operators with their identity."""
from __future__ import annotations

from .dtypes import DTYPES
from .expr import Const, number

# operator -> the kinds of element it accumulates
MONOIDS: dict[str, tuple[str, ...]] = {
    "add": ("int", "uint", "float", "complex"), "mul": ("int", "uint", "float", "complex"),
    "max": ("int", "uint", "float"), "min": ("int", "uint", "float"),
    "and": ("int", "uint", "bool"), "or": ("int", "uint", "bool"), "xor": ("int", "uint", "bool"),
}


def is_monoid(fn: str, dtype: str) -> bool:
    """May elements of this type be combined by `fn` in any order?"""
    return DTYPES[dtype].kind in MONOIDS.get(fn, ())


def identity(fn: str, dtype: str) -> Const:
    """The element e with fn(e, x) = x. For a float sum that is -0.0 in principle; 0.0 is used, which differs only for a
    sum of nothing but negative zeros."""
    d = DTYPES[dtype]
    inf = d.kind == "float"
    value: int | float = {
        "add": 0, "mul": 1, "or": 0, "xor": 0,
        "and": 1 if d.kind == "bool" else -1 if d.kind == "int" else d.greatest,
        "max": float("-inf") if inf else d.least,
        "min": float("inf") if inf else d.greatest,
    }[fn]
    return number(value, dtype)

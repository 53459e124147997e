"""Exact evaluation of operators on integer and bool constants, in plain Python: what the compiler may fold without numpy.

The functions work on unbounded Python integers; `wrap` brings a result back into the width of its type.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dtypes import DTYPES, FORMATS, is_short, rounded
from .expr import Const
from .scalars import OPERATORS


def wrap(value: int, dtype: str) -> int:
    """`value` modulo 2^bits, in the range of `dtype`."""
    d = DTYPES[dtype]
    if d.least <= value <= d.greatest:
        return value
    value &= (1 << d.bits) - 1
    return value - (1 << d.bits) if d.kind == "int" and value > d.greatest else value


def truncdiv(x: int, y: int) -> int:
    """x / y rounded towards zero; 0 when y is 0."""
    if y == 0:
        return 0
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)


# Operators whose meaning does not depend on the width, up to wrapping of the result.
INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y if y else 0,
    "mod": lambda x, y: x % y if y else 0,
    "truncdiv": truncdiv,
    "truncmod": lambda x, y: x - y * truncdiv(x, y) if y else 0,
    "max": max, "min": min, "fmax": max, "fmin": min,
    "fma": lambda x, y, z: x * y + z,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "lt": lambda x, y: x < y,
    "gt": lambda x, y: x > y,
    "le": lambda x, y: x <= y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "where": lambda x, y, z: y if x else z,
    "neg": lambda x: -x,
    "abs": abs,
    "sign": _sign,
    "clip": lambda x, y, z: min(max(x, y), z),
    "relu": lambda x: max(x, 0),
    "real": lambda x: x,
    "imag": lambda x: 0,
    "conj": lambda x: x,
}

# Those whose results cannot leave the range of their operands.
CLOSED = frozenset(("and", "or", "xor", "max", "min", "fmax", "fmin", "where", "clip", "relu", "mod", "truncmod", "real", "imag", "conj"))

BOOL: dict[str, Callable[..., int]] = {k: INTEGER[k] for k in ("and", "or", "xor", "lt", "gt", "le", "ge", "eq", "ne", "where")}
BOOL["not"] = lambda x: not x


def function(fn: str, dtype: str) -> Callable[..., int] | None:
    """The operator on Python integers of element type `dtype` (that of its last operand), result wrapped; None when it has no integer meaning."""
    d = DTYPES[dtype]
    if d.kind == "bool":
        on_bools = BOOL.get(fn)
        return None if on_bools is None else lambda *args: bool(on_bools(*args))
    if d.kind not in ("int", "uint"):
        return None
    if fn == "not":
        return lambda x: wrap(~x, dtype)
    if fn == "shl":
        return lambda x, y: wrap(x << y, dtype) if 0 <= y < d.bits else 0
    if fn == "shr":
        return lambda x, y: x >> (y if 0 <= y < d.bits else d.bits)
    exact = INTEGER.get(fn)
    if exact is None or OPERATORS[fn].gives == "bool" or fn in CLOSED:
        return exact
    least, greatest = d.least, d.greatest

    def wrapped(*args: int) -> int:
        value = exact(*args)
        return value if least <= value <= greatest else wrap(value, dtype)
    return wrapped


def fold(fn: str, args: tuple[Const, ...]) -> Const | None:
    """The operator applied to integer or bool constants; None where a float takes part or the row does not accept the type."""
    dtype = args[-1].dtype
    kind = DTYPES[dtype].kind
    if kind in ("float", "complex") or DTYPES[args[0].dtype].kind in ("float", "complex") or not OPERATORS[fn].accepts(kind):
        return None
    compute = function(fn, dtype)
    if compute is None:
        return None
    gives = OPERATORS[fn].result_type(tuple(a.dtype for a in args))
    value = compute(*[_integer(a.value) for a in args])
    return Const(bool(value) if gives == "bool" else int(value), gives)


def convert(dtype: str, value: Const) -> Const | None:
    """`(cast dtype value)` of an integer or bool constant, or between a 16-bit float and another one; None where a float takes part inexactly."""
    source, target = DTYPES[value.dtype], DTYPES[dtype]
    if source.kind == target.kind == "float" and (is_short(value.dtype) or is_short(dtype)):
        return Const(rounded(rounded(float(value.value), value.dtype), dtype), dtype)
    if source.kind in ("float", "complex"):
        return None
    number = _integer(value.value)
    match target.kind:
        case "bool":
            return Const(number != 0, dtype)
        case "int" | "uint":
            return Const(wrap(int(number), dtype), dtype)
        case "float" if abs(number) <= 1 << FORMATS[dtype][0]:
            return Const(float(number), dtype)
        case _:
            return None


def _integer(value: Any) -> int:
    return value if isinstance(value, bool) else int(value)

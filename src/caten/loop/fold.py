"""Operators on constants: integers and bools exactly, in their own width; floats only where no rounding is involved."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..core.dtypes import DTYPES
from ..core.expr import Cast, Const, Expr, Op


def wrap(value: int, dtype: str) -> int:
    """The number of the type that `value` wraps to."""
    row = DTYPES[dtype]
    return (value - row.least) % (1 << row.bits) + row.least


def _truncdiv(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# On mathematical integers; the result is wrapped to its type.
INTEGER: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs, "min": min, "max": max,
    "floordiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
    "truncdiv": _truncdiv, "truncmod": lambda a, b: a - b * _truncdiv(a, b) if b else 0,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "relu": lambda a: max(a, 0),
    "fma": lambda a, b, c: a * b + c, "clip": lambda a, lo, hi: min(max(a, lo), hi), "sign": lambda a: (a > 0) - (a < 0),
}
COMPARISON: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}
LOGIC: dict[str, Callable[..., bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.not_}


def fold(expr: Expr) -> Expr:
    """The constant that an operator or conversion of constants equals; otherwise the expression."""
    match expr:
        case Op("where", (Const(value=chosen), a, b)):
            return a if chosen else b
        case Op(fn, args) if all(isinstance(a, Const) for a in args):
            values = [a.value for a in args if isinstance(a, Const)]
            dtype = args[0].dtype
            kind = DTYPES[dtype].kind
            if fn in COMPARISON and kind != "complex":
                return Const(COMPARISON[fn](*values), "bool")
            if kind == "bool" and fn in LOGIC:
                return Const(bool(LOGIC[fn](*values)), "bool")
            if kind in ("int", "uint"):
                if fn in INTEGER:
                    return Const(wrap(INTEGER[fn](*values), dtype), dtype)
                if fn in ("shl", "shr"):
                    return Const(_shifted(fn, values[0], values[1], dtype), dtype)
        case Cast(dtype, arg) if dtype == arg.dtype:
            return arg
        case Cast(dtype, Const(value=int() as value)):
            return _converted(value, dtype) or expr
    return expr


def _shifted(fn: str, value: int, by: int, dtype: str) -> int:
    if not 0 <= by < DTYPES[dtype].bits:
        return -1 if fn == "shr" and value < 0 else 0
    return wrap(value << by, dtype) if fn == "shl" else value >> by


def _converted(value: int, dtype: str) -> Const | None:
    """An integer or bool as a constant of the type, where that is exact."""
    match DTYPES[dtype].kind:
        case "int" | "uint":
            return Const(wrap(int(value), dtype), dtype)
        case "bool":
            return Const(bool(value), "bool")
        case "float" if abs(value) <= 1 << (24 if dtype == "f32" else 53):
            return Const(float(value), dtype)
    return None

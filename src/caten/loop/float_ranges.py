"""Bounds of floating-point expressions, for what is made an index of them: `int(max(x, 0.0))` is not negative."""
from __future__ import annotations

import math
from collections.abc import Callable

from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op

EVERYTHING = (-math.inf, math.inf)
EXACT = {"f32": 1 << 24, "f64": 1 << 53}       # up to these, rounding to the type keeps the integers around a number
EXACT_SHORT = 1 << 8                           # of the 16-bit types
NOT_NEGATIVE = ("sqrt", "exp", "exp2", "abs", "sigmoid")
MONOTONE: dict[str, Callable[[float], int]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round}


def whole_range(expr: Expr, least: int, greatest: int) -> tuple[int, int]:
    """The range of a float expression that is converted to an integer type, which saturates; NaN becomes 0."""
    lo, hi = float_range(expr)
    return (least if lo == -math.inf else max(least, min(0, math.floor(lo))),
            greatest if hi == math.inf else min(greatest, max(0, math.ceil(hi))))


def float_range(expr: Expr) -> tuple[float, float]:
    """Bounds of an expression where it is no NaN. Rounding is monotone, so those of exact operands hold."""
    match expr:
        case Const(value=int() | float() as value) if abs(value) <= EXACT.get(expr.dtype, EXACT_SHORT):
            return math.floor(value), math.ceil(value)
        case Cast(dtype, arg) if is_float(arg.dtype):          # 1003 is 1004 in bfloat16
            (lo, hi), exact = float_range(arg), EXACT.get(dtype, EXACT_SHORT)
            return (min(lo, exact) if lo >= -exact else -math.inf), (max(hi, -exact) if hi <= exact else math.inf)
        case Op(fn="max" | "fmax" | "min" | "fmin", args=(a, b)):
            (alo, ahi), (blo, bhi) = float_range(a), float_range(b)
            if expr.fn in ("fmax", "fmin"):                # of a NaN and a number, the number
                return min(alo, blo), max(ahi, bhi)
            return (max(alo, blo), max(ahi, bhi)) if expr.fn == "max" else (min(alo, blo), min(ahi, bhi))
        case Op(fn="clip", args=(a, low, high)):
            return float_range(Op("min", (Op("max", (a, low)), high)))
        case Op(fn="relu", args=(a,)):
            return max(float_range(a)[0], 0), max(float_range(a)[1], 0)
        case Op(fn="where", args=(_, a, b)):
            (alo, ahi), (blo, bhi) = float_range(a), float_range(b)
            return min(alo, blo), max(ahi, bhi)
        case Op(fn="floor" | "ceil" | "trunc" | "round", args=(a,)):
            lo, hi = float_range(a)
            return (lo if math.isinf(lo) else MONOTONE[expr.fn](lo)), (hi if math.isinf(hi) else MONOTONE[expr.fn](hi))
        case Op(fn="add" | "mul", args=(a, b)):
            return (0, math.inf) if float_range(a)[0] >= 0 and float_range(b)[0] >= 0 else EVERYTHING
        case Op(fn=fn) if fn in NOT_NEGATIVE:
            return 0, math.inf
    return EVERYTHING

"""Bounds of floating-point expressions: for what is made an index of them, as `int(max(x, 0.0))` is not negative, and
for functions that are simpler where the sign is known."""
from __future__ import annotations

import math
from collections.abc import Callable

from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op
from ..core.node import kept
from .statements import Splat

EVERYTHING = (-math.inf, math.inf)
EXACT = {"f32": 1 << 24, "f64": 1 << 53}       # up to these, rounding to the type keeps the integers around a number
EXACT_SHORT = 1 << 8                           # of the 16-bit types
NOT_NEGATIVE = ("sqrt", "exp", "exp2", "abs", "sigmoid")
MOST_DEPTH = 64                                # of an expression whose sign is asked for: this is recursive
MONOTONE: dict[str, Callable[[float], int]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round}


def whole_range(expr: Expr, least: int, greatest: int) -> tuple[int, int]:
    """The range of a float expression that is converted to an integer type, which saturates; NaN becomes 0."""
    lo, hi = float_range(expr)
    return (least if lo == -math.inf else max(least, min(0, math.floor(lo))),
            greatest if hi == math.inf else min(greatest, max(0, math.ceil(hi))))


@kept
def float_range(expr: Expr) -> tuple[float, float]:
    """Bounds of an expression where it is no NaN. Rounding is monotone, so those of exact operands hold."""
    match expr:
        case Const(value=int() | float() as value) if abs(value) <= EXACT.get(expr.dtype, EXACT_SHORT):
            return math.floor(value), math.ceil(value)
        case Cast(dtype, arg) if is_float(arg.dtype):          # 1003 is 1004 in bfloat16
            (lo, hi), exact = float_range(arg), EXACT.get(dtype, EXACT_SHORT)
            return (min(lo, exact) if lo >= -exact else -math.inf), (max(hi, -exact) if hi <= exact else math.inf)
        case Splat(arg=arg):
            return float_range(arg)
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
        case Op(fn="neg", args=(a,)):
            lo, hi = float_range(a)
            return -hi, -lo
        case Op(fn="add", args=(a, b)):
            sign = _sign(a)
            return _by_signs(sign if sign == _sign(b) else 0)
        case Op(fn="sub", args=(a, Op(fn="max" | "min" as kind, args=others))) if a in others:
            return _by_signs(-1 if kind == "max" else 1)
        case Op(fn="sub", args=(a, b)):
            sign = _sign(a)
            return _by_signs(sign if sign == -_sign(b) else 0)
        case Op(fn="mul", args=(a, b)):
            negated = Op("neg", (a,)) is b or Op("neg", (b,)) is a
            return _by_signs(1 if a is b else -1 if negated else _sign(a) * _sign(b))
        case Op(fn="div", args=(a, b)):                        # by a negative zero the sign would be the other one
            return _by_signs(_sign(a) * _sign(b) if isinstance(b, Const) and b.value != 0 else 0)
        case Op(fn=fn) if fn in NOT_NEGATIVE:
            return 0, math.inf
    return EVERYTHING


def is_nonpositive(expr: Expr) -> bool:
    """True if a float expression is at most 0 wherever it is no NaN."""
    return expr.depth <= MOST_DEPTH and float_range(expr)[1] <= 0


def _sign(expr: Expr) -> int:
    """1: at least 0, or NaN. -1: at most 0, or NaN. 0: not known."""
    lo, hi = float_range(expr)
    return 1 if lo >= 0 else -1 if hi <= 0 else 0


def _by_signs(sign: int) -> tuple[float, float]:
    return (0, math.inf) if sign > 0 else (-math.inf, 0) if sign < 0 else EVERYTHING

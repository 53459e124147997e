"""Constant folding of operators and casts: integers and bools exactly, floats only where nothing is rounded."""
from __future__ import annotations

from collections.abc import Callable
from math import isfinite, isqrt
from typing import TYPE_CHECKING

from ..core import integer_arithmetic
from ..core.dtypes import is_float, rounded
from ..core.expr import Cast, Const, Expr, Op
from ..core.monoids import identity
from ..core.scalars import COMPARISONS

if TYPE_CHECKING:                # imported where floats are folded, for it is slow to import
    from fractions import Fraction


def fold(expr: Expr) -> Expr:
    """The constant that an operator or cast of constants equals, or the argument that it equals whatever that is;
    otherwise the expression."""
    match expr:
        case Op("where", (Const(value=chosen), a, b)):
            return a if chosen else b
        case Op("max" | "min" as fn, (a, b)) if identity(fn, expr.dtype) in (a, b):
            return b if a is identity(fn, expr.dtype) else a
        case Op(fn, args):
            known = tuple([a for a in args if isinstance(a, Const)])
            if len(known) < len(args):
                return expr
            if fn in COMPARISONS and is_float(known[0].dtype):
                return Const(integer_arithmetic.exact(fn)(known[0].value, known[1].value), "bool")
            if is_float(expr.dtype):
                return _exact(fn, known) or expr
            return integer_arithmetic.fold(fn, known) or expr
        case Cast(dtype, arg) if dtype == arg.dtype:
            return arg
        case Cast(dtype, Const() as arg):
            return integer_arithmetic.convert(dtype, arg) or expr
    return expr


def _root(x: Fraction) -> Fraction:
    """The square root of a square. ValueError for other numbers."""
    from fractions import Fraction
    root = Fraction(isqrt(x.numerator), isqrt(x.denominator))
    if root * root != x:
        raise ValueError
    return root


FLOATS: dict[str, Callable[..., Fraction]] = {
    "neg": lambda x: -x, "abs": lambda x: abs(x), "add": lambda x, y: x + y, "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "fma": lambda x, y, z: x * y + z, "sqrt": _root}


def _exact(fn: str, args: tuple[Const, ...]) -> Const | None:
    """The operator applied to floats, if the result is a number of their type and not 0, whose sign would depend on
    more; else None. The modulus of a complex number is no operator on floats."""
    dtype = args[0].dtype
    if fn not in FLOATS or not is_float(dtype) or any(a.dtype != dtype or not isfinite(a.value) for a in args):
        return None
    from fractions import Fraction
    try:
        result = FLOATS[fn](*[Fraction(a.value) for a in args])
        value = float(result)
    except (OverflowError, ValueError, ZeroDivisionError):
        return None
    is_number = value and Fraction(value) == result and rounded(value, dtype) == value
    return Const(value, dtype) if is_number else None

"""Constant folding of operators and casts: integers and bools exactly, floats only where nothing is rounded."""
from __future__ import annotations

from ..core import integer_arithmetic
from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op
from ..core.scalars import COMPARISONS


def fold(expr: Expr) -> Expr:
    """The constant that an operator or cast of constants equals; otherwise the expression."""
    match expr:
        case Op("where", (Const(value=chosen), a, b)):
            return a if chosen else b
        case Op(fn, args):
            known = tuple([a for a in args if isinstance(a, Const)])
            if len(known) < len(args):
                return expr
            if fn in COMPARISONS and is_float(known[0].dtype):
                return Const(integer_arithmetic.exact(fn)(known[0].value, known[1].value), "bool")
            return integer_arithmetic.fold(fn, known) or expr
        case Cast(dtype, arg) if dtype == arg.dtype:
            return arg
        case Cast(dtype, Const() as arg):
            return integer_arithmetic.convert(dtype, arg) or expr
    return expr

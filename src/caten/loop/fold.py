"""Operators and conversions of constants, folded: integers and bools exactly (core.fold), floats only where no rounding is involved."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..core import fold as exact
from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op

COMPARISON: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}


def fold(expr: Expr) -> Expr:
    """The constant that an operator or conversion of constants equals; otherwise the expression."""
    match expr:
        case Op("where", (Const(value=chosen), a, b)):
            return a if chosen else b
        case Op(fn, args):
            known = tuple([a for a in args if isinstance(a, Const)])
            if len(known) < len(args):
                return expr
            if fn in COMPARISON and is_float(known[0].dtype):
                return Const(COMPARISON[fn](known[0].value, known[1].value), "bool")
            return exact.fold(fn, known) or expr
        case Cast(dtype, arg) if dtype == arg.dtype:
            return arg
        case Cast(dtype, Const() as arg):
            return exact.convert(dtype, arg) or expr
    return expr

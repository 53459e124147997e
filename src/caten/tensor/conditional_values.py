"""Conditions under which a formula is evaluated, and what it is elsewhere."""
from __future__ import annotations

from ..core.expr import FALSE, TRUE, Expr, Op, number
from .values import reads_of


def under(cond: Expr, e: Expr) -> Expr:
    """The expression where a condition holds; else 0."""
    return e if cond is TRUE else Op("where", (cond, e, number(0.0, e.dtype)))


def both(a: Expr, b: Expr) -> Expr:
    """Do both conditions hold? The second is evaluated only where the first does."""
    if a is TRUE or a is b:
        return b
    if b is TRUE or a is FALSE:
        return a
    return Op("where", (a, b, FALSE)) if reads_of(b) else Op("and", (a, b))


def either(a: Expr, b: Expr) -> Expr:
    """Does one of two conditions hold?"""
    return TRUE if TRUE in (a, b) else a if a is b else Op("where", (a, TRUE, b))

"""Unit propagation over conditions as written: what follows from a check `(or (not c) … inside)` when all but one part
fail.

An access under conditions that read memory gets a check "where they hold, the index is inside". At the access the same
conditions hold, so the rest follows without arithmetic (Davis, Logemann and Loveland, "A machine program for theorem
proving", 1962).
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import is_float
from ..core.expr import Const, Expr, Op
from ..core.scalars import EXCHANGED
from .disjunctions import conjuncts, disjuncts

Literal = tuple[Expr, bool]                        # a condition, and whether it holds
_OPPOSITE = {"ge": "lt", "gt": "le", "ne": "eq"}


def literal(cond: Expr, holds: bool) -> Literal:
    """The normal form of a condition: without `not`, `ne`, `gt` and `ge`."""
    while isinstance(cond, Op) and cond.fn == "not" and cond.dtype == "bool":
        cond, holds = cond.args[0], not holds
    if isinstance(cond, Op) and len(cond.args) == 2:
        if cond.fn == "ne" or (cond.fn in _OPPOSITE and not is_float(cond.args[0].dtype)):
            return Op(_OPPOSITE[cond.fn], cond.args), not holds
        if cond.fn in ("gt", "ge"):                # floats may be NaN: not < differs from >=
            return Op(EXCHANGED[cond.fn], cond.args[::-1]), holds
    return cond, holds


def stated(cond: Expr, holds: bool) -> Iterator[Literal]:
    """The literals of a condition: itself, and its conjuncts."""
    yield literal(cond, holds)
    for part in conjuncts(cond, holds):
        yield literal(*part)


def value(cond: Expr, known: frozenset[Literal]) -> bool | None:
    """The truth value of a condition from known literals, or None."""
    cond, holds = literal(cond, True)
    for truth in (True, False):
        if (cond, truth) in known:
            return truth == holds
    found: bool | None = None
    match cond:
        case Const(value=constant):
            found = bool(constant)
        case Op(fn="and" | "or" as fn, args=args) if cond.dtype == "bool":
            values = [value(a, known) for a in args]
            found = (fn == "or") if (fn == "or") in values else None if None in values else fn == "and"
        case Op(fn="where", args=(test, a, b)) if cond.dtype == "bool":
            taken = value(test, known)
            if taken is not None:
                found = value(a if taken else b, known)
            elif (both := value(a, known)) is not None and both == value(b, known):
                found = both
    return None if found is None else found == holds


def choices(cond: Expr, holds: bool) -> tuple[Literal, ...]:
    """The disjuncts of a condition; empty if there is only one."""
    parts = disjuncts(cond, holds)
    return tuple([literal(*p) for p in parts]) if len(parts) > 1 else ()


def remaining(parts: tuple[Literal, ...], known: frozenset[Literal]) -> tuple[Literal, ...] | None:
    """The disjuncts that may still hold; None if one is known to hold."""
    left = []
    for cond, holds in parts:
        found = value(cond, known)
        if found is None:
            left.append((cond, holds))
        elif found == holds:
            return None
    return tuple(left)

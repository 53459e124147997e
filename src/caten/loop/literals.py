"""Conditions as they are written: which are known to hold, and what follows from a check `(or (not c) … inside)` where all but one part fail.

An access under conditions that read memory gets a check of the form "where they hold, the index is inside". At the access the same conditions hold,
so the rest is known; to see that needs no arithmetic, however many conditions there are (unit propagation, as in Davis, Logemann and Loveland, "A
machine program for theorem proving", 1962).
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import is_float
from ..core.expr import Const, Expr, Op
from .conditions import conjuncts, disjuncts

Literal = tuple[Expr, bool]                        # a condition, and whether it holds
_OPPOSITE = {"ge": "lt", "gt": "le", "ne": "eq"}
_EXCHANGED = {"gt": "lt", "ge": "le"}


def literal(cond: Expr, holds: bool) -> Literal:
    """One spelling of a condition: without `not`, `ne`, `gt` and `ge`."""
    while isinstance(cond, Op) and cond.fn == "not" and cond.dtype == "bool":
        cond, holds = cond.args[0], not holds
    if isinstance(cond, Op) and len(cond.args) == 2:
        if cond.fn == "ne" or (cond.fn in _OPPOSITE and not is_float(cond.args[0].dtype)):
            return Op(_OPPOSITE[cond.fn], cond.args), not holds
        if cond.fn in _EXCHANGED:                  # of floats, which may be NaN: not less is not greater or equal
            return Op(_EXCHANGED[cond.fn], cond.args[::-1]), holds
    return cond, holds


def stated(cond: Expr, holds: bool) -> Iterator[Literal]:
    """What a condition says at once: itself, and its parts where all of them hold."""
    yield literal(cond, holds)
    for part in conjuncts(cond, holds):
        yield literal(*part)


def value(cond: Expr, known: frozenset[Literal]) -> bool | None:
    """Does a condition hold, as far as its parts are known?"""
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
    """The parts of a condition of which one at least holds; none where it is a single one."""
    parts = disjuncts(cond, holds)
    return tuple([literal(*p) for p in parts]) if len(parts) > 1 else ()


def remaining(parts: tuple[Literal, ...], known: frozenset[Literal]) -> tuple[Literal, ...] | None:
    """The parts that may hold; None where one is known to hold."""
    left = []
    for cond, holds in parts:
        found = value(cond, known)
        if found is None:
            left.append((cond, holds))
        elif found == holds:
            return None
    return tuple(left)

"""Index-set splitting: a choice by bounds of single axes becomes loops over the parts of the array.

    Y[i, j] = where(1 <= i < M, a, b)     ->  for i 0 1: … b;   for i 1 M: … a
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.expr import FALSE, TRUE, Expr, Op
from ..core.node import kept
from ..frozen import frozen
from ..loop.affine import canonical, expression, linear
from ..loop.statements import ZERO, Stmt
from .values import Axis, Read

MOST_PARTS = 3          # axes with bounds
Make = Callable[[Sequence[tuple[Expr, Expr]], Expr], tuple[Stmt, ...]]


@frozen
class Box:
    """The part of an array where a choice is `yes`: the range of each axis (None: no bound)."""

    yes: Expr
    no: Expr
    ranges: tuple[tuple[Expr | None, Expr | None], ...]


def box_of(e: Expr, axes: tuple[Axis, ...]) -> Box | None:
    """A choice by bounds of single axes, or None."""
    match e:
        case Op("where", (cond, yes, no)):
            ranges: dict[Axis, tuple[Expr | None, Expr | None]] = {}
            for part in conjuncts(cond):
                found = _bound(part, axes)
                if found is None:
                    return None
                axis, lo, hi = found
                old_lo, old_hi = ranges.get(axis, (None, None))
                ranges[axis] = (_both("max", old_lo, lo), _both("min", old_hi, hi))
            if len(ranges) <= MOST_PARTS:
                return Box(yes, no, tuple([ranges.get(a, (None, None)) for a in axes]))
    return None


def split(box: Box, axes: tuple[Axis, ...], make: Make) -> tuple[Stmt, ...]:
    """The loops over the parts: first those around the box, axis by axis, then the box."""
    stmts: list[Stmt] = []
    whole = [(ZERO, a.extent) for a in axes]
    inside: list[tuple[Expr, Expr]] = list(whole)
    for n, (lo, hi) in enumerate(box.ranges):
        extent = axes[n].extent
        first, rest = inside[:n], whole[n + 1:]
        if lo is not None:
            stmts += make([*first, (ZERO, Op("min", (lo, extent))), *rest], box.no)
        if hi is not None:
            start = hi if lo is None else Op("max", (hi, lo))
            stmts += make([*first, (Op("max", (start, ZERO)), extent), *rest], box.no)
        inside[n] = (ZERO if lo is None else Op("max", (lo, ZERO)), extent if hi is None else Op("min", (hi, extent)))
    return (*stmts, *make(inside, box.yes))


def _both(fn: str, a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else Op(fn, (a, b))


def conjuncts(cond: Expr) -> list[Expr]:
    """The conditions that hold where a condition holds."""
    match cond:
        case Op("and", (a, b)):
            return [*conjuncts(a), *conjuncts(b)]
        case Op("where", (a, b, no)) if no is FALSE:
            return [*conjuncts(a), *conjuncts(b)]
    return [cond]


def conjunction(conds: Sequence[Expr]) -> Expr:
    """Do all conditions hold? Later ones are evaluated only where the earlier ones do."""
    found: Expr | None = None
    for cond in dict.fromkeys([c for c in conds if c is not TRUE]):
        found = cond if found is None else Op("and", (found, cond))
    return TRUE if found is None else found


def _bound(cond: Expr, axes: tuple[Axis, ...]) -> tuple[Axis, Expr | None, Expr | None] | None:
    """An axis and its lower or upper bound."""
    if not isinstance(cond, Op) or cond.fn not in ("lt", "le", "gt", "ge") or cond.args[0].dtype != "i64":
        return None
    small, large = reversed(cond.args) if cond.fn in ("gt", "ge") else cond.args
    if _reads(cond):
        return None
    more = (linear(large) - linear(small)).shifted(-1 if cond.fn in ("lt", "gt") else 0)        # at least 0
    used = [a for a in axes if a.name in cond.variables]
    if len(used) != 1:
        return None
    (axis,) = used
    factor = more.terms.get((axis.var,))
    rest = more - linear(axis.var).scaled(factor) if factor in (1, -1) else None
    if rest is None or any(axis.name in m.variables for m in rest.atoms()):
        return None
    if factor == 1:
        return axis, canonical(expression(linear(ZERO) - rest)), None
    return axis, None, canonical(expression(rest.shifted(1)))


@kept
def _reads(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in e.unique())

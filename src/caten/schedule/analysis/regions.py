"""Which part of an array a loop uses: for each axis the first index and how many follow, as expressions over what is outside of the loops inside."""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Const, Expr, Var
from ...core.node import Node, substitute
from ...loop.affine import canonical
from ...loop.effects import reads
from ...loop.statements import Aref, For, If, Stmt, is_const
from .nests import stride_in

Span = tuple[Expr, Expr]              # the least and the greatest index
Use = tuple[list[For], Aref]          # a place, and the loops around it, the outermost first


def box(uses: Sequence[Use]) -> list[Span]:
    """The least and the greatest index of each axis, over all uses and all iterations of the loops around each. Raises ValueError with the reason
    where that is no box whose sides are known."""
    (inner, first), *others = uses
    sides = [_span(first, axis, inner) for axis in range(len(first.index))]
    for inner, place in others:
        for axis, (least, most) in enumerate(sides):
            low, high = _span(place, axis, inner)
            sides[axis] = _least(least, low, first, place), _least(most, high, first, place, -1)
    return sides


def _span(place: Aref, axis: int, inner: Sequence[For]) -> Span:
    least = most = place.index[axis]
    if reads(least):
        raise ValueError(f"the index of {place} reads memory")
    for loop in reversed(inner):
        first, last = (loop.lo, canonical(loop.hi - 1))
        ends = []
        for end, rising in ((least, (first, last)), (most, (last, first))):
            stride = stride_in(end, loop.name)
            if stride is None or (stride and not is_const(loop.step, 1)):
                raise ValueError(f"the index of {place} does not grow evenly with '{loop.name}'")
            ends.append(canonical(substitute(end, {Var(loop.name, "i64"): rising[0] if stride > 0 else rising[1]})) if stride else end)
        least, most = ends
    return canonical(least), canonical(most)


def _least(a: Expr, b: Expr, one: Aref, other: Aref, sign: int = 1) -> Expr:
    """The smaller of two (or, with the sign -1, the greater), which are a constant apart."""
    gap = canonical(a - b)
    if not isinstance(gap, Const):
        raise ValueError(f"{one} and {other} are no constant distance apart")
    return b if gap.value * sign > 0 else a


def uses_in(stmts: tuple[Stmt, ...], name: str) -> list[Use]:
    """Every place of an array that is read or written below, with the loops around it."""
    found: list[Use] = []
    for stmt in stmts:
        parts: tuple[Node, ...] = (stmt,)
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                found += [([stmt, *loops], place) for loops, place in uses_in(body, name)]
                parts = lo, hi, step
            case If(cond=cond, then=then, otherwise=otherwise):
                found += uses_in((*then, *otherwise), name)
                parts = (cond,)
        found += [([], n) for part in parts for n in part.unique() if isinstance(n, Aref) and n.buffer == name]
    return found

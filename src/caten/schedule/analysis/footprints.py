"""The footprint of a loop in an array: the least and greatest index of each axis (bounds inference)."""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Const, Expr, Var
from ...core.node import Node, substitute
from ...loop.accesses import stride_in
from ...loop.affine import canonical
from ...loop.effects import reads
from ...loop.statements import Aref, For, If, Stmt, is_const

Span = tuple[Expr, Expr]              # least and greatest index
Use = tuple[list[For], Aref]          # the loops around an access, outermost first, and the access


def box(uses: Sequence[Use]) -> list[Span]:
    """The footprint of all uses: the least and greatest index of each axis. Raises ValueError with the reason if it is
    not a box with known sides."""
    (inner, first), *others = uses
    sides = [_span(first, axis, inner) for axis in range(len(first.index))]
    for inner, ref in others:
        for axis, (least, most) in enumerate(sides):
            low, high = _span(ref, axis, inner)
            sides[axis] = _least(least, low, first, ref), _least(most, high, first, ref, -1)
    return sides


def _span(ref: Aref, axis: int, inner: Sequence[For]) -> Span:
    least = most = ref.index[axis]
    if reads(least):
        raise ValueError(f"the index of {ref} reads memory")
    for loop in reversed(inner):
        first, last = (loop.lo, canonical(loop.hi - 1))
        ends = []
        for end, rising in ((least, (first, last)), (most, (last, first))):
            stride = stride_in(end, loop.name)
            if stride is None or (stride and not is_const(loop.step, 1)):
                raise ValueError(f"the index of {ref} is not linear in '{loop.name}'")
            bound = {Var(loop.name, "i64"): rising[stride < 0]}
            ends.append(canonical(substitute(end, bound)) if stride else end)
        least, most = ends
    return canonical(least), canonical(most)


def _least(a: Expr, b: Expr, one: Aref, other: Aref, sign: int = 1) -> Expr:
    """The smaller of two bounds (the greater if sign is -1), which differ by a constant."""
    gap = canonical(a - b)
    if not isinstance(gap, Const):
        raise ValueError(f"{one} and {other} do not differ by a constant")
    return b if gap.value * sign > 0 else a


def uses_in(stmts: tuple[Stmt, ...], name: str) -> list[Use]:
    """Every access to an array in the statements, with the loops around it."""
    found: list[Use] = []
    for stmt in stmts:
        parts: tuple[Node, ...] = (stmt,)
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                found += [([stmt, *loops], ref) for loops, ref in uses_in(body, name)]
                parts = lo, hi, step
            case If(cond=cond, then=then, otherwise=otherwise):
                found += uses_in((*then, *otherwise), name)
                parts = (cond,)
        found += [([], n) for part in parts for n in part.unique() if isinstance(n, Aref) and n.buffer == name]
    return found

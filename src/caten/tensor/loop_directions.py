"""Loops from the last index to the first, as loops over the same indices that count up.

    for i N-1 > -1 step -1: Y[i] = …          ->  for i 0 N: Y[i] = …               down
    for i 0 N: Y[N-1-i] = … X[N-1-i]          ->  for i 0 N: Y[i] = … X[i]          down
"""
from __future__ import annotations

from ..core.expr import Const, Expr, Var
from ..core.node import substitute
from ..loop.affine import canonical, expression, linear
from ..loop.statements import ONE, Aref, For, Incf, Setf


def upward(loop: For, loops: frozenset[str]) -> tuple[For, bool]:
    """A loop that counts up by the index at which it stores, and whether its iterations run from the last to the first.
    `loops`: the names of the loops around it."""
    is_down = isinstance(loop.step, Const) and loop.step.value == -1
    if is_down:
        loop = loop.replace(lo=canonical(loop.hi + 1), hi=canonical(loop.lo + 1), step=ONE)
    start = _mirror(loop, loops) if loop.step is ONE else None
    if start is None:
        return loop, is_down
    mirrored = loop.replace(lo=canonical(start - loop.hi + 1), hi=canonical(start - loop.lo + 1))
    at = {Var(loop.name, "i64"): canonical(start - Var(loop.name, "i64"))}
    return mirrored.replace(body=tuple([substitute(s, at) for s in loop.body])), not is_down


def _mirror(loop: For, loops: frozenset[str]) -> Expr | None:
    """The c of the index c - i at which a loop over i stores; None if it stores at i, or in other ways."""
    var = Var(loop.name, "i64")
    stores = [n.ref for n in loop.walk() if isinstance(n, Setf | Incf) and isinstance(n.ref, Aref)]
    used = [i for ref in stores for i in ref.index if loop.name in i.variables]
    found = {canonical(i + var) for i in used if linear(i).terms.get((var,)) == -1}
    if len(found) != 1 or any(linear(i).terms.get((var,)) != -1 for i in used):
        return None
    start = expression(linear(found.pop()))
    return None if start.variables & (loops | {loop.name}) else start

"""Loops that may end before their last iteration: what `break` becomes."""
from __future__ import annotations

from ..core.expr import Expr, Var
from .statements import For, If, Incf, Local, Ref, Setf


def leaving_condition(loop: For) -> Expr | None:
    """The condition that begins each iteration of a serial loop, after declarations, guards all that it does, and is
    changed by it. Where it does not hold, nothing is done in the iterations that are left, so the loop may end there:
    only what is guarded could make it hold again. It does not depend on the variable of the loop."""
    if loop.mark != "serial" or not loop.body or not all(isinstance(stmt, Local) for stmt in loop.body[:-1]):
        return None
    guarded = loop.body[-1]
    if not isinstance(guarded, If) or guarded.otherwise:
        return None
    own = {loop.name, *[stmt.name for stmt in loop.body[:-1] if isinstance(stmt, Local)]}
    read = {n.name if isinstance(n, Var) else n.buffer for n in guarded.cond.unique() if isinstance(n, Var | Ref)}
    stored = {n.ref.buffer for n in guarded.unique() if isinstance(n, Setf | Incf)}
    return guarded.cond if read & stored and not read & own else None

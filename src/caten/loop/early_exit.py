"""Loops that may end before their last iteration: what `break` becomes."""
from __future__ import annotations

from ..core.expr import Expr, Var
from .statements import For, If, Incf, Ref, Setf


def leaving_condition(loop: For) -> Expr | None:
    """The condition that begins each iteration of a serial loop, guards all that it does, and is changed by it. Where
    it does not hold, nothing is done in the iterations that are left, so the loop may end there: only what is guarded
    could make it hold again. It does not depend on the variable of the loop."""
    if loop.mark != "serial" or len(loop.body) != 1 or not isinstance(first := loop.body[0], If) or first.otherwise:
        return None
    if any(isinstance(n, Var) and n.name == loop.name for n in first.cond.unique()):
        return None
    stored = {n.ref.buffer for n in first.unique() if isinstance(n, Setf | Incf)}
    return first.cond if any(isinstance(n, Ref) and n.buffer in stored for n in first.cond.unique()) else None

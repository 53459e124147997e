"""A scalar that a body sets once and reads right after is what it was set to: (setf a (aref A i)) (incf s (* a x)) is (incf s (* (aref A i) x)).

So a nest is the same with names for its operands and without: forward substitution, as in Muchnick, "Advanced compiler design and implementation",
1997. What takes time to compute is only moved, never computed twice.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Const, Expr, Var
from ..core.node import Node, substitute
from .effects import reads, writes
from .statements import Aref, For, If, Incf, Local, Setf, Stmt

LARGE = 64                     # nodes of a value that stays where it is: those that hang on each other would become one without end


def forwarded(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A list of statements without such scalars."""
    out = list(stmts)
    for local in [s for s in stmts if isinstance(s, Local) and not s.shape]:
        out = _without(out, local) or out
    return tuple(out)


def _without(stmts: list[Stmt], local: Local) -> list[Stmt] | None:
    """The list without a scalar; None where it has to stay."""
    place = Aref(local.name, (), local.type)
    sets = [n for n, s in enumerate(stmts) if local.name in writes(s)]
    uses = [n for n, s in enumerate(stmts) if local.name in reads(s)]
    if len(sets) != 1 or not uses or min(uses) <= sets[0]:
        return None
    match stmts[sets[0]]:
        case Setf(ref=ref, value=value) if ref is place and value.written_out <= LARGE and _may_move(value, stmts[sets[0] + 1:uses[-1] + 1]):
            count = sum([_count(stmts[n], place) for n in uses])
        case _:
            return None
    if any(_has_loops(stmts[n]) for n in uses) or (count > 1 and not isinstance(value, Aref | Const | Var)):
        return None
    return [s if n not in uses else substitute(s, {place: value}) for n, s in enumerate(stmts) if n != sets[0] and s is not local]


def _may_move(value: Expr, passed: Sequence[Stmt]) -> bool:
    """Is a value the same after the statements that it passes? The last one reads it, and may write afterwards."""
    *between, last = passed
    stays = all(reads(value).isdisjoint(writes(s)) for s in between)
    return stays and (isinstance(last, Setf | Incf) or reads(value).isdisjoint(writes(last)))


def _has_loops(stmt: Stmt) -> bool:
    return isinstance(stmt, For) or (isinstance(stmt, If) and any(map(_has_loops, (*stmt.then, *stmt.otherwise))))


def _count(node: Node, place: Aref) -> int:
    """How often a place is written in the text of a statement."""
    return 1 if node is place else sum([_count(child, place) for child in node.children])

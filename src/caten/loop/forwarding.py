"""Forward substitution: a scalar that is set once and read right after is replaced by its value.

    (setf a (aref A i)) (incf s (* a x))   ->   (incf s (* (aref A i) x))

A nest then has one form, with or without names for its operands (Muchnick, "Advanced compiler design and
implementation", 1997). Only loads, constants and variables are duplicated; computed values only move.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Const, Expr, Var
from ..core.node import Node, substitute
from .effects import reads, writes
from .statements import Aref, For, If, Incf, Local, Setf, Stmt

LARGE = 64                     # values of more nodes stay, so that chains of them do not explode


def forward_scalars(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without such scalars."""
    out = list(stmts)
    for local in [s for s in stmts if isinstance(s, Local) and not s.shape]:
        out = _without(out, local) or out
    return tuple(out)


def _without(stmts: list[Stmt], local: Local) -> list[Stmt] | None:
    """The statements without this scalar; None if it must stay."""
    place = Aref(local.name, (), local.type)
    sets = [n for n, s in enumerate(stmts) if local.name in writes(s)]
    uses = [n for n, s in enumerate(stmts) if local.name in reads(s)]
    if len(sets) != 1 or not uses or min(uses) <= sets[0]:
        return None
    match stmts[sets[0]]:
        case Setf(ref, value) if ref is place and value.written_out <= LARGE:
            count = sum([_count(stmts[n], place) for n in uses])
        case _:
            return None
    if not _may_move(value, stmts[sets[0] + 1:uses[-1] + 1]) or any(_has_loops(stmts[n]) for n in uses):
        return None
    if (count > 1 and not isinstance(value, Aref | Const | Var)):
        return None
    return [s if n not in uses else substitute(s, {place: value})
            for n, s in enumerate(stmts) if n != sets[0] and s is not local]


def _may_move(value: Expr, passed: Sequence[Stmt]) -> bool:
    """True if the value is the same behind these statements. The last one reads it, and may write afterwards."""
    *between, last = passed
    stays = all(reads(value).isdisjoint(writes(s)) for s in between)
    return stays and (isinstance(last, Setf | Incf) or reads(value).isdisjoint(writes(last)))


def _has_loops(stmt: Stmt) -> bool:
    return isinstance(stmt, For) or (isinstance(stmt, If) and any(map(_has_loops, (*stmt.then, *stmt.otherwise))))


def _count(node: Node, place: Aref) -> int:
    """The number of occurrences of an element in a statement."""
    return 1 if node is place else sum([_count(child, place) for child in node.children])

"""Loops marked `unroll`, written out: after this their variables are numbers, and arrays in registers have constant
indices."""
from __future__ import annotations

from typing import Any

from ..core.expr import Const, Var, index
from ..core.node import Node, substitute
from ..loop.statements import For, If, Kernel, LoopProgram, Stmt
from .linear_offsets import folded

LIMIT = 768           # statements that one loop may become; beyond it the C compiler is asked to unroll


def unroll(program: LoopProgram) -> LoopProgram:
    """(for i 0 2 1 unroll (setf (aref x i) 0)) -> (setf (aref x 0) 0) (setf (aref x 1) 0). A copy that declares names
    keeps a block of its own."""
    return program.replace(clauses=tuple([c.map(_statement) if isinstance(c, Kernel) else c for c in program.clauses]))


def _statement(stmt: Node) -> Node | tuple[Node, ...]:
    stmt = stmt.map(lambda n: _statement(n) if isinstance(n, Stmt) else n)
    if not isinstance(stmt, For) or stmt.mark != "unroll":
        return stmt
    lo, hi, step = folded(stmt.lo), folded(stmt.hi), folded(stmt.step)
    if not (isinstance(lo, Const) and isinstance(hi, Const) and isinstance(step, Const)) or step.value == 0:
        return stmt
    values = range(lo.value, hi.value, step.value)
    if len(values) * sum(_count(s) for s in stmt.body) > LIMIT:
        return stmt
    copies: list[Node] = []
    declares = _declares(stmt.body)
    for value in values:
        body: tuple[Any, ...] = tuple([new for s in substitute(stmt.body, {Var(stmt.name, "i64"): index(value)})
                                       for new in _decided(folded(s))])
        copies += [For(stmt.name, index(value), index(value + 1), index(1), "serial", body)] if declares else body
    return tuple(copies)


def _decided(stmt: Node) -> tuple[Node, ...]:
    """A statement without the arms that never run now: they may use elements that an array in registers does not have.
    An arm that declares names stays one, `(if true …)`, a block of its own: the next copy has the same names."""
    if isinstance(stmt, If) and isinstance(stmt.cond, Const):
        arm: tuple[Any, ...] = tuple([new for s in (stmt.then if stmt.cond.value else stmt.otherwise)
                                      for new in _decided(s)])
        return (If(Const(True, "bool"), arm),) if _declares(arm) else arm
    if isinstance(stmt, For | If):
        left = stmt.map(lambda n: _decided(n) if isinstance(n, Stmt) else n)
        return (left,) if any(isinstance(c, Stmt) for c in left.children) else ()
    return (stmt,)


def _declares(stmts: tuple[Node, ...]) -> bool:
    """Does a list declare names for its later statements?"""
    return any(hasattr(s, "declares") and not isinstance(s, For) for s in stmts)


def _count(stmt: Node) -> int:
    return max(1, sum(_count(c) for c in stmt.children if isinstance(c, Stmt)))

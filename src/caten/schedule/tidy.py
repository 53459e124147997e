"""Expressions in normal form after a rewriting, without proofs, and with the loops left where they are: a later step addresses them by name."""
from __future__ import annotations

from typing import Any

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op
from ..core.node import Node
from ..loop.affine import canonical, linear
from ..loop.fold import COMPARISON, fold
from ..loop.statements import For, If, Stmt


def tidied(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with canonical indices and folded constants; conditions that are constant go, loops stay even where they run once."""
    memo: dict[Node, Any] = {}
    out: list[Stmt] = []
    for stmt in stmts:
        out.extend(_statement(stmt, memo))
    return tuple(out)


def _statement(stmt: Stmt, memo: dict[Node, Any]) -> tuple[Stmt, ...]:
    match stmt:
        case For():
            return (stmt.map(lambda child: _statement(child, memo) if isinstance(child, Stmt) else normal(child, memo)),)
        case If(cond=cond, then=then, otherwise=otherwise):
            test = normal(cond, memo)
            yes, no = [tuple([new for s in arm for new in _statement(s, memo)]) for arm in (then, otherwise)]
            if isinstance(test, Const):
                return yes if test.value else no
            return (If(test, yes, no),)
    return (stmt.map(lambda child: normal(child, memo) if isinstance(child, Expr) else child),)


def normal(expr: Expr, memo: dict[Node, Any] | None = None) -> Any:
    """An expression with every integer part in normal form and every operator on constants folded."""
    memo = {} if memo is None else memo
    if expr not in memo:
        inner: Any = expr.map(lambda child: normal(child, memo) if isinstance(child, Expr) else child)
        memo[expr] = fold(_decided(canonical(inner)))
    return memo[expr]


def _decided(expr: Expr) -> Expr:
    """A comparison whose sides differ by a constant, and logic with a constant."""
    match expr:
        case Op(fn=fn, args=(a, b)) if fn in COMPARISON and is_integer(a.dtype) and a.dtype == "i64" and a.lanes == b.lanes == 1:
            room = linear(a) - linear(b)
            return Const(COMPARISON[fn](room.constant, 0), "bool") if room.is_constant else expr
        case Op(fn="and" | "or" as fn, args=(a, b)):
            for known, other in ((a, b), (b, a)):
                if isinstance(known, Const) and known.type == "bool":
                    return other if known.value == (fn == "and") else known
    return expr

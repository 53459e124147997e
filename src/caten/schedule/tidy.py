"""Expressions in normal form after a rewriting, without proofs, and with the loops left where they are: a later step addresses them by name."""
from __future__ import annotations

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op
from ..core.node import kept
from ..loop.affine import canonical, linear
from ..loop.fold import COMPARISON, fold
from ..loop.statements import For, If, Stmt


def tidied(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with canonical indices and folded constants; conditions that are constant go, loops stay even where they run once."""
    return tuple([new for stmt in stmts for new in _statement(stmt)])


def _statement(stmt: Stmt) -> tuple[Stmt, ...]:
    if "_tidy" in stmt.__dict__:
        return (stmt,)
    made = _made(stmt)
    if made == (stmt,):
        stmt.__dict__["_tidy"] = True                     # as with `normal`
    return made


def _made(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case For():
            return (stmt.map(lambda child: _statement(child) if isinstance(child, Stmt) else normal(child)),)
        case If(cond=cond, then=then, otherwise=otherwise):
            test = normal(cond)
            yes, no = [tuple([new for s in arm for new in _statement(s)]) for arm in (then, otherwise)]
            if isinstance(test, Const):
                return yes if test.value else no
            return (If(test, yes, no),)
    return (stmt.map(lambda child: normal(child) if isinstance(child, Expr) else child),)


@kept
def normal(expr: Expr) -> Expr:
    """An expression with every integer part in normal form and every operator on constants folded."""
    return fold(_decided(canonical(expr.map(lambda child: normal(child) if isinstance(child, Expr) else child))))


def _decided(expr: Expr) -> Expr:
    """A comparison of numbers or of the same sum, and logic with a constant. Of sums that differ by a constant one may have wrapped: that they have
    not takes a context to know."""
    match expr:
        case Op(fn=fn, args=(a, b)) if fn in COMPARISON and is_integer(a.dtype) and a.dtype == "i64" and a.lanes == b.lanes == 1:
            left, right = linear(a), linear(b)
            sure = left == right or (left.is_constant and right.is_constant)
            return Const(COMPARISON[fn](left.constant - right.constant, 0), "bool") if sure else expr
        case Op(fn="and" | "or" as fn, args=(a, b)):
            for known, other in ((a, b), (b, a)):
                if isinstance(known, Const) and known.type == "bool":
                    return other if known.value == (fn == "and") else known
    return expr

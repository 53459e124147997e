"""Normal form after a rewrite: canonical indices and folded constants, without proofs. Loops stay: steps name them."""
from __future__ import annotations

from ..core.expr import Const, Expr, Op
from ..core.identities import LOGIC
from ..core.integer_arithmetic import exact
from ..core.node import kept
from ..core.scalars import COMPARISONS
from ..loop.affine import canonical, linear
from ..loop.constant_folding import fold
from ..loop.statements import For, If, Stmt


def tidied(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Normalise statements. Constant conditions are decided; loops stay even if they run once."""
    return tuple([new for stmt in stmts for new in _statement(stmt)])


@kept
def _statement(stmt: Stmt) -> tuple[Stmt, ...]:
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
    """Normalise an expression: integer parts are canonical, operators on constants are folded."""
    return fold(_decided(canonical(expr.map(lambda child: normal(child) if isinstance(child, Expr) else child))))


def _decided(expr: Expr) -> Expr:
    """Decide comparisons of constants or equal sums, and logic with a constant. Sums that differ by a constant stay:
    one may have wrapped, which only a context can exclude."""
    match expr:
        case Op(fn=fn, args=(a, b)) if fn in COMPARISONS and a.dtype == "i64" and a.lanes == b.lanes == 1:
            left, right = linear(a), linear(b)
            sure = left == right or (left.is_constant and right.is_constant)
            return Const(exact(fn)(left.constant - right.constant, 0), "bool") if sure else expr
        case Op(fn="and" | "or"):
            return LOGIC.once(expr)
    return expr

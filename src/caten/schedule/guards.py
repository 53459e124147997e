"""Conditions around stores: putting them at the leaves of a nest, which leaves it perfect, and finding them again."""
from __future__ import annotations

from ..core.expr import Expr, Op
from ..loop.context import Context
from ..loop.statements import For, If, Let, Local, Ref, Stmt
from .nests import reads_memory


def below(index: Expr, bound: Expr, context: Context) -> tuple[Expr, ...]:
    """The conditions for index < bound that are not known already; a bound (min a b) gives one for each."""
    match bound:
        case Op(fn="min", args=(a, b)):
            return (*below(index, a, context), *below(index, b, context))
    room = context.linear(bound) - context.linear(index)
    return () if context.interval(room)[0] > 0 else (Op("lt", (index, bound)),)


def guarded(stmts: tuple[Stmt, ...], conds: tuple[Expr, ...]) -> tuple[Stmt, ...]:
    """`conds` around every store below. A list that declares values, and a loop or condition that reads memory, is wrapped as a whole,
    so that nothing is read where the conditions fail."""
    if not conds or not stmts:
        return stmts
    if any(isinstance(s, Let | Local) for s in stmts):
        return (wrapped(stmts, conds),)
    return tuple([_guarded(s, conds) for s in stmts])


def _guarded(stmt: Stmt, conds: tuple[Expr, ...]) -> Stmt:
    match stmt:
        case For() if not any(reads_memory(e) for e in (stmt.lo, stmt.hi, stmt.step)):
            return stmt.replace(body=guarded(stmt.body, conds))
        case If(otherwise=()) if not reads_memory(stmt.cond):
            return stmt.replace(then=guarded(stmt.then, conds))
    return wrapped((stmt,), conds)


def wrapped(stmts: tuple[Stmt, ...], conds: tuple[Expr, ...]) -> Stmt:
    """One `if` for each condition around the statements, the first outermost."""
    assert conds
    for cond in reversed(conds):
        stmts = (If(cond, stmts),)
    return stmts[0]


def guards_of(stmts: tuple[Stmt, ...], ref: Ref) -> tuple[Expr, ...]:
    """The conditions under which `ref` is always used, outermost first."""
    first, *others = _guards(stmts, ref, ()) or [()]
    return tuple([cond for cond in first if all(cond in other for other in others)])


def _guards(stmts: tuple[Stmt, ...], ref: Ref, around: tuple[Expr, ...]) -> list[tuple[Expr, ...]]:
    """The conditions around each use."""
    found: list[tuple[Expr, ...]] = []
    for stmt in stmts:
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                parts: tuple[Expr, ...] = (lo, hi, step)
                found += _guards(body, ref, around)
            case If(cond=cond, then=then, otherwise=otherwise):
                parts = (cond,)
                found += _guards(then, ref, (*around, cond)) + _guards(otherwise, ref, (*around, Op("not", (cond,))))
            case _:
                parts = tuple([c for c in stmt.children if isinstance(c, Expr)])
        found += [around for part in parts if any(n is ref for n in part.unique())]
    return found

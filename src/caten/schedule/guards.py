"""Conditions around stores: putting them at the leaves of a nest, which leaves it perfect, and finding them again."""
from __future__ import annotations

from ..core.expr import Expr, Op
from ..loop.context import Context
from ..loop.statements import For, If, Incf, Let, Local, Ref, Setf, Stmt
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
    """The conditions under which `ref` is used, outermost first, where it is first used."""
    for stmt in stmts:
        if not any(n is ref for n in stmt.unique()):
            continue
        match stmt:
            case For():
                return guards_of(stmt.body, ref)
            case If(cond=cond, then=then, otherwise=otherwise):
                if any(n is ref for s in then for n in s.unique()):
                    return (cond, *guards_of(then, ref))
                return (Op("not", (cond,)), *guards_of(otherwise, ref)) if not any(n is ref for n in cond.unique()) else ()
        return ()
    return ()


def uses(stmts: tuple[Stmt, ...], ref: Ref) -> int:
    """How many stores use a place."""
    return sum(1 for s in stmts for n in s.walk() if isinstance(n, Setf | Incf) and any(m is ref for m in n.unique()))

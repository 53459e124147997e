"""Expressions in normal form after a rewriting, with the loops left where they are: a later step addresses them by name."""
from __future__ import annotations

from ..core.expr import Const, Expr
from ..loop.context import Context
from ..loop.simplify import simplify
from ..loop.statements import For, If, Stmt


def tidied(stmts: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    """The statements with simpler expressions of the same value; conditions that are decided go, loops stay even where they run once."""
    out: list[Stmt] = []
    for stmt in stmts:
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                bounds = [simplify(e, context) for e in (lo, hi, step)]
                new: tuple[Stmt, ...] = (For(stmt.name, *bounds, stmt.mark, tidied(body, context.inside(stmt))),)
            case If(cond=cond, then=then, otherwise=otherwise):
                test = simplify(cond, context)
                if isinstance(test, Const):
                    new = tidied(then if test.value else otherwise, context)
                else:
                    new = (If(test, tidied(then, context.given(test)), tidied(otherwise, context.given(test, False))),)
            case _:
                new = (stmt.map(lambda child: simplify(child, context) if isinstance(child, Expr) else child),)  # noqa: B023  used at once
        out.extend(new)
        for part in new:
            context = context.after(part)
    return tuple(out)

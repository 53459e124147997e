"""Bound tightening: move a condition on a loop variable, around the whole body, into the bounds of the loop.

    (for i 0 H                                          (for i 1 (- H 1)
      (for j 0 W                                   ->     (for j 0 W
        (if (and (> i 0) (< i (- H 1))) (…))))              (…)))

The guard leaves the iteration space, also where it is written as several conditions, one inside the other. A bound is a
constant, a size, or a size plus a constant: i < max(H - 1, 0) is i < H - 1 where 0 ≤ i is known. If neither of two
bounds is known to be the tighter one, the condition stays.
"""
from __future__ import annotations

from ..core.expr import FALSE, Expr, Op, Var
from ..core.scalars import NEGATED
from .affine import Linear, expression, linear
from .context import Context
from .statements import ONE, For, If, Stmt


def tighten_bounds(loop: For, sizes: frozenset[str], context: Context) -> For:
    """The loop with the conditions on its variable at the heart of its perfect nest as bounds. `context`: before the
    loop."""
    inside = _condition(loop)
    if inside is None or loop.step is not ONE:
        return loop
    made, rest = _narrowed(loop, inside, sizes, context)
    return loop if rest == (inside,) else made.replace(body=_around(loop.body, rest))


def tighten_by_constants(stmt: Stmt, context: Context) -> Stmt:
    """A nest whose loops have the conditions on their variables alone as bounds. `context`: before the nest."""
    if not isinstance(stmt, For) or _condition(stmt) is None:
        return stmt
    loop = tighten_bounds(stmt, frozenset(), context)
    return loop.replace(body=tuple([tighten_by_constants(inner, context.inside(loop)) for inner in loop.body]))


def _narrowed(loop: For, guard: If, sizes: frozenset[str], context: Context) -> tuple[For, tuple[Stmt, ...]]:
    """The loop with the bounds of a condition and of those inside of it, and what is left of its body."""
    made, rest = _taken(loop, guard.cond, sizes, context)
    then = guard.then
    match then:
        case (If(otherwise=()) as inner,):
            made, then = _narrowed(made, inner, sizes, context)
    return made, then if rest is None else (guard.replace(cond=rest, then=then),)


def _taken(loop: For, cond: Expr, sizes: frozenset[str], context: Context) -> tuple[For, Expr | None]:
    """The loop with the bounds of a condition, and the rest of the condition (None if nothing remains)."""
    match cond:
        case Op("and", (a, b)):
            loop, first = _taken(loop, a, sizes, context)
            loop, second = _taken(loop, b, sizes, context)
            if first is None or second is None:
                return loop, second if first is None else first
            return loop, cond if first is a and second is b else Op("and", (first, second))
        case Op("not", (Op("or", (a, b)),)):
            both = Op("and", (Op("not", (a,)), Op("not", (b,))))
            loop, rest = _taken(loop, both, sizes, context)
            return loop, cond if rest is both else rest
        case Op("where", (a, b, other)) if other is FALSE:  # lazy: b only where a holds
            loop, first = _taken(loop, a, sizes, context)
            return loop, b if first is None else cond if first is a else Op("where", (first, b, other))
    smaller = _with_bound(loop, cond, sizes, context)
    return (loop, cond) if smaller is None else (smaller, None)


def _condition(loop: For) -> If | None:
    """The condition around the whole body of a perfect nest."""
    match loop.body:
        case (For() as inner,):
            return _condition(inner)
        case (If(otherwise=()) as inside,):
            return inside
    return None


def _around(stmts: tuple[Stmt, ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The loops of a perfect nest around another body."""
    match stmts:
        case (For() as inner,):
            return (inner.replace(body=_around(inner.body, body)),)
    return body


def _with_bound(loop: For, cond: Expr, sizes: frozenset[str], context: Context) -> For | None:
    """The loop with `cond` as a bound; None if it is no bound, or not known to be the tighter one."""
    match cond:
        case Op("not", (Op("lt" | "le" | "gt" | "ge" as fn, args),)):
            cond = Op(NEGATED[fn], args)
    if not isinstance(cond, Op) or cond.fn not in ("lt", "le", "gt", "ge") or cond.args[0].dtype != "i64":
        return None
    if not cond.variables <= sizes | {loop.name}:
        return None
    small, large = reversed(cond.args) if cond.fn in ("gt", "ge") else cond.args
    inside = context.inside(loop)                         # what may wrap there is an atom of its own
    more = (inside.linear(large) - inside.linear(small)).shifted(-1 if cond.fn in ("lt", "gt")
                                                                 else 0)            # at least 0
    var, sign = linear(Var(loop.name, "i64")), more.terms.get((Var(loop.name, "i64"),))
    if sign == -1:
        more = _without_maximum(more, inside)
    if sign is not None and abs(sign) > 1 and more.shifted(-more.constant) == var.scaled(sign):      # 2 · i ≤ 3: i ≤ 1
        sign, more = sign // abs(sign), var.scaled(sign // abs(sign)).shifted(more.constant // abs(sign))
    if sign not in (1, -1) or any(len(m) > 1 or not isinstance(m[0], Var) for m in more.terms):
        return None
    bound = var - more if sign == 1 else (var + more).shifted(1)
    if not context.fits(bound):
        return None
    end, old, fn = (expression(bound), loop.lo, "le") if sign == 1 else (expression(bound), loop.hi, "ge")
    if context.proves(Op(fn, (old, end))):
        return loop.replace(lo=end) if sign == 1 else loop.replace(hi=end)
    return loop if context.proves(Op(fn, (end, old))) else None


def _without_maximum(more: Linear, inside: Context) -> Linear:
    """With e for max(e, c) in what is ≥ 0, where it is below 0 with c."""
    for m, k in more.terms.items():
        match m:
            case (Op("max", args) as atom,) if k > 0:
                for keep, drop in (args, args[::-1]):
                    if inside.is_nonnegative(more.replace(atom, inside.linear(drop)).scaled(-1).shifted(-1)):
                        return _without_maximum(more.replace(atom, inside.linear(keep)), inside)
    return more

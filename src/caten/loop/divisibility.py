"""Multiples: is an expression known to be divisible by a number? Then a loop that is split leaves no rest."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import Expr, Op, index
from .affine import Linear, expression
from .context import Context


def is_multiple(known: Context, entry: Context, expr: Expr, factor: int) -> bool:
    """True if an i64 expression is shown to be a multiple of a number: by its form, or by the equations that are known
    at its place. `entry`: what is known at the entry of the program. Only it and the equations count, so that the
    answer is kept for all places where the same equations are known: there are many, and most proofs fail."""
    form = known.linear(expr)
    if _is_multiple(form, factor):
        return True
    if not known.equates(expr.variables):
        return False                                        # without an equation, no remainder is known
    context = entry.with_equations_of(known)
    return all(context.proves(Op("eq", (expression(rest) % factor, index(0)))) for rest in _rests(known, form, factor))


def _is_multiple(form: Linear, factor: int) -> bool:
    return all(part % factor == 0 for part in (*form.terms.values(), form.constant))


def _rests(known: Context, form: Linear, factor: int) -> Iterator[Linear]:
    """Forms that together are multiples exactly if the form is: without its terms that are, such as 256 · i, and the
    operands of a minimum instead of it, though one that is never reached would not matter."""
    rest = Linear({m: k for m, k in form.terms.items() if k % factor}, form.constant % factor)
    match list(rest.terms.items()):
        case [((Op(fn="min" | "max", args=sides),), _)] if rest.constant == 0:
            for side in sides:
                yield from _rests(known, known.linear(side), factor)
        case [] if rest.constant == 0:
            return
        case _:
            yield rest

"""What is known about the sizes of a body, and the conditions that its array operations add."""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Expr, Op, index
from ...core.node import Node
from ...loop.affine import Linear, canonical, constant, expression, linear
from ...loop.context import Context
from ...loop.statements import For
from ...tensor.values import TensorProgram


class SizeFacts:
    """The facts at entry and the conditions so far, each with its position. `around`: the loops over elements, each
    with what is known around it; None for an `if`."""

    def __init__(self, params: Sequence[Node]) -> None:
        self.context = Context.of(TensorProgram("body", tuple(params)))
        self.conditions: dict[Expr, int] = {}
        self.around: list[tuple[For, Context] | None] = []
        self.never_negative: set[Expr] = set()         # variables of the body of which it holds

    def proves(self, cond: Expr) -> bool:
        """Does the condition hold at every call?"""
        return self.context.proves(cond)

    def refutes(self, cond: Expr) -> bool:
        """Does the condition fail at every call?"""
        return self.context.refutes(cond)

    def varies(self, e: Expr) -> bool:
        """Does it depend on more than sizes? Then it is known in a loop, not at entry."""
        return False

    def demand(self, cond: Expr, pos: int) -> bool:
        """Make the condition one of every call unless it is proven; False if it can never hold."""
        if self.proves(cond):
            return True
        if self.refutes(cond):
            return False
        self.conditions.setdefault(cond, pos)
        self.context = self.context.given(cond)
        return True


def floor_quotient(expr: Expr, by: Expr) -> Expr:
    """floor(expr / by) for a positive divisor, with the part that it divides taken out: (4·M + i) / 4 = M + i / 4."""
    whole, rest = divided(linear(expr), linear(by))
    if not rest.terms and linear(by).is_constant and linear(by).constant > 0:
        return expression(whole.shifted(rest.constant // linear(by).constant))
    return canonical(Op("add", (expression(whole), Op("floordiv", (expression(rest), by)))))


def divided(form: Linear, by: Linear) -> tuple[Linear, Linear]:
    """q and r with form = q · by + r, term by term: a term goes to q where `by` divides it (polynomial division)."""
    exact = form.quotient(by)
    if exact is not None:
        return exact, constant(0)
    whole, rest = constant(0), constant(0)
    for part in (*[Linear({m: c}) for m, c in form.terms.items()], constant(form.constant)):
        quotient = part.quotient(by) if part.terms or part.constant else None
        whole, rest = (whole, rest + part) if quotient is None else (whole + quotient, rest)
    return whole, rest


def ceiling_quotient(expr: Expr, by: Expr) -> Expr:
    """ceil(expr / by) for a positive divisor."""
    return canonical(expr) if canonical(by) is index(1) else floor_quotient(canonical(expr + by - 1), by)

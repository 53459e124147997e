"""The sizes of a called composite, in terms of the caller's shapes."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.expr import Expr, Op, Var, index
from ..core.node import substitute
from ..core.size_inference import equations_in
from ..loop.affine import Linear, canonical, constant, expression, linear

ZERO = index(0)


def solved_sizes(pairs: Sequence[tuple[Expr, Expr]], conditions: Sequence[Expr],
                 known: Mapping[Expr, Expr] | None = None) -> dict[Expr, Expr]:
    """The sizes that follow from pairs of a declared and a given extent, and from the equations among the conditions.

    An equation c · K + rest = given, whose rest is known, gives K = (given - rest) / c, rounded down: the caller must
    demand that the equation holds. `known`: expressions for other names of the callee."""
    sizes: dict[Expr, Expr] = dict(known or {})
    for mine, theirs in pairs:
        if isinstance(mine, Var):
            sizes.setdefault(mine, theirs)
    todo: list[tuple[Linear, Expr]] = [(linear(a) - linear(b), ZERO) for a, b in equations_in(conditions)]
    # The conditions first: their solutions need no division more often.
    todo += [(linear(mine), theirs) for mine, theirs in pairs if not isinstance(mine, Var)]
    solved = True
    while solved:
        solved = False
        for form, given in todo:
            unknown = {v for v in _variables(form) if v not in sizes}
            if len(unknown) == 1:
                (size,) = unknown
                value = _value(form, size, given, sizes)
                if value is not None:
                    sizes[size] = value
                    solved = True
    return sizes


def _variables(form: Linear) -> Iterator[Var]:
    for atom in form.atoms():
        yield from [n for n in atom.unique() if isinstance(n, Var)]


def _value(form: Linear, size: Var, given: Expr, sizes: Mapping[Expr, Expr]) -> Expr | None:
    """The size for which the form is the given number; None unless its factor is a number."""
    factor = form.coefficient(size)
    rest = form - Linear({(size,): 1}).times(factor)
    if not factor.is_constant or factor.constant == 0 or size in set(_variables(rest)):
        return None
    total = linear(given) - linear(substitute(expression(rest), dict(sizes)))
    by = abs(factor.constant)
    total = total if factor.constant > 0 else constant(0) - total
    if by == 1:
        return expression(total)
    exact = total.quotient(constant(by))
    return expression(exact) if exact is not None else canonical(Op("floordiv", (expression(total), index(by))))

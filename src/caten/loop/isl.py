"""The exact judge of integer sets: islpy, asked only when elimination leaves a question open."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from .affine import Monomial
from .integer_sets import Constraint


@cache
def _library() -> Any:
    import islpy  # a heavy extension module: simple affine specs never need it

    return islpy


def is_empty(constraints: Sequence[Constraint]) -> bool:
    """Is there no integer point? Every monomial is a variable of its own."""
    isl = _library()
    names: dict[Monomial, int] = {}
    for c in constraints:
        for m in c.linear.terms:
            names.setdefault(m, len(names))
    space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[f"v{i}" for i in range(len(names))])
    points = isl.BasicSet.universe(space)
    for c in constraints:
        terms: dict[Any, int] = {f"v{names[m]}": k for m, k in c.linear.terms.items()}
        make = isl.Constraint.eq_from_names if c.equal else isl.Constraint.ineq_from_names
        points = points.add_constraint(make(space, {**terms, 1: c.linear.constant}))
    return bool(points.is_empty())

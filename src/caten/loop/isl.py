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
    names: dict[Monomial, str] = {}
    for c in constraints:
        for m in c.linear.terms:
            names.setdefault(m, f"v{len(names)}")
    rows = [" + ".join([*[f"{k} {names[m]}" for m, k in c.linear.terms.items()], str(c.linear.constant)]) + (" = 0" if c.equal else " >= 0")
            for c in constraints]
    return bool(isl.BasicSet("{ [" + ", ".join(names.values()) + "] : " + " and ".join(rows or ["0 = 0"]) + " }").is_empty())

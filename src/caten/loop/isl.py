"""isl as the exact judge of integer sets, called only when elimination leaves a question open.

isl is exact, so a question may take unbounded time, in C code that handles no signals. Each question therefore has a
limit on isl operations; beyond it the answer is unknown. The limit counts operations, not seconds, so that answers are
the same on every machine.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ..core.deferred_signals import deferred
from .affine import Monomial
from .integer_sets import Constraint

MAX_OPERATIONS = 10_000        # some milliseconds; three times as many may take seconds, as the numbers grow


@cache
def _library() -> Any:
    with deferred():
        import islpy  # a heavy extension module: simple affine specs never need it

    return islpy


def is_empty(constraints: Sequence[Constraint]) -> bool | None:
    """True if there is no integer point, None if isl does not decide within MAX_OPERATIONS. A monomial is a
    variable."""
    isl = _library()
    names: dict[Monomial, str] = {}
    for c in constraints:
        for m in c.linear.terms:
            names.setdefault(m, f"v{len(names)}")
    rows = [" + ".join([*[f"{k} {names[m]}" for m, k in c.linear.terms.items()], str(c.linear.constant)])
            + (" = 0" if c.equal else " >= 0")
            for c in constraints]
    text = "{ [" + ", ".join(names.values()) + "] : " + " and ".join(rows or ["0 = 0"]) + " }"
    context = isl.Context()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        return bool(isl.BasicSet.read_from_str(context, text).is_empty())
    except isl.Error:
        return None

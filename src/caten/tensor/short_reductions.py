"""Reductions over a few parts that are written out, `np.minimum.reduce([x, y, z])`, as the operators that they are.

    (reduce u8 ((i N)) ((p 3)) min true (pieces p ((read X i) (read Y i) (read Z i)) 1 2))
->  (compute u8 ((i N)) (min (min (read X i) (read Y i)) (read Z i)))

A loop over the parts would choose one of them for every element.
"""
from __future__ import annotations

from functools import reduce

from ..core.expr import TRUE, Const, Expr, Op, Var, index
from ..core.node import substitute
from .index_maps import MOST_NODES, in_canonical_form
from .values import Compute, Pieces, Read, Reduce, Value

MOST_PARTS = 32                # that are combined without a loop


def without_short_reductions(value: Value) -> Value:
    """The value without a loop over parts of which some are elements of arrays, if there are few."""
    match value:
        case Reduce(over=(axis,), cond=cond, expr=expr) if cond is TRUE and expr.dtype == value.type:
            count = axis.extent.value if isinstance(axis.extent, Const) else 0
            if 1 < count <= MOST_PARTS and expr.written_out <= 4 * MOST_NODES and _chooses(expr, axis.var):
                parts = [_part(expr, axis.var, n) for n in range(count)]
                return Compute(value.type, value.axes, reduce(lambda x, y: Op(value.fn, (x, y)), parts))
    return value


def _chooses(e: Expr, at: Var) -> bool:
    """Is one of several elements of arrays chosen by an index, one for each of its values?"""
    pieces = [n for n in e.unique() if isinstance(n, Pieces) and n.at is at]
    return bool(pieces) and all(any(isinstance(n, Read) for n in arm.unique())
                                for p in pieces for arm in p.arms) and not any(
        isinstance(n, Read) and at.name in n.variables for n in e.unique())


def _part(e: Expr, at: Var, n: int) -> Expr:
    """The expression where an index is a number."""
    known: dict[Expr, Expr] = {}

    def go(part: Expr) -> Expr:
        if part not in known:
            if isinstance(part, Pieces) and part.at is at:
                arm = sum(isinstance(bound, Const) and bound.value <= n for bound in part.bounds)
                known[part] = go(part.arms[arm])
            else:
                known[part] = part.map(go)
        return known[part]
    return in_canonical_form(substitute(go(e), {at: index(n)}))

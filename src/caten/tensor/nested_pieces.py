"""Pieces inside of pieces of the same index, as one: what several assignments to parts of an array leave.

    (pieces i ((pieces i (a b) 1) c) 2)                           ->      (pieces i (a b c) 1 2)
    (pieces i (a (pieces i (b c) 1)) 2)                           ->      (pieces i (a c) 2)
    (pieces (+ 1 1) (a b) 2)                                      ->      b

Only bounds that are numbers are compared. Each assignment refers to the elements before it several times, so without
this, the formula after n assignments would have 2ⁿ parts.
"""
from __future__ import annotations

from collections.abc import Mapping

from ..core.expr import Const, Expr, index
from ..core.node import Node, kept
from ..loop.affine import canonical
from .values import Pieces, Value, formulas_of, with_formulas

ANY = -float("inf"), float("inf")
END = index((1 << 63) - 1)                           # beyond every index
Ranges = Mapping[Expr, tuple[float, float]]          # of an index: the first number that it may be, and the one beyond


def without_nested_pieces(value: Value) -> Value:
    """A value whose formula and condition have no pieces that an outer one decides, or could have as its own."""
    if not any(map(contains_pieces, formulas_of(value))):
        return value
    walk = _Walk()
    return with_formulas(value, lambda e: walk.expr(e, {}))


class _Walk:
    def __init__(self) -> None:
        self.made: dict[tuple[Expr, frozenset[tuple[Expr, tuple[float, float]]]], Expr] = {}

    def expr(self, e: Expr, ranges: Ranges) -> Expr:
        """An expression where indices are in these ranges."""
        if not contains_pieces(e):
            return e
        key = e, frozenset(ranges.items())
        if key not in self.made:
            new: Expr = self.pieces(e, ranges) if isinstance(e, Pieces) else e.map(
                lambda child: self.expr(child, ranges) if isinstance(child, Expr) else child)
            self.made[key] = new
        return self.made[key]

    def pieces(self, e: Pieces, ranges: Ranges) -> Expr:
        at = self.expr(e.at, ranges)
        if e.is_check:
            return e.replace(at=at, arms=(self.expr(e.arms[0], ranges),))
        if not at.variables:                            # what is put together may be taken apart again, piece by piece
            at = canonical(at)
        first, beyond = (at.value, at.value + 1) if isinstance(at, Const) else ranges.get(at, ANY)
        if not all(isinstance(bound, Const) for bound in e.bounds):
            return Pieces(at, tuple([self.expr(arm, ranges) for arm in e.arms]), e.bounds)
        arms, bounds = list[Expr](), list[Expr]()
        below = ANY[0]
        for arm, bound in zip(e.arms, (*e.bounds, END), strict=True):
            assert isinstance(bound, Const)
            low, high = max(below, first), min(bound.value, beyond)
            below = bound.value
            if low >= high:
                continue
            made = self.expr(arm, {**ranges, at: (low, high)})
            own, inner = (made.arms, made.bounds) if isinstance(made, Pieces) and made.at is at and all(
                isinstance(b, Const) for b in made.bounds) else ((made,), ())
            for part, end in zip(own, (*inner, bound), strict=True):
                if arms and arms[-1] is part:
                    bounds.pop()
                    arms.pop()
                arms.append(part)
                bounds.append(end)
        return arms[0] if len(arms) == 1 else Pieces(at, tuple(arms), tuple(bounds[:-1]))


@kept
def contains_pieces(node: Node) -> bool:
    """Are there pieces in an expression?"""
    return isinstance(node, Pieces) or any(map(contains_pieces, node.children))

"""Which axes of an array need a check of their own where they are indexed by elements of arrays.

An access is checked against what it reads in memory. That is enough where an index outside of the axis is outside of
memory, too: `X[i][k]`. It is not for part of an array, `x[1:4][k]`, and where no element depends on the index, as in
what `np.ones` and `np.broadcast_to` make.
"""
from __future__ import annotations

from ...core.expr import Expr, Op, Var
from ...loop.affine import canonical
from ...tensor.index_maps import element, is_small
from ...tensor.values import Compute, Pieces, Read
from .builder import Builder
from .handles import ONE, ZERO, Array

Sides = tuple[bool, bool]               # below the axis, and behind it


def accesses_check(b: Builder, x: Array, axis: int) -> bool:
    """Is some access of an element outside of memory wherever an index is outside of this axis?"""
    indices = tuple([Var(f"{n}.axis", "i64") for n in range(x.rank)])
    shapes = dict(b.table.shapes)
    each: Array | None = x
    while each is not None:
        shapes[each.name] = each.shape
        each = each.base
    return _Accesses(b, shapes, indices[axis], x.shape[axis]).sides(x.at(indices)) == (True, True)


def checked(inside: Expr, e: Expr) -> Expr:
    """An expression whose evaluation checks an index: pieces of which there is only one."""
    return Pieces(inside, (e,), ())


class _Accesses:
    def __init__(self, b: Builder, shapes: dict[str, tuple[Expr, ...]], at: Var, extent: Expr) -> None:
        self.values, self.shapes, self.at, self.extent = b.table.values, shapes, at, extent
        self.known: dict[Expr, Sides] = {}

    def sides(self, e: Expr) -> Sides:
        """On which sides of the axis an index is outside of what the expression reads, whatever its conditions are."""
        if e not in self.known:
            self.known[e] = self._sides(e) if self.at.name in e.variables else (False, False)
        return self.known[e]

    def _sides(self, e: Expr) -> Sides:
        match e:
            case Read(name, index) if isinstance(value := self.values.get(name), Compute):
                whole = element(value, index)
                return self.sides(whole) if is_small(whole) else (False, False)
            case Read(name, index):
                found = [self.sides(i) for i in index]
                found += [self._of_index(i, n) for i, n in zip(index, self.shapes.get(name, ()), strict=False)]
                return _either(found)
            case Op("where", (cond, yes, no)):
                return _either([self.sides(cond), _both([self.sides(yes), self.sides(no)])])
            case Pieces(at, arms) if at is self.at:
                return self.sides(arms[0])[0], self.sides(arms[-1])[1]
            case Pieces(at, arms):
                return _either([self.sides(at), _both([self.sides(arm) for arm in arms])])
        return _either([self.sides(child) for child in e.children if isinstance(child, Expr)])

    def _of_index(self, i: Expr, extent: Expr) -> Sides:
        """`at + c` and `c - at` are outside of memory before and behind the axis if they are at its ends."""
        if self.at.name in (shift := canonical(i - self.at)).variables:
            if self.at.name in (shift := canonical(i + self.at)).variables:
                return False, False
            return canonical(extent - ONE - shift) is ZERO, canonical(shift + ONE - self.extent) is ZERO
        return shift is ZERO, canonical(extent - shift - self.extent) is ZERO


def _either(found: list[Sides]) -> Sides:
    return any(low for low, _ in found), any(high for _, high in found)


def _both(found: list[Sides]) -> Sides:
    return all(low for low, _ in found), all(high for _, high in found)

"""Index-set splitting: a choice by bounds of single axes becomes loops over the parts of the array.

    Y[i, j] = where(1 <= i < M, a, b)           ->  for i 0 1: … b;   for i M E: … b;   for i 1 M: … a
    Y[i] = tanh(where(i < M, a[i], b[i - M]))   ->  for i 0 M: tanh(a[i]);   for i M E: tanh(b[i - M])

So padded, shifted and concatenated arrays are read without a test for each element. Where these would be too many
parts, as in a stencil on an array that is padded along two axes, the interior is one, and the borders keep the tests:

    for i 0 1: tests;   for i M - 1 M: tests;   for i 1 M - 1 { for j 0 1: tests;   for j N - 1 N: tests;   for j …: a }

A last axis of a few elements, such as colours or pairs, is not split: each part would be a pass over the whole array
with strided stores, and C compilers unroll one loop over these elements. Only costly functions are worth passes.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ..core.expr import FALSE, TRUE, Const, Expr, Op, index
from ..core.node import kept, substitute
from ..frozen import frozen
from ..loop.affine import canonical, expression, linear
from ..loop.statements import ZERO
from .index_maps import has_costly_function
from .values import Axis, Pieces, Read

MOST_PARTS = 8          # of an array
SHORT = 4               # elements of a last axis that is not split
Ranges = tuple[tuple[Expr, Expr], ...]


@frozen
class Part:
    """A part of an array: the range of each axis, and the expression of its elements."""

    ranges: Ranges
    expr: Expr


@frozen
class Bound:
    """A condition on a single axis: it holds from `point` on (`above`), or below it."""

    axis: int
    point: Expr
    above: bool


def parts_of(e: Expr, axes: tuple[Axis, ...], sizes: Collection[str],
             simplified: Callable[[Expr], Expr]) -> list[Part]:
    """The parts of an array in which no choice by bounds of its axes is left; the whole array if there are too many.
    `sizes`: the names that bounds may have: a scalar may be so large that arithmetic on it overflows. `simplified`: a
    bound with what is known of the sizes, so that equal bounds are the same object."""
    whole = Part(tuple([(ZERO, a.extent) for a in axes]), _with_choices(e))
    found: list[Part] = []
    if (len(axes) > 1 and isinstance(last := axes[-1].extent, Const) and last.value <= SHORT
            and not has_costly_function(e)):
        axes = axes[:-1]
    for part in _Splitting(axes, frozenset(sizes), simplified).parts(whole, {}):
        found.append(part)
        if len(found) > MOST_PARTS:
            return _around_interior(whole, axes, frozenset(sizes), simplified) or [whole]
    return found


@frozen
class Interior:
    """The elements of an axis behind all bounds near its start (numbers), and before all near its end."""

    low: int
    beyond: int                                    # how far before the end it ends


def _around_interior(whole: Part, axes: tuple[Axis, ...], sizes: frozenset[str],
                     simplified: Callable[[Expr], Expr]) -> list[Part]:
    """The borders of an array with all choices, axis by axis, and its interior without; none if some bound is neither
    a number nor a number before the end of its axis, or if the array has no interior."""
    points: dict[int, set[Expr]] = {}

    def bounds_of(cond: Expr) -> list[Bound] | None:
        found = [_bound(c, axes, sizes) for c in conjuncts(cond)]
        return None if None in found else [Bound(b.axis, canonical(simplified(b.point)), b.above)
                                           for b in found if b is not None]
    choices = {n: bounds for n in whole.expr.unique() if isinstance(n, Op) and n.fn == "where"
               and (bounds := bounds_of(n.args[0])) is not None}
    for bounds in choices.values():
        for b in bounds:
            points.setdefault(b.axis, set()).add(b.point)
    interiors: dict[int, Interior] = {}
    for n, at in points.items():
        extent = canonical(simplified(axes[n].extent))
        from_end = [canonical(extent - point) for point in at if not isinstance(point, Const)]
        if isinstance(extent, Const) or not all(isinstance(e, Const) for e in from_end):
            return []
        interiors[n] = Interior(max([0, *[p.value for p in at if isinstance(p, Const)]]),
                                max([0, *[e.value for e in from_end if isinstance(e, Const)]]))
    parts: list[Part] = []
    ranges, expr = whole.ranges, whole.expr
    for n, inner in sorted(interiors.items()):
        first, (zero, extent) = index(inner.low), ranges[n]
        low = first if inner.low == 0 else Op("min", (first, extent))
        high = Op("max", (low, canonical(extent - inner.beyond))) if inner.beyond else extent
        parts += [Part(_replaced(ranges, n, border), expr) for border, width in (
            ((zero, low), inner.low), ((high, extent), inner.beyond)) if width]
        ranges, expr = _replaced(ranges, n, (low, high)), _inside(expr, n, bounds_of)
    return [*parts, Part(ranges, expr)]


def _inside(e: Expr, axis: int, bounds_of: Callable[[Expr], list[Bound] | None]) -> Expr:
    """The expression in the interior of an axis: above the bounds that are numbers, and below the others."""
    known: dict[Expr, Expr] = {}

    def go(n: Expr) -> Expr:
        if n not in known:
            new: Expr = n.map(lambda child: go(child) if isinstance(child, Expr) else child)
            if isinstance(n, Op) and n.fn == "where" and (bounds := bounds_of(n.args[0])) is not None:
                _, yes, no = new.args if isinstance(new, Op) else n.args
                conds = [c for c, b in zip(conjuncts(n.args[0]), bounds, strict=True) if b.axis != axis]
                holds = all(isinstance(b.point, Const) == b.above for b in bounds if b.axis == axis)
                new = (yes if not conds else Op("where", (conjunction(conds), yes, no))) if holds else no
            known[n] = new
        return known[n]
    return go(e)


class _Splitting:
    def __init__(self, axes: tuple[Axis, ...], sizes: frozenset[str], simplified: Callable[[Expr], Expr]) -> None:
        self.axes, self.sizes, self.simplified = axes, sizes, simplified

    def parts(self, part: Part, known: dict[tuple[int, Expr], bool]) -> Iterator[Part]:
        """The parts of a part. `known`: for an axis and a point, is it above the point?"""
        choice = _choice(part.expr, self.axes, self.sizes)
        if choice is None:
            yield part
            return
        ranges, outside = part.ranges, _with(part.expr, choice, False)
        for bound in self.bounds(choice.args[0]):
            at, (lo, hi) = (bound.axis, bound.point), ranges[bound.axis]
            above = False if bound.point is hi else True if bound.point is lo else known.get(at)
            if above is None:
                lower, upper = (lo, Op("min", (bound.point, hi))), (Op("max", (bound.point, lo)), hi)
                no, yes = (lower, upper) if bound.above else (upper, lower)
                yield from self.parts(Part(_replaced(ranges, bound.axis, no), outside), {**known, at: not bound.above})
                ranges, known = _replaced(ranges, bound.axis, yes), {**known, at: bound.above}
            elif above != bound.above:
                yield from self.parts(Part(ranges, outside), known)
                return
        yield from self.parts(Part(ranges, _with(part.expr, choice, True)), known)

    def bounds(self, cond: Expr) -> list[Bound]:
        """The bounds of a condition, axis by axis, those from below first."""
        found = [b for c in conjuncts(cond) if (b := _bound(c, self.axes, self.sizes)) is not None]
        found = [Bound(b.axis, canonical(self.simplified(b.point)), b.above) for b in found]
        return sorted(found, key=lambda b: (b.axis, not b.above))


def _replaced(ranges: Ranges, axis: int, new: tuple[Expr, Expr]) -> Ranges:
    return (*ranges[:axis], new, *ranges[axis + 1:])


def _choice(e: Expr, axes: tuple[Axis, ...], sizes: frozenset[str]) -> Op | None:
    """The outermost choice by bounds of single axes that chooses what is read."""
    level: list[Expr] = [e]
    while level:
        for n in level:
            if (isinstance(n, Op) and n.fn == "where" and (n is e or any(_reads(arm) for arm in n.args[1:]))
                    and all(_bound(c, axes, sizes) is not None for c in conjuncts(n.args[0]))):
                return n
        level = list(dict.fromkeys([c for n in level if not isinstance(n, Read) for c in n.children
                                    if isinstance(c, Expr)]))
    return None


def _with_choices(e: Expr) -> Expr:
    """The expression with pieces as choices."""
    while (pieces := next((n for n in e.unique() if isinstance(n, Pieces)), None)) is not None:
        e = substitute(e, {pieces: pieces.choice})
    return e


def _with(e: Expr, choice: Op, holds: bool) -> Expr:
    """The expression where a choice is known."""
    chosen: Expr = substitute(e, {choice: choice.args[1 if holds else 2]})
    return chosen


def conjuncts(cond: Expr) -> list[Expr]:
    """The conditions that hold where a condition holds."""
    match cond:
        case Op("and", (a, b)):
            return [*conjuncts(a), *conjuncts(b)]
        case Op("where", (a, b, no)) if no is FALSE:
            return [*conjuncts(a), *conjuncts(b)]
    return [cond]


def conjunction(conds: Sequence[Expr]) -> Expr:
    """Do all conditions hold?"""
    found: Expr | None = None
    for cond in dict.fromkeys([c for c in conds if c is not TRUE]):
        found = cond if found is None else Op("and", (found, cond))
    return TRUE if found is None else found


def within(cond: Expr, inner: Expr) -> Expr:
    """Do both conditions hold? What the second one reads is in bounds only where the first one holds."""
    if cond is TRUE or inner is TRUE or not _reads(inner):
        return conjunction([inner, cond])
    return Op("where", (cond, inner, FALSE))


def _bound(cond: Expr, axes: tuple[Axis, ...], sizes: frozenset[str]) -> Bound | None:
    """A condition as the bound of an axis."""
    if not isinstance(cond, Op) or cond.fn not in ("lt", "le", "gt", "ge") or cond.args[0].dtype != "i64":
        return None
    small, large = reversed(cond.args) if cond.fn in ("gt", "ge") else cond.args
    if _reads(cond):
        return None
    more = (linear(large) - linear(small)).shifted(-1 if cond.fn in ("lt", "gt") else 0)        # at least 0
    used = [n for n, a in enumerate(axes) if a.name in cond.variables]
    if len(used) != 1:
        return None
    axis = axes[used[0]]
    if not cond.variables <= sizes | {axis.name}:
        return None
    factor = more.terms.get((axis.var,))
    rest = more - linear(axis.var).scaled(factor) if factor in (1, -1) else None
    if rest is None or any(axis.name in m.variables for m in rest.atoms()):
        return None
    if factor == 1:
        return Bound(used[0], canonical(expression(linear(ZERO) - rest)), True)
    return Bound(used[0], canonical(expression(rest.shifted(1))), False)


@kept
def _reads(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in e.unique())

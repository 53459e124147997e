"""`x[…]`: slices, elements, new axes (views), and gathers by arrays of integers."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from ...core.expr import Expr, index
from ...loop.affine import canonical
from ...tensor.values import Inside, Pieces
from ..typing import WEAK_INT
from .argument_binding import as_operand, refuse_selected
from .axis_arguments import axis_of
from .builder import Builder
from .checked_axes import accesses_check, checked
from .elementwise_functions import apply, converted
from .handles import ONE, ZERO, Array, Indices, dtype_of, is_whole, size_term, spelled, spelled_extent
from .reshaping import ravel
from .subscripts import At, Gathered, Item, Listed, Masked, New, Range, index_in, items_of


def select(b: Builder, x: Array, written: Any) -> Array:
    """`x[written]`."""
    items = items_of(b, x, written)
    for item in items:
        if isinstance(item, Masked):
            refuse_selected(b)
    if any(isinstance(item, Gathered | Listed) for item in items):
        extents, index_of = gathered(b, x, items, written)
        unchecked = [n for n, item in enumerate([each for each in items if not isinstance(each, New)])
                     if isinstance(item, Gathered) and not accesses_check(b, x, n)]

        def named(i: Indices) -> Expr:
            at = index_of(i)
            return reduce(lambda e, n: checked(at[n], e), unchecked, x.at(at))
        return b.compute(extents, named)
    shape = [ONE if isinstance(item, New) else item.count for item in items if isinstance(item, New | Range)]

    def index_map(indices: Indices) -> list[Expr]:
        at = iter(indices)
        found: list[Expr] = []
        for item in items:
            if isinstance(item, New):
                next(at)
            elif isinstance(item, At | Range):
                found.append(item.index if isinstance(item, At) else moved(item, next(at)))
        return found

    own = [item for item in items if not isinstance(item, New)]
    unproven = [Inside(item.index, x.shape[n], 0) for n, item in enumerate(own) if isinstance(item, At)
                and _may_be_outside(b, item.index, x.shape[n]) and not accesses_check(b, x, n)]
    if unproven:
        made = b.compute(shape, lambda i: reduce(lambda e, at: checked(at, e), unproven, x.at(index_map(i))))
        return replace(made, base=x)
    return b.view(x, shape, index_map)


def _may_be_outside(b: Builder, at: Expr, extent: Expr) -> bool:
    """May the index of an iteration be outside of an axis?"""
    return b.lang == "python" and b.sizes.varies(at) and not (
        b.sizes.proves(at >= ZERO) and b.sizes.proves(at < extent))


def moved(item: Range, at: Expr) -> Expr:
    """The index of element `at` of a range."""
    start, distance = item.start, at if item.step is ONE else at * item.step
    return start - distance if item.is_down else at if distance is at and start is ZERO else start + distance


def take(b: Builder, x: Array, indices: Any, axis: Any, mode: str) -> Array:
    """`np.take`: elements along an axis, by an integer, a list or an array of integers. An index outside makes the call
    fail; with `mode` "wrap" it counts on around the axis, and with "clip" it is the nearest one inside."""
    extents = x.shape if axis is None else (x.shape[axis_of(b, axis, x.rank)],)
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    return select(b, x, (*[slice(None)] * place, inside(b, indices, x.shape[place], mode, "np.take", extents)))


def inside(b: Builder, indices: Any, extent: Expr, mode: str, what: str, extents: Sequence[Expr]) -> Any:
    """Indices that a mode leaves as they are ("raise"), or brings into an axis. E322 for another mode. `extents`: those
    of the axes that are this one, each of which needs an element."""
    if mode not in ("raise", "wrap", "clip"):
        b.fail("E322", f"there is no mode '{mode}' of {what}", "there are 'raise', 'wrap' and 'clip'")
    given = as_operand(b, indices)
    if mode == "raise" or given is None or not (dtype_of(given) == WEAK_INT or is_whole(dtype_of(given))):
        return indices
    for each in extents:
        b.require(each > ZERO, "E323", f"{what} with the mode '{mode}' takes elements of an empty axis")
    count = size_term(extent, b.pos)
    if mode == "wrap":
        return apply(b, "mod", converted(b, "i64", given), count)
    last = size_term(canonical(extent - 1), b.pos)
    return apply(b, "max", apply(b, "min", converted(b, "i64", given), last), size_term(ZERO, b.pos))


def stand_together(written: Any) -> bool:
    """Does nothing stand between the first and the last index that is no slice? `...` does, also for no axes."""
    parts = written if isinstance(written, tuple) else (written,)
    found = [n for n, part in enumerate(parts) if not (part is None or part is Ellipsis or isinstance(part, slice))]
    return len(found) == found[-1] - found[0] + 1


def gathered(b: Builder, x: Array, items: list[Item], written: Any,
             ) -> tuple[list[Expr], Callable[[Indices], list[Expr]]]:
    """The shape of the elements that arrays of integers name, and the index of each. The arrays are broadcast together.
    Their axes stand in the place of the indexed ones if those are adjacent, else in front (as in numpy)."""
    adjacent = stand_together(written)
    by_array = [n for n, item in enumerate(items) if isinstance(item, Gathered | Listed | At)]
    common = b.broadcast(*[_own_shape(items[n]) for n in by_array])
    front = [item for n, item in enumerate(items) if adjacent and n < by_array[0]]
    first = len(front)
    others = [item for item in items if isinstance(item, Range | New)]
    shape = [ONE if isinstance(item, New) else item.count for item in others]
    shape[first:first] = common
    extents = iter(x.shape)
    extent_of = [None if isinstance(item, New) else next(extents) for item in items]
    rows = {n: _row(b, x, n - len([i for i in items[:n] if isinstance(i, New)]), item.index)
            for n, item in enumerate(items) if isinstance(item, Gathered)}

    def index_map(indices: Indices) -> list[Expr]:
        named = indices[first:first + len(common)]
        rest = iter((*indices[:first], *indices[first + len(common):]))
        found: list[Expr] = []
        for n, item in enumerate(items):
            extent = extent_of[n]
            match item:
                case New():
                    next(rest)
                case Range():
                    found.append(moved(item, next(rest)))
                case At():
                    found.append(item.index)
                case Listed():
                    found.append(_listed(item, named[-1]))
                case Gathered() if extent is not None:
                    which = b.broadcast_term(item.index, named, common)
                    found.append(Inside(index_in(b, b.typing.default(which), extent), extent, rows[n]))
        return found

    return shape, index_map


def _own_shape(item: Item) -> tuple[Expr, ...]:
    return item.index.shape if isinstance(item, Gathered) else (index(len(item.indices)),) if isinstance(
        item, Listed) else ()


def _listed(item: Listed, at: Expr) -> Expr:
    """One of the indices of a list."""
    return pieces(at, [(each, index(n + 1)) for n, each in enumerate(item.indices)])


def _row(b: Builder, x: Array, axis: int, by: Array) -> int:
    """The row of the check that an index into an axis is inside."""
    key = (x.name, axis, by.name)
    if key not in b.rows:
        extent = spelled_extent(x.shape[axis])
        message = f"an index into axis {axis} of {spelled(x.shape)} is outside [-{extent}, {extent})"
        b.rows[key] = b.check(message, b.pos)
    return b.rows[key]


def pieces(at: Expr, parts: Sequence[tuple[Expr, Expr]]) -> Expr:
    """`(pieces at …)` of (expression, the bound below which it holds): the last is that of the axis. Empty pieces are
    left out, equal neighbours joined."""
    kept: list[tuple[Expr, Expr]] = []
    below: Expr = ZERO
    for part, bound in parts:
        if bound is not below:
            if kept and kept[-1][0] is part:
                kept.pop()
            kept.append((part, bound))
            below = bound
    if not kept:
        return parts[-1][0]
    return kept[0][0] if len(kept) == 1 else Pieces(at, tuple([p for p, _ in kept]),
                                                    tuple([bound for _, bound in kept[:-1]]))

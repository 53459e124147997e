"""`Z[a:b] = e`: a new value of the whole array, e inside the selected part and the old elements elsewhere."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...core.expr import Expr, Op, number
from ...loop.affine import canonical
from .argument_binding import refuse_selected
from .builder import Builder
from .elementwise_functions import term_of
from .handles import ONE, ZERO, Array, Indices, Operand, Selected, Unset, is_one, shape_of, spelled
from .masked_elements import beside, check_mask, mask_in, spread_mask, whole_at_mask
from .selection import pieces, select, stand_together
from .subscripts import At, Gathered, Item, Listed, New, Range, items_of


def assign(b: Builder, old: Array | Unset, written: Any, value: Operand | Selected) -> Array:
    """The array after `old[written] = value`. An output that is not set yet holds 0."""
    target = Array(old.name, old.dtype, old.shape)
    if mask_in(written) is not None:
        return assign(b, old, *store_of_mask(b, old, written, value))
    items = items_of(b, target, written)
    if isinstance(value, Selected):
        refuse_selected(b)
    for item in items:
        if isinstance(item, Gathered | Listed):
            b.fail("E327", "storing at the indices of an array is not supported yet",
                   "indices in a loop over elements are: for p in range(n): Z[index[p]] = …")
    ranges = [item for item in items if isinstance(item, Range | New)]
    selected = tuple([item.count if isinstance(item, Range) else ONE for item in ranges])
    fits(b, selected, shape_of(value))
    own = [item for item in items if not isinstance(item, New)]
    if isinstance(value, Array) and value.dtype == old.dtype and value.shape == old.shape and all(
            _is_whole(item, extent) for item, extent in zip(own, old.shape, strict=True)):
        return Array(value.name, value.dtype, old.shape)

    def element(i: Indices) -> Expr:
        axes = iter([at for item, at in zip(own, i, strict=True) if isinstance(item, Range)])
        inner = tuple([_position(item, next(axes)) if isinstance(item, Range) else ZERO for item in ranges])
        new = b.typing.stored(b.broadcast_term(value, inner, selected), old.dtype, f"'{old.name}'")
        return _chosen(b, _element(old, i), new, own, i, old.shape)

    return b.compute(old.shape, element)


def fits(b: Builder, selected: Sequence[Expr], given: Sequence[Expr]) -> None:
    """E320 unless a value can be broadcast to the selected part."""
    both = b.broadcast(selected, given)
    if len(both) != len(selected) or any(x is ONE and y is not ONE for x, y in zip(selected, both, strict=True)):
        b.fail("E320", f"a value of the shape {spelled(given)} does not fit into {spelled(selected)}")


def _element(old: Array | Unset, i: Indices) -> Expr:
    """An element before the assignment."""
    return number(0, old.dtype) if isinstance(old, Unset) else old.at(i)


def _is_whole(item: Item, extent: Expr) -> bool:
    return isinstance(item, Range) and item.start is ZERO and not item.is_down and (
        item.step is ONE and item.count is extent)


def _position(item: Range, at: Expr) -> Expr:
    """Which element of the range is element `at` of the axis."""
    distance = canonical(item.start - at if item.is_down else at - item.start)
    return distance if item.step is ONE else Op("floordiv", (distance, item.step))


def _chosen(b: Builder, old: Expr, new: Expr, items: Sequence[Item], i: Indices, shape: Sequence[Expr]) -> Expr:
    """The new element inside the ranges of all axes. A contiguous range cuts the axis into pieces."""
    for item, at, extent in reversed(list(zip(items, i, shape, strict=True))):
        if isinstance(item, At):
            new = pieces(at, [(old, item.index), (new, canonical(item.index + 1)), (old, extent)])
        elif isinstance(item, Range) and item.step is ONE:
            first = canonical(item.start - item.count + 1) if item.is_down else item.start
            new = pieces(at, [(old, first), (new, canonical(first + item.count)), (old, extent)])
        elif isinstance(item, Range):
            new = Op("where", (_is_in(b, item, at, extent), new, old))
    return new


def _is_in(b: Builder, item: Range, at: Expr, extent: Expr) -> Expr:
    """Is element `at` of the axis one of the range? What follows from the axis is left out."""
    distance = canonical(item.start - at if item.is_down else at - item.start)
    below = canonical(item.count * item.step)
    room = canonical(item.start + 1 if item.is_down else extent - item.start)       # from the start to the last element
    first = canonical(extent - 1) if item.is_down else ZERO
    conds: list[Expr] = [] if item.start is first else [Op("le", (ZERO, distance))]
    if not b.sizes.proves(room <= below):
        conds.append(Op("lt", (distance, below)))
    conds.append(Op("eq", (Op("mod", (distance, item.step)), ZERO)))
    return reduce(lambda x, y: Op("and", (x, y)), conds)


def store_of_mask(b: Builder, old: Array | Unset, written: Any, value: Operand | Selected) -> tuple[Any, Array]:
    """`old[written] = value` with a mask in the index, as a store to whole axes: the index without the mask, and the
    new elements there. What is not selected stays."""
    if isinstance(old, Unset):
        old = b.compute(old.shape, lambda _: number(0, old.dtype))
    mask, parts, axis = whole_at_mask(b, old, written)
    place = Selected(select(b, old, parts), mask, axis)
    if isinstance(value, Selected):
        check_mask(b, mask, value.mask)
    given = value.array.shape if isinstance(value, Selected) else shape_of(value)
    if given and not stand_together(written):
        b.fail("E328", "an integer that stands apart from a mask puts the axis of the mask in front",
               "store numbers, or name the part first: row = Z[0]; row[:, mask] = …")
    if not isinstance(value, Selected) and len(given) > place.after and not is_one(given[-1 - place.after]):
        b.fail("E328", f"a value of the shape {spelled(given)} cannot be spread over the elements of a mask",
               "Z = np.where(mask, values, Z) takes those of the same place")
    new, condition, shape = beside(b, value, place), spread_mask(b, place), place.array.shape
    fits(b, shape, shape_of(new))

    def element(i: Indices) -> Expr:
        stored = b.typing.stored(b.broadcast_term(new, i, shape), old.dtype, f"'{old.name}'")
        return Op("where", (b.typing.default(b.broadcast_term(condition, i, shape)), stored, place.array.at(i)))
    return parts, b.compute(shape, element)


def filled(b: Builder, old: Array | Unset, value: Any) -> Array:
    """The array after `old[...] = value`."""
    operand = term_of(value, b.pos)
    if operand is None:
        b.fail("E322", "an array holds numbers")
    return assign(b, old, Ellipsis, operand)

"""`x[mask]`, `X[labels == k]`: the elements, or the rows, that a mask selects.

How many there are is not known before the call, so they stay at their places: arithmetic is on all elements, sums leave
out those that are not selected, and `y[mask] = …` stores only them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.expr import Expr, Var
from ...tensor.index_maps import element
from ...tensor.values import Compute, Read
from ..typing import Term
from . import array_reductions
from .argument_binding import as_array, refuse_selected
from .builder import Builder
from .elementwise_functions import apply, choose, term_of
from .handles import Array, Operand, Selected, dtype_of, is_one, size_term, spelled
from .reshaping import ravel, reshape
from .selection import select, stand_together
from .views import expand_dims, moveaxis, squeeze, transpose

MOST_NODES = 500                # of two masks that are compared


def any_selected(*values: Any) -> bool:
    return any(isinstance(value, Selected) for value in values)


# what a mask selects


def mask_in(written: Any) -> int | None:
    """Which part of an index is a mask."""
    for n, part in enumerate(written if isinstance(written, tuple) else (written,)):
        if isinstance(part, Array | Term) and dtype_of(part) == "bool":
            return n
    return None


def selected(b: Builder, x: Array, written: Any) -> Selected:
    """`x[…]` with one mask among integers, slices, None and '...'. E320 if it has another shape than its axes; E328
    beside a second mask or other arrays of indices."""
    mask, parts, axis = whole_at_mask(b, x, written)
    made = select(b, x, parts)
    if not stand_together(written):                         # an integer apart from it, as in NumPy
        made, axis = moveaxis(b, made, tuple(range(axis, axis + mask.rank)), tuple(range(mask.rank))), 0
    return Selected(made, mask, axis)


def whole_at_mask(b: Builder, x: Array, written: Any) -> tuple[Array, tuple[Any, ...], int]:
    """The mask of an index; the index with all elements along its axes; and which axis of the part they begin at."""
    parts, place = list(written) if isinstance(written, tuple) else [written], mask_in(written)
    assert place is not None
    mask = b.array(parts[place])
    others = [part for n, part in enumerate(parts) if n != place]
    if any(isinstance(part, list | tuple) or (isinstance(part, Array) and part.rank) for part in others):
        b.fail("E328", "a mask stands among integers and slices in an index, not beside other arrays",
               "a & b is true where both masks are")
    used = len([part for part in others if part is not None and part is not Ellipsis]) + mask.rank
    if used > x.rank:
        b.fail("E307", f"a mask of the shape {spelled(mask.shape)} and {used - mask.rank} indices are too many for "
               f"{spelled(x.shape)}" if used > mask.rank else
               f"a mask of the shape {spelled(mask.shape)} has more axes than {spelled(x.shape)}")
    if Ellipsis not in others:
        parts.append(Ellipsis)
    axis, at = 0, 0                                         # of x and of the part
    found: list[Any] = []
    for n, part in enumerate(parts):
        if n == place:
            b.same_shape(mask.shape, x.shape[axis:axis + mask.rank], "what this mask selects from")
            begin = at
        written_out = [slice(None)] * (mask.rank if n == place else x.rank - used) if n == place or (
            part is Ellipsis) else [part]
        found += written_out
        axis += len([each for each in written_out if each is not None])
        at += len([each for each in written_out if each is None or isinstance(each, slice)])
    return mask, tuple(found), begin


def subscripted(b: Builder, x: Selected, written: Any) -> Selected:
    """`X[mask][:, 0]`, `x[mask][:, None]`. E328 for an index into the axis of what is selected."""
    parts = list(written) if isinstance(written, tuple) else [written]
    used = len([part for part in parts if part is not None and part is not Ellipsis])
    if used > x.rank:
        b.fail("E307", f"{x.rank} axes, but {used} indices are given")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    found: list[Any] = []
    axis, axis_of_part = 0, 0
    for part in parts:
        for each in [slice(None)] * (x.rank - used) if part is Ellipsis else [part]:
            if isinstance(each, list | tuple) or (isinstance(each, Array) and each.rank):
                refuse_selected(b)
            if each is None:
                found.append(each)
                continue
            if axis == x.axis:
                if each != slice(None):
                    b.fail("E328", "which of the elements that a mask selects come first is not known before the call",
                           "the other axes can be indexed: X[mask][:, 0]")
                axis_of_part = len([f for f in found if f is None or isinstance(f, slice)])
                found += [each] * x.mask.rank
            else:
                found.append(each)
            axis += 1
    return Selected(select(b, x.array, tuple(found)), x.mask, axis_of_part)


# the same mask


def check_mask(b: Builder, mask: Array, other: Array) -> None:
    """E328 for masks that may differ."""
    if mask.name != other.name and not (mask.shape == other.shape and _formula(b, mask) is _formula(b, other)):
        b.fail("E328", "these elements are selected by masks that may differ", "name the mask: m = x > 0; y[m] = x[m]")


def _formula(b: Builder, array: Array) -> Expr:
    """An element of a map, over what is no map; the element of a large one."""
    axes = tuple([Var(f"{n}.mask", "i64") for n in range(array.rank)])

    def written_out(e: Expr) -> Expr:
        value = b.table.values.get(e.buffer) if isinstance(e, Read) else None
        if isinstance(e, Read) and isinstance(value, Compute) and e.written_out < MOST_NODES:
            return written_out(element(value, e.index))
        return e.map(written_out)
    return written_out(array.at(axes))


# arithmetic


def lifted(b: Builder, make: Callable[..., Any], *values: Any) -> Selected:
    """The same operation on the whole arrays. E328 for the elements of other masks, and for arrays along their axis."""
    (first, *others) = [value for value in values if isinstance(value, Selected)]
    for other in others:
        check_mask(b, first.mask, other.mask)
        if other.after != first.after:
            b.fail("E328", "what a mask selects from one array meets another axis of the other one",
                   "an axis more puts them beside each other: X[mask] * w[mask][:, None]")
    given = [as_array(b, value) or value if isinstance(value, tuple | list) else value for value in values]
    made = term_of(make(*[beside(b, value, first) for value in given]), b.pos)
    assert made is not None
    array = b.array(made)
    return Selected(array, first.mask, array.rank - first.after - first.mask.rank)


def beside(b: Builder, value: Any, x: Selected) -> Any:
    """An operand as it is broadcast against the array of which x is selected. E328 if it has an extent along the axis
    of the selected elements."""
    if isinstance(value, Selected):
        return value.array
    if not isinstance(value, Array) or value.rank <= x.after:
        return value
    place = value.rank - 1 - x.after
    if not is_one(value.shape[place]):
        refuse_selected(b)
    return as_axes(b, value, place, x.mask.rank)


def as_axes(b: Builder, x: Array, place: int, count: int) -> Array:
    """An axis of extent 1 as so many."""
    if count == 1:
        return x
    return expand_dims(b, x, tuple(range(place + 1, place + count))) if count else squeeze(b, x, place)


def filled(b: Builder, x: Selected, rest: Operand | float) -> Array:
    """The array with a number where the mask is not true."""
    other = term_of(rest, b.pos)
    assert other is not None
    return b.array(choose(b, spread_mask(b, x), x.array, other))


def spread_mask(b: Builder, x: Selected) -> Array:
    """The mask as it is broadcast against the array."""
    return expand_dims(b, x.mask, tuple(range(x.mask.rank, x.mask.rank + x.after))) if x.after else x.mask


# shapes


def count(b: Builder, x: Selected) -> Operand:
    """How many elements, or rows, are selected: a number of Python."""
    found = array_reductions.total(b, "add", x.mask, None, None, False)
    b.counts.add(found.name)
    return b.term(found, ())


def length(b: Builder, x: Selected) -> Operand:
    """`len(X[mask])`"""
    return extents(b, x)[0]


def extents(b: Builder, x: Selected) -> tuple[Operand, ...]:
    """The shape. The number of what is selected is computed at the call."""
    own = x.array.shape
    return (*[size_term(extent, b.pos) for extent in own[:x.axis]], count(b, x),
            *[size_term(extent, b.pos) for extent in own[x.axis + x.mask.rank:]])


def size(b: Builder, x: Selected) -> Operand:
    """How many numbers there are."""
    found: Operand = count(b, x)
    for n, extent in enumerate(extents(b, x)):
        found = found if n == x.axis else apply(b, "mul", found, extent)
    return found


def transposed(b: Builder, x: Selected, axes: Any = None) -> Selected:
    """Its axes in another order, without `axes` reversed."""
    flat = in_one_axis(b, x)
    made = transpose(b, flat.array, axes)
    order = [*range(flat.rank)][::-1] if axes is None else [axis % flat.rank for axis in axes]
    return Selected(made, flat.mask, order.index(flat.axis))


def in_one_axis(b: Builder, x: Selected) -> Selected:
    """The same, with one axis in the place of those of the mask."""
    if x.mask.rank == 1:
        return x
    own = x.array.shape
    mask = ravel(b, x.mask)
    return Selected(reshape(b, x.array, (*own[:x.axis], *mask.shape, *own[x.axis + x.mask.rank:])), mask, x.axis)


ATTRIBUTES: dict[str, Callable[[Builder, Selected], Any]] = {
    "shape": extents, "ndim": lambda b, x: x.rank, "size": size, "T": transposed,
    "real": lambda b, x: lifted(b, lambda v: apply(b, "real", v), x),
    "imag": lambda b, x: lifted(b, lambda v: apply(b, "imag", v), x)}

"""Arrays put together and taken apart: concatenate, stack, roll, repeat, tile, split."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...core.expr import Cast, Const, Expr, Op, index
from ...loop.affine import canonical, expression, linear
from ..typing import WEAK_INT, Term
from .argument_binding import as_extent
from .axis_arguments import axis_of
from .builder import Builder
from .elementwise_functions import converted
from .handles import (
    ONE,
    ZERO,
    Array,
    Indices,
    constant_of,
    dtype_of,
    is_whole,
    product_of,
    shape_of,
    spelled,
    spelled_extent,
)
from .reshaping import ravel, reshape
from .selection import pieces, select
from .size_facts import floor_quotient
from .views import expand_dims

MOST_COPIES = 8                 # that `tile` puts one after the other


def concatenate(b: Builder, arrays: Sequence[Array], axis: Any = 0) -> Array:
    """One after the other along an axis; None: all elements along one axis."""
    if not arrays:
        b.fail("E322", "there are no arrays to put together")
    if axis is None:
        arrays, axis = [ravel(b, x) for x in arrays], 0
    arrays = _same_types(b, arrays)
    first = arrays[0]
    place = axis_of(b, axis, first.rank)
    shape = list(first.shape)
    for x in arrays[1:]:
        for n in range(max(first.rank, x.rank)):
            both = None if x.rank != first.rank else shape[n] if n == place else b.same_extent(shape[n], x.shape[n])
            if both is None:
                b.fail("E320", f"the shapes {spelled(first.shape)} and {spelled(x.shape)} do not fit together along "
                       f"axis {place}", "all other axes are equal")
            shape[n] = both
    starts = _sums([x.shape[place] for x in arrays])
    shape[place] = starts[-1]
    if len(arrays) == 1:
        return first

    def element(i: Indices) -> Expr:
        parts = [(x.at([at - start if n == place and start is not ZERO else at for n, at in enumerate(i)]), stop)
                 for x, start, stop in zip(arrays, starts, starts[1:], strict=False)]
        return pieces(i[place], parts)

    return b.compute(shape, element)


def stack(b: Builder, arrays: Sequence[Array], axis: Any = 0) -> Array:
    """One after the other along a new axis."""
    if not arrays:
        b.fail("E322", "there are no arrays to put together")
    arrays = _same_types(b, arrays)
    place = axis_of(b, axis, arrays[0].rank, 1)
    for x in arrays[1:]:
        b.same_shape(x.shape, arrays[0].shape, "the first array")
    shape = list(arrays[0].shape)
    shape.insert(place, index(len(arrays)))

    def element(i: Indices) -> Expr:
        own = (*i[:place], *i[place + 1:])
        return pieces(i[place], [(x.at(own), index(n + 1)) for n, x in enumerate(arrays)])

    return b.compute(shape, element)


def stack_rows(b: Builder, arrays: Sequence[Array], axis: int) -> Array:
    """`np.vstack` (0) and `np.hstack` (1)."""
    if axis == 0:
        arrays = [reshape(b, x, (ONE, product_of(x.shape))) if x.rank < 2 else x for x in arrays]
    return concatenate(b, arrays, min(axis, arrays[0].rank - 1) if arrays else axis)


def _same_types(b: Builder, arrays: Sequence[Array]) -> list[Array]:
    """The arrays in the type that holds all of them. E301 if there is none."""
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = b.typing.join_kinds(dtype, x.dtype, b.pos, "this list of arrays")
    return [b.array(converted(b, dtype, x)) for x in arrays]


def _sums(extents: Sequence[Expr]) -> list[Expr]:
    """0, a, a + b, …"""
    sums: list[Expr] = [ZERO]
    for extent in extents:
        sums.append(canonical(sums[-1] + extent))
    return sums


def roll(b: Builder, x: Array, shift: Any, axis: Any) -> Array:
    """Shifted along axes, by any number; what leaves at the end comes in at the start."""
    if axis is None:
        return reshape(b, roll(b, ravel(b, x), shift, 0), x.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else [shift] * len(axes)
    if len(axes) == 1:                                       # by one after the other
        axes = [*axes] * len(shifts)
    if len(shifts) == 1:
        shifts = [*shifts] * len(axes)
    if len(shifts) != len(axes):
        b.fail("E321", f"{len(shifts)} shifts are given for {len(axes)} axes")
    for one, by in zip(axes, shifts, strict=True):
        x = _rolled(b, x, by, axis_of(b, one, x.rank))
    return x


def _rolled(b: Builder, x: Array, shift: Any, axis: int) -> Array:
    extent = x.shape[axis]
    known = shift if isinstance(shift, int) and not isinstance(shift, bool) else _known(shift)
    if known is None:
        return _rolled_by(b, x, shift, axis)
    shift = known
    if (number := constant_of(extent)) is not None:
        shift = shift % number if number else 0
    if shift == 0:
        return x
    by: Expr = index(abs(shift))
    if not b.sizes.proves(by <= extent):
        by = canonical(Op("min", (ONE, extent)) if by is ONE else Op("mod", (by, Op("max", (ONE, extent)))))
    return _rotated(b, x, canonical(extent - by) if shift < 0 else by, axis)


def _rotated(b: Builder, x: Array, first: Expr, axis: int) -> Array:
    """The last elements along an axis, as many as `first` says, before the others."""
    extent = x.shape[axis]

    def element(i: Indices) -> Expr:
        parts = [x.at([at + offset if n == axis else at for n, at in enumerate(i)])
                 for offset in (extent - first, index(0) - first)]
        return pieces(i[axis], [(parts[0], first), (parts[1], extent)])

    return b.compute(x.shape, element)


def _known(shift: Any) -> int | None:
    """The number that an array without axes is known to be: an element of one that is written out."""
    if isinstance(shift, Array) and not shift.rank and isinstance(value := canonical(shift.at(())), Const):
        return value.value if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    return None


def _rolled_by(b: Builder, x: Array, shift: Any, axis: int) -> Array:
    """By arithmetic over sizes, or by an element of an array."""
    extent = x.shape[axis]
    at_least_1 = extent if b.sizes.proves(extent >= ONE) else canonical(Op("max", (ONE, extent)))
    if isinstance(shift, Term) and shift.kind == WEAK_INT:
        return _rotated(b, x, canonical(Op("mod", (b.typing.default(shift), at_least_1))), axis)
    if not isinstance(shift, Array | Term) or shape_of(shift) or not is_whole(dtype_of(shift)):
        b.fail("E322", "the shift of np.roll is an integer")
    by = b.compute((), lambda _: Op("mod", (Cast("i64", b.typing.default(b.term(shift, ()))), at_least_1)))

    def element(i: Indices) -> Expr:
        back = i[axis] - by.at(())
        at = Op("where", (back < ZERO, back + extent, back))
        return x.at([at if n == axis else own for n, own in enumerate(i)])

    return b.compute(x.shape, element)


def repeat(b: Builder, x: Array, times: Any, axis: Any) -> Array:
    """Each element several times: a number for all, or a list with one for each."""
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    counts = times if isinstance(times, tuple | list) else [times]
    known = [as_extent(b, each) for each in counts]
    if any(each is None for each in known):
        if isinstance(times, Array | Term):
            b.fail("E328", "how many elements np.repeat makes is not known before the call where an array says how "
                   "often each is repeated", "write a number, or a list of numbers; an output of T elements is "
                   "x[np.searchsorted(np.cumsum(repeats), np.arange(T), side='right')]")
        b.fail("E322", "how often np.repeat repeats is a number, arithmetic over sizes, or a list of numbers")
    extents = [each for each in known if each is not None]
    for each in extents:
        b.require(each >= ZERO, "E326", "np.repeat repeats 0 times or more")
    if len(extents) == 1:
        return _repeated(b, x, extents[0], place)
    b.require(Op("eq", (x.shape[place], index(len(extents)))), "E320",
              f"{len(extents)} numbers say how often np.repeat repeats {spelled_extent(x.shape[place])} elements")
    if all(each is extents[0] for each in extents):
        return _repeated(b, x, extents[0], place)
    stops = _sums(extents)[1:]
    shape = [stops[-1] if n == place else extent for n, extent in enumerate(x.shape)]

    def at(i: Indices) -> list[Expr]:
        which = pieces(i[place], [(index(n), stop) for n, stop in enumerate(stops)])
        return [which if n == place else each for n, each in enumerate(i)]
    return b.compute(shape, lambda i: x.at(at(i)))


def _repeated(b: Builder, x: Array, times: Expr, place: int) -> Array:
    if times is ZERO:
        return select(b, x, (*[slice(None)] * place, slice(0, 0)))
    shape = [product_of((extent, times)) if n == place else extent for n, extent in enumerate(x.shape)]
    return b.view(x, shape, lambda i: [floor_quotient(at, times) if n == place else at for n, at in enumerate(i)])


def tile(b: Builder, x: Array, times: Sequence[Expr]) -> Array:
    """The whole array several times along each axis."""
    if len(times) > x.rank:
        x = expand_dims(b, x, tuple(range(len(times) - x.rank)))
    counts = [*[ONE] * (x.rank - len(times)), *times]
    for n, count in enumerate(counts):
        if 1 < (constant_of(count) or 0) <= MOST_COPIES:                # without a remainder for every element
            x, counts[n] = concatenate(b, [x] * (constant_of(count) or 1), n), ONE
    shape = [product_of((extent, count)) for extent, count in zip(x.shape, counts, strict=True)]
    return b.view(x, shape, lambda i: [ZERO if extent is ONE else at if count is ONE else Op("mod", (at, extent))
                                       for at, count, extent in zip(i, counts, x.shape, strict=True)])


def split(b: Builder, x: Array, parts: Any, axis: Any) -> tuple[Array, ...]:
    """Equal parts along an axis, or parts that begin at the given indices."""
    place = axis_of(b, axis, x.rank)
    extent = x.shape[place]
    if isinstance(parts, tuple | list):
        bounds = [None, *parts, None]
    elif isinstance(parts, int) and parts > 0:
        size = linear(extent).quotient(linear(index(parts)))
        if size is None:
            b.require(Op("eq", (canonical(Op("mod", (extent, index(parts)))), ZERO)), "E324",
                      f"{spelled_extent(extent)} elements cannot be split into {parts} equal parts")
        step = floor_quotient(extent, index(parts)) if size is None else expression(size)
        return tuple([_part(b, x, place, canonical(step * n), step) for n in range(parts)])
    else:
        b.fail("E326", "the parts of np.split are a number, or a list of indices, known when the body is compiled")
    return tuple([select(b, x, (*[slice(None)] * place, slice(lo, hi))) for lo, hi in pairwise(bounds)])


def array_split(b: Builder, x: Array, parts: Any, axis: Any) -> tuple[Array, ...]:
    """Parts along an axis, of which the first have an element more than the others; or as `split`."""
    if not isinstance(parts, int) or parts < 1:
        return split(b, x, parts, axis)
    place = axis_of(b, axis, x.rank)
    size = floor_quotient(x.shape[place], index(parts))
    longer = canonical(Op("mod", (x.shape[place], index(parts))))
    starts = [canonical(size * n + Op("min", (index(n), longer))) for n in range(parts)] + [x.shape[place]]
    return tuple([_part(b, x, place, start, canonical(end - start)) for start, end in pairwise(starts)])


def _part(b: Builder, x: Array, axis: int, start: Expr, count: Expr) -> Array:
    shape = [count if n == axis else extent for n, extent in enumerate(x.shape)]
    return b.view(x, shape, lambda i: [start + at if n == axis else at for n, at in enumerate(i)])

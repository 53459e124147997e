"""Views: the elements of an array in another order or shape. Each is one value whose index is affine."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.expr import Expr, Op, index
from ...loop.affine import canonical
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .handles import ONE, ZERO, Array, Indices, constant_of, is_one, spelled, spelled_extent


def transpose(b: Builder, x: Array, axes: Any = None) -> Array:
    """Axis n of the result is axis `axes[n]` of x; without `axes` in reverse order."""
    order = tuple(reversed(range(x.rank))) if axes is None else axes_of(b, axes, x.rank)
    if len(order) != x.rank:
        b.fail("E321", f"{len(order)} axes are given to order the {x.rank} of {spelled(x.shape)}",
               "name each axis once")
    back = [order.index(n) for n in range(x.rank)]
    return b.view(x, [x.shape[n] for n in order], lambda i: [i[n] for n in back])


def swapaxes(b: Builder, x: Array, axis1: Any, axis2: Any) -> Array:
    """Two axes exchanged."""
    one, other = axis_of(b, axis1, x.rank), axis_of(b, axis2, x.rank)
    order = list(range(x.rank))
    order[one], order[other] = other, one
    return transpose(b, x, tuple(order))


def matrix_transpose(b: Builder, x: Array) -> Array:
    """The last two axes exchanged."""
    if x.rank < 2:
        b.fail("E330", f"a matrix is needed here, but the array has the shape {spelled(x.shape)}")
    return swapaxes(b, x, -2, -1)


def moveaxis(b: Builder, x: Array, source: Any, destination: Any) -> Array:
    """The axes `source` at the places `destination`, the others in their order."""
    origin, target = axes_of(b, source, x.rank), axes_of(b, destination, x.rank)
    if len(origin) != len(target):
        b.fail("E321", f"{len(origin)} axes cannot move to {len(target)} places")
    rest = [n for n in range(x.rank) if n not in origin]
    order: list[int] = []
    for place in range(x.rank):
        order.append(origin[target.index(place)] if place in target else rest.pop(0))
    return transpose(b, x, tuple(order))


def expand_dims(b: Builder, x: Array, axis: Any) -> Array:
    """With axes of extent 1 at these places of the result."""
    count = len(axis) if isinstance(axis, tuple | list) else 1
    new = axes_of(b, axis, x.rank, count)
    rest = iter(x.shape)
    shape = [ONE if n in new else next(rest) for n in range(x.rank + count)]
    return b.view(x, shape, lambda i: [at for n, at in enumerate(i) if n not in new])


def squeeze(b: Builder, x: Array, axis: Any) -> Array:
    """Without these axes, whose extent is 1; None: without all of extent 1."""
    if axis is None:
        gone: Sequence[int] = [n for n, extent in enumerate(x.shape) if is_one(extent)]
    else:
        gone = axes_of(b, axis, x.rank)
        for n in gone:
            b.require(Op("eq", (x.shape[n], ONE)), "E321",
                      f"axis {n} of {spelled(x.shape)} has {spelled_extent(x.shape[n])} elements: only an axis of one "
                      "element can be left out")
    kept = [n for n in range(x.rank) if n not in gone]

    def whole(i: Indices) -> list[Expr]:
        return [i[kept.index(n)] if n in kept else ZERO for n in range(x.rank)]

    return b.view(x, [x.shape[n] for n in kept], whole)


def broadcast_to(b: Builder, x: Array, shape: tuple[Expr, ...]) -> Array:
    """Repeated along new axes in front and along axes of extent 1."""
    fitting = b.broadcast(x.shape, shape) if len(shape) >= x.rank else None
    if fitting is None or len(fitting) != len(shape) or any(is_one(s) and not is_one(f)
                                                            for s, f in zip(shape, fitting, strict=True)):
        b.fail("E320", f"{spelled(x.shape)} cannot be broadcast to {spelled(shape)}")
    start = len(shape) - x.rank

    def own(i: Indices) -> list[Expr]:
        return [ZERO if is_one(mine) and not is_one(theirs) else at
                for mine, theirs, at in zip(x.shape, shape[start:], i[start:], strict=True)]

    return b.view(x, shape, own)


def flip(b: Builder, x: Array, axis: Any = None) -> Array:
    """The other way round along these axes."""
    turned = axes_of(b, axis, x.rank)
    return b.view(x, x.shape, lambda i: [x.shape[n] - i[n] - 1 if n in turned else i[n] for n in range(x.rank)])


def rot90(b: Builder, x: Array, k: int, axes: Any) -> Array:
    """Turned k times by 90 degrees, from the first of two axes towards the second."""
    plane = axes_of(b, axes, x.rank)
    if len(plane) != 2:
        b.fail("E321", f"np.rot90 turns in the plane of two axes, and not of {len(plane)}", "axes=(0, 1)")
    first, second = plane
    k %= 4
    if k % 2 == 0:
        return flip(b, x, plane) if k else x
    return swapaxes(b, flip(b, x, second if k == 1 else first), first, second)


def diagonal(b: Builder, x: Array, offset: int = 0) -> Array:
    """The elements [i, i + offset] of the first two axes, along a new last axis."""
    if x.rank < 2:
        b.fail("E330", f"a matrix is needed here, but the array has the shape {spelled(x.shape)}")
    rows, columns = x.shape[:2]
    down, right = max(-offset, 0), max(offset, 0)
    high, wide = canonical(rows - down), canonical(columns - right)
    known = [n for n in (constant_of(high), constant_of(wide)) if n is not None]
    if len(known) == 2:
        side: Expr = index(max(min(known), 0))
    elif offset:
        side = canonical(Op("max", (Op("min", (high, wide)), ZERO)))
    else:
        side = rows if rows is columns else canonical(Op("min", (rows, columns)))
    return b.view(x, (*x.shape[2:], side), lambda i: [canonical(i[-1] + down), canonical(i[-1] + right), *i[:-1]])


def windows(b: Builder, x: Array, window: tuple[Expr, ...], axis: Any) -> Array:
    """`sliding_window_view`: the windows that begin at each element along some axes, along new last axes."""
    axes = axes_of(b, axis, x.rank)
    if len(window) != len(axes):
        given = f"{len(window)} is" if len(window) == 1 else f"{len(window)} are"
        b.fail("E321", f"a window has an extent for each axis: {given} given for {len(axes)}")
    shape = list(x.shape)
    for n, extent in zip(axes, window, strict=True):
        b.require(Op("and", (Op("le", (ONE, extent)), Op("le", (extent, shape[n])))), "E326",
                  f"a window of {spelled_extent(extent)} elements does not fit into axis {n} of {spelled(x.shape)}")
        shape[n] = canonical(shape[n] - extent + 1)
    return b.view(x, (*shape, *window), lambda i: [
        canonical(i[n] + i[x.rank + axes.index(n)]) if n in axes else i[n] for n in range(x.rank)])

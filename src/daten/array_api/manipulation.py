"""Functions that change shapes, and that join and repeat arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import indexing
from ..symbolic_sizes import SymbolicSize, has_symbolic
from ..tensor import Tensor, one
from .data_types import result_type


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array broadcast to a shape: repeated along axes of extent 1, and along new leading axes. ValueError if the
    shape does not fit."""
    wanted = tuple(shape)
    if has_symbolic(x.shape, wanted):
        return Tensor(indexing.broadcast_to_sizes(x._ref, wanted))
    if np.broadcast_shapes(x.shape, wanted) != wanted:
        raise ValueError(f"{x!r} cannot be broadcast to {wanted}")
    return Tensor(x) if x.shape == wanted else one("broadcast_to", x, shape=wanted)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays broadcast to their common shape. ValueError if there is none."""
    shape = broadcast_shapes(*[a.shape for a in arrays])
    return [broadcast_to(a, shape) for a in arrays]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape to which arrays of these shapes are broadcast. ValueError if there is none."""
    if not has_symbolic(*shapes):
        return np.broadcast_shapes(*shapes)
    rank = max(map(len, shapes))
    columns = zip(*[(1,) * (rank - len(shape)) + shape for shape in shapes], strict=True)
    return tuple([next((e for e in column if isinstance(e, SymbolicSize) or e != 1), 1) for column in columns])


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays concatenated along an axis; with axis=None, the flattened arrays. Types are promoted."""
    dtype = result_type(*arrays)
    given = [a.astype(dtype) for a in arrays]
    if axis is None:
        given, axis = [a.reshape(-1) for a in given], 0
    made, at = given[0], _axis(axis, given[0].ndim)
    for other in given[1:]:
        made = one("concatenate", made, other, axis=at)
    return Tensor(made)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape, joined along a new axis."""
    at = _axis(axis, arrays[0].ndim + 1)
    return concat([expand_dims(a, at) for a in arrays], axis=at)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The subarrays along an axis, without this axis."""
    moved = moveaxis(x, axis, 0)
    return tuple([moved[n] for n in range(moved.shape[0])])


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """The array with a new axis of extent 1 at position `axis`. IndexError if there is no such position."""
    at = _axis(axis, x.ndim + 1)
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """The array without these axes of extent 1. ValueError if another extent is not 1."""
    out = {_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))}
    for a in sorted(out):
        if x.shape[a] != 1:
            raise ValueError(f"squeeze leaves out axes of extent 1, and axis {a} of {x!r} has {x.shape[a]}")
    return x.reshape(*[e for n, e in enumerate(x.shape) if n not in out])


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The array with its axes in the order `axes`."""
    order = [_axis(a, x.ndim) for a in axes]
    return x.transpose(*order) if order != sorted(order) else Tensor(x)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """The array with the axes `source` moved to the positions `destination`; the others keep their order."""
    old = [_axis(a, x.ndim) for a in (source if isinstance(source, tuple) else (source,))]
    new = [_axis(a, x.ndim) for a in (destination if isinstance(destination, tuple) else (destination,))]
    order = [n for n in range(x.ndim) if n not in old]
    for at, axis in sorted(zip(new, old, strict=True)):
        order.insert(at, axis)
    return permute_dims(x, tuple(order))


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The array with its elements reversed along these axes; without `axis`, along all."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    turned = {_axis(a, x.ndim) for a in axes}
    return x[tuple([slice(None, None, -1) if n in turned else slice(None) for n in range(x.ndim)])]


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements shifted cyclically along axes; without `axis`, in the flattened array. The shape is kept."""
    if axis is None:
        return _rolled(x.reshape(-1), int(shift), 0).reshape(*x.shape)    # type: ignore[arg-type]   # a number here
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = axis if isinstance(axis, tuple) else (axis,) * len(shifts)
    made = Tensor(x)
    for by, at in zip(shifts * (len(axes) if len(shifts) == 1 else 1), axes, strict=True):
        made = _rolled(made, by, _axis(at, x.ndim))
    return made


def _rolled(x: Tensor, by: int, axis: int) -> Tensor:
    return x if not x.size or not by % x.shape[axis] else one("roll", x, shift=by % x.shape[axis], axis=axis)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated `repeats` times along an axis; without `axis`, in the flattened array. `repeats` may be an
    array with one number for each element along the axis; then it is computed immediately."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = _axis(axis, x.ndim)
    times = repeats.numpy() if isinstance(repeats, Tensor) else repeats
    index = np.repeat(np.arange(x.shape[at], dtype=np.int64), times)
    return x[(*[slice(None)] * at, index)]


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array repeated along its axes, `repetitions[n]` times along axis n."""
    rank = max(x.ndim, len(repetitions))
    made = x.reshape(*[1] * (rank - x.ndim), *x.shape)
    for n, times in enumerate((*[1] * (rank - len(repetitions)), *repetitions)):
        made = repeat_axis(made, n, times)
    return Tensor(made)


def repeat_axis(x: Tensor, axis: int, times: int) -> Tensor:
    """The array repeated `times` times along one axis."""
    index = np.tile(np.arange(x.shape[axis], dtype=np.int64), times)
    return x if times == 1 else x[(*[slice(None)] * axis, index)]


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: Any = None) -> Tensor:
    """The same elements in row-major order, in another shape. One extent may be -1. ValueError if the sizes differ."""
    return Tensor(x.reshape(tuple(shape)))


def _axis(axis: int, rank: int) -> int:
    """The axis number from 0, for one that may be negative. IndexError if there is no such axis."""
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of {rank} axes")
    return axis % rank


__all__ = ["broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat",
           "reshape", "roll", "squeeze", "stack", "tile", "unstack"]

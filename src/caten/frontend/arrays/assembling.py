"""Arrays made of several: `np.column_stack`, `np.dstack`, `np.block`, `np.append`, `np.insert`, `np.r_`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.expr import index
from .argument_binding import as_array, described
from .axis_arguments import axis_of
from .builder import Builder
from .elementwise_functions import converted
from .handles import Array
from .joining import concatenate
from .reshaping import ravel
from .selection import select
from .views import broadcast_to, expand_dims, moveaxis, transpose


def column_stack(b: Builder, arrays: Sequence[Array]) -> Array:
    """Arrays of one axis as columns, and those of two beside each other."""
    return concatenate(b, [_of_rank(b, x, 2, before=False) for x in arrays], 1)


def dstack(b: Builder, arrays: Sequence[Array]) -> Array:
    """Along the third axis, which arrays of fewer axes get."""
    return concatenate(b, [_of_rank(b, _of_rank(b, x, 2, before=True), 3, before=False) for x in arrays], 2)


def atleast(b: Builder, rank: int, arrays: Sequence[Array]) -> Any:
    """`np.atleast_1d` and `np.atleast_2d`: with axes of one element in front, if there are fewer axes; `np.atleast_3d`:
    a matrix gets its last one behind."""
    if rank == 3:
        arrays = [x if x.rank > 2 else _of_rank(b, _of_rank(b, x, 2, before=True), 3, before=False) for x in arrays]
    made = tuple([_of_rank(b, x, rank, before=True) for x in arrays])
    return made[0] if len(made) == 1 else made


def _of_rank(b: Builder, x: Array, rank: int, before: bool) -> Array:
    missing = rank - x.rank
    if missing <= 0:
        return x
    return expand_dims(b, x, tuple(range(missing) if before else range(x.rank, rank)))


def block(b: Builder, parts: Any) -> Array:
    """Nested lists of arrays: the innermost are put together along the last axis, the lists around them along the axes
    before it."""
    depths = _depths(b, parts)
    if len(depths) > 1:
        b.fail("E322", "the lists of np.block are nested equally deep, and none is empty")
    (depth,) = depths
    rank = max([depth, *[x.rank for x in _leaves(b, parts)]])

    def made(part: Any, level: int) -> Array:
        if not isinstance(part, tuple | list):
            return _of_rank(b, _array(b, part, "np.block"), rank, before=True)
        return concatenate(b, [made(each, level + 1) for each in part], rank - depth + level)
    return made(parts, 0)


def _depths(b: Builder, parts: Any) -> set[int]:
    if not isinstance(parts, tuple | list):
        return {0}
    if not parts:
        b.fail("E322", "there are no arrays to put together")
    return {1 + depth for part in parts for depth in _depths(b, part)}


def _leaves(b: Builder, parts: Any) -> list[Array]:
    if isinstance(parts, tuple | list):
        return [x for part in parts for x in _leaves(b, part)]
    return [_array(b, parts, "np.block")]


def _array(b: Builder, value: Any, what: str) -> Array:
    found = as_array(b, value)
    if found is None:
        b.fail("E322", f"{what} takes arrays and numbers, not {described(value)}")
    return found


def append(b: Builder, x: Array, values: Array, axis: Any) -> Array:
    """The values behind the elements; without an axis both as one axis."""
    if axis is None:
        x, values, axis = ravel(b, x), ravel(b, values), 0
    return concatenate(b, [x, values], axis)


def insert(b: Builder, x: Array, at: Any, values: Array, axis: Any) -> Array:
    """The values, in the type of the elements, before the element at one index; without an axis the elements as one
    axis. Values of fewer axes are one slice, repeated along the others."""
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    if isinstance(at, tuple | list) and len(at) > 1:
        return _inserted(b, x, at, values, place)
    at = at[0] if isinstance(at, tuple | list) and len(at) == 1 else at
    if not isinstance(at, int) or isinstance(at, bool):
        b.fail("E326", "the index of np.insert is a number, or a list of numbers, known when the body is compiled")
    new = moveaxis(b, _of_rank(b, b.array(converted(b, x.dtype, values)), x.rank, before=True), 0, place)
    new = broadcast_to(b, new, tuple([new.shape[n] if n == place else extent for n, extent in enumerate(x.shape)]))
    whole = [slice(None)] * place
    before = [] if at == 0 else [select(b, x, (*whole, slice(None, at)))]
    return concatenate(b, [*before, new, select(b, x, (*whole, slice(at, None)))], place)


def _inserted(b: Builder, x: Array, at: Sequence[Any], values: Array, place: int) -> Array:
    """A slice of the values before each of several places of x."""
    _known_places(b, "np.insert", at)
    values = _of_rank(b, b.array(converted(b, x.dtype, values)), x.rank, before=True)
    shape = [index(len(at)) if n == place else extent for n, extent in enumerate(x.shape)]
    new = broadcast_to(b, values, tuple(shape))
    whole = [slice(None)] * place
    parts: list[Array] = []
    last: int | None = None
    for n in sorted(range(len(at)), key=lambda n: at[n]):
        if at[n] != last and at[n] != 0:
            parts.append(select(b, x, (*whole, slice(last, at[n]))))
        parts.append(select(b, new, (*whole, slice(n, n + 1))))
        last = at[n]
    return concatenate(b, [*parts, select(b, x, (*whole, slice(last, None)))], place)


def delete(b: Builder, x: Array, at: Any, axis: Any) -> Array:
    """Without the element, or the slice, at one index; without an axis the elements as one axis."""
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    whole = [slice(None)] * place
    if isinstance(at, slice):
        left_out = [_bounds(b, at)]
    else:
        left_out = [(k, k + 1 or None) for k in _known_places(b, "np.delete", at)]
        for k, _ in left_out:
            select(b, x, (*whole, k))                        # the index has to be inside
    stops = [start for start, _ in left_out] + [None]
    starts = [None, *[stop if stop is not None else END for _, stop in left_out]]
    kept = [select(b, x, (*whole, slice(start, stop))) for start, stop in zip(starts, stops, strict=True)
            if start is not END and stop != 0 and (start is None or start != stop)]
    return concatenate(b, kept or [select(b, x, (*whole, slice(0, 0)))], place)


END = object()


def _known_places(b: Builder, what: str, at: Any) -> list[int]:
    """Indices in ascending order, all from the front or all from the end."""
    given = at if isinstance(at, tuple | list) else [at]
    found = sorted({k for k in given if isinstance(k, int) and not isinstance(k, bool)})
    if len(found) < len(given) and not all(isinstance(k, int) and not isinstance(k, bool) for k in given):
        b.fail("E328", f"the indices of {what} are numbers that are known when the body is compiled")
    if found and found[0] < 0 <= found[-1]:
        b.fail("E327", f"the indices of {what} are all counted from the front, or all from the end")
    return found


def _bounds(b: Builder, part: slice) -> tuple[int, int | None]:
    """Where a slice begins and ends, if both are counted from one end."""
    start, stop = 0 if part.start is None else part.start, part.stop
    known = [k for k in (start, stop) if k is not None]
    if part.step not in (None, 1) or not all(isinstance(k, int) and not isinstance(k, bool) for k in known) or (
            stop is not None and (start < 0) != (stop < 0) and start != 0):
        b.fail("E328", "the slice of np.delete has numbers that are known when the body is compiled, no step, and both "
               "ends counted from one side", "np.concatenate of the parts that remain")
    return start, stop if stop is None or start == 0 or stop >= start else start


def rows_of(b: Builder, parts: Any) -> Array:
    """`np.r_[a, 0, b]`: arrays and numbers one after the other along the first axis."""
    return concatenate(b, _listed(b, parts, "np.r_"), 0)


def columns_of(b: Builder, parts: Any) -> Array:
    """`np.c_[a, b]`: as columns."""
    return column_stack(b, _listed(b, parts, "np.c_"))


def _listed(b: Builder, parts: Any, what: str) -> list[Array]:
    given = parts if isinstance(parts, tuple) else (parts,)
    if any(isinstance(part, slice | str) for part in given):
        b.fail("E327", f"{what} with a slice or a text is not supported yet", "np.arange and np.concatenate are")
    return [_of_rank(b, _array(b, part, what), 1, before=True) for part in given]


def in_order(b: Builder, x: Array, order: str) -> Array:
    """The array, for a function that reads its elements in C order; for one in Fortran order with its axes reversed."""
    if order not in ("C", "F", "A", "K"):
        b.fail("E322", f"there is no order '{order}'", "there are 'C' and 'F'")
    return transpose(b, x) if order == "F" else x

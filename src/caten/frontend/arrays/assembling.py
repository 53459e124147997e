"""Arrays made of several: `np.column_stack`, `np.dstack`, `np.block`, `np.append`, `np.insert`, `np.r_`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    if not isinstance(at, int) or isinstance(at, bool):
        b.fail("E326", "the index of np.insert is one number that is known when the body is compiled")
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    new = moveaxis(b, _of_rank(b, b.array(converted(b, x.dtype, values)), x.rank, before=True), 0, place)
    new = broadcast_to(b, new, tuple([new.shape[n] if n == place else extent for n, extent in enumerate(x.shape)]))
    whole = [slice(None)] * place
    before = [] if at == 0 else [select(b, x, (*whole, slice(None, at)))]
    return concatenate(b, [*before, new, select(b, x, (*whole, slice(at, None)))], place)


def delete(b: Builder, x: Array, at: Any, axis: Any) -> Array:
    """Without the element, or the slice, at one index; without an axis the elements as one axis."""
    if not isinstance(at, int) or isinstance(at, bool):
        b.fail("E328", "which elements np.delete leaves out is known when the body is compiled: one number")
    if axis is None:
        x, axis = ravel(b, x), 0
    place = axis_of(b, axis, x.rank)
    whole = [slice(None)] * place
    select(b, x, (*whole, at))                             # the index has to be inside
    after = [] if at == -1 else [select(b, x, (*whole, slice(at + 1, None)))]
    before = [] if at == 0 else [select(b, x, (*whole, slice(None, at)))]
    return concatenate(b, [*before, *after], place)


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

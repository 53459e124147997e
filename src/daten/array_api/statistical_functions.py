"""Statistics, searching, sorting and sets.

`axis` is an axis, a tuple of axes, or None for all; `keepdims` keeps reduced axes, with extent 1. Results whose shape
depends on values are computed immediately."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ..element_types import DType
from ..tensor import Tensor, one
from .creation_functions import full
from .data_types import bool as bool_
from .data_types import int64, isdtype, result_type, uint64
from .manipulation import broadcast_to, concat

UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])
Axis = int | tuple[int, ...] | None


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes. Integers and bools are added in 64 bits, unless `dtype` is given."""
    made = _reduced("sum", x.astype(dtype or _wide(x.dtype)), axis, keepdims)
    return made if dtype is None else made.astype(dtype)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes. Integers and bools are multiplied in 64 bits, unless `dtype` is given."""
    made = _reduced("prod", x.astype(dtype or _wide(x.dtype)), axis, keepdims)
    return made if dtype is None else made.astype(dtype)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean along axes."""
    return _reduced("mean", x, axis, keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element along axes. ValueError if there are no elements."""
    return _reduced("max", _of_some(x, axis), axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes. ValueError if there are no elements."""
    return _reduced("min", _of_some(x, axis), axis, keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes: the sum of squared deviations from the mean, divided by n - `correction`."""
    apart = x - mean(x, axis=axis, keepdims=True)
    return sum(apart * apart, axis=axis, keepdims=keepdims) / (_count(x, axis) - correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes, the square root of `var`. Its gradient is 0 where it is 0."""
    variance = var(x, axis=axis, correction=correction, keepdims=keepdims)
    is_0 = variance == 0
    return one("where", is_0, variance, one("sqrt", one("where", is_0, 1, variance)))


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """True if all elements along axes are true or nonzero."""
    return _reduced("all", x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """True if any element along axes is true or nonzero."""
    return _reduced("any", x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements along axes, an int64."""
    return _reduced("count_nonzero", x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis, the first one if there are several; without `axis`, in the
    flattened array. ValueError if there are no elements."""
    return _reduced("argmax", _of_some(x, axis), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis, the first one if there are several; without `axis`, in the
    flattened array. ValueError if there are no elements."""
    return _reduced("argmin", _of_some(x, axis), axis, keepdims)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Tensor:
    """The cumulative sum along an axis, in 64 bits for integers unless `dtype` is given. `include_initial`: a 0 comes
    first. ValueError if `axis` is None and x has several axes."""
    return _scanned("cumsum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Tensor:
    """The cumulative product along an axis, in 64 bits for integers unless `dtype` is given. `include_initial`: a 1
    comes first. ValueError if `axis` is None and x has several axes."""
    return _scanned("cumprod", x, axis, dtype, include_initial, 1)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbouring elements along an axis. `prepend`, `append`: arrays to join to x before."""
    made = concat([part for part in (prepend, x, append) if part is not None], axis=axis)
    at = axis % x.ndim
    for _ in range(n):
        after, before = (slice(1, None), slice(None, -1)) if made.shape[at] else (slice(None), slice(None))
        made = made[(*[slice(None)] * at, after)] - made[(*[slice(None)] * at, before)]
    return made


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """The elements of x1 where the condition is true, and of x2 elsewhere."""
    dtype = result_type(x1, x2)
    return one("where", condition, *[v.astype(dtype) if isinstance(v, Tensor) else Tensor(np.asarray(v), dtype)
                                           for v in (x1, x2)])


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices at which the elements of x2 can be inserted into the sorted vector x1: before equal elements with
    side="left", after them with "right". `sorter`: the indices that sort x1, if it is not sorted."""
    dtype = result_type(x1, x2)
    line = x1 if sorter is None else x1[sorter]
    return one("searchsorted", line.astype(dtype), x2.astype(dtype), right=side == "right")


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements sorted along an axis, in ascending order unless `descending`."""
    return one("sort", x, axis=axis, descending=descending)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the elements along an axis. The sort is stable: equal elements keep their order."""
    return one("argsort", x, axis=axis, descending=descending)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements of x at `indices`, a vector, along an axis; axis 0 without `axis`."""
    return one("take", x, indices, axis=0 if axis is None else axis % x.ndim)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of x at `indices` along an axis: for each position of `indices`, one element of x."""
    at = axis % x.ndim
    others = np.broadcast_shapes(*[(*a.shape[:at], 1, *a.shape[at + 1:]) for a in (x, indices)])
    given = [broadcast_to(a, (*others[:at], a.shape[at], *others[at + 1:])) for a in (x, indices)]
    return one("take_along_axis", *given, axis=at)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements: one int64 vector for each axis. ValueError for an array without axes."""
    if not x.ndim:
        raise ValueError("an array without axes has no positions")
    return tuple([Tensor(p.astype(np.int64)) for p in np.nonzero(x.numpy())])


def unique_all(x: Tensor, /) -> Any:
    """The unique elements in ascending order, the index of the first occurrence of each in the flattened array, for
    each element of x the index of its unique element, and the number of occurrences. Each NaN is unique."""
    array = x.numpy().reshape(-1)
    values, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True,
                                               equal_nan=False)
    return UniqueAll(Tensor(values), Tensor(first.astype(np.int64)),
                     Tensor(inverse.reshape(x.shape).astype(np.int64)), Tensor(counts.astype(np.int64)))


def unique_counts(x: Tensor, /) -> Any:
    """The unique elements in ascending order, and the number of occurrences of each."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> Any:
    """The unique elements in ascending order, and for each element of x the index of its unique element."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The unique elements in ascending order."""
    values: Tensor = unique_all(x).values
    return values


def _reduced(name: str, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    if axis == ():
        return Tensor(x) if name not in ("all", "any") else x.astype(bool_)
    return one(name, x, axis=axis, keepdims=keepdims)


def _scanned(name: str, x: Tensor, axis: int | None, dtype: Any, include_initial: bool, initial: int) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name} of {x!r}: name an axis")
        axis = 0
    given = x.astype(dtype or _wide(x.dtype))
    given = given.reshape(1) if not given.ndim else given
    made = one(name, given, axis=axis)
    if not include_initial:
        return made.astype(dtype or _wide(x.dtype))
    at = axis % made.ndim
    return concat([full((*made.shape[:at], 1, *made.shape[at + 1:]), initial, dtype=made.dtype), made], axis=at)


def _wide(dtype: DType) -> DType:
    """The type in which elements are added: int64 or uint64 for integers and bools."""
    return int64 if dtype == bool_ or isdtype(dtype, "signed integer") else uint64 if isdtype(
        dtype, "unsigned integer") else dtype


def _count(x: Tensor, axis: Axis) -> int:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return int(np.prod([x.shape[a] for a in axes]))


def _of_some(x: Tensor, axis: Axis) -> Tensor:
    if not _count(x, axis) and axis != ():
        raise ValueError(f"{x!r} has no elements of which one is the greatest or least")
    return x


__all__ = ["all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff",
           "max", "mean", "min", "nonzero", "prod", "searchsorted", "sort", "std", "sum", "take", "take_along_axis",
           "unique_all", "unique_counts", "unique_inverse", "unique_values", "var", "where"]

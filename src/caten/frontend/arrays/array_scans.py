"""Running totals: `np.cumsum`, `np.cumulative_sum`, `np.cumprod`, `np.maximum.accumulate`."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import computed, is_short
from ...core.expr import TRUE, Cast, number
from ...tensor.values import Scan
from ..typing import Value
from .array_reductions import dtype_of_total
from .axis_arguments import axis_of
from .builder import Builder
from .handles import ONE, Array, spelled
from .joining import concatenate
from .reshaping import ravel


def scanned(b: Builder, fn: str, x: Array, axis: Any, dtype: str | None = None) -> Array:
    """Element k along the axis combines the elements 0 … k of x, perhaps converted to `dtype`. 16-bit floats are
    accumulated in float32, and each result is rounded once."""
    place = axis_of(b, axis, x.rank)
    axes, indices = b.axes(x.shape)
    element = x.at(indices)
    term = Value(dtype or x.dtype, b.pos, expr=element if dtype in (None, x.dtype) else Cast(dtype, element))
    stored = b.typing.storage(term.kind)
    fn = b.typing.monoid(fn, stored)
    b.typing.apply(fn, [term, term], b.pos)                     # E304 if it is not defined on the type
    expr = b.typing.settle_wide(term, stored, "this running total")
    made = Array(b.define(Scan(computed(stored), axes, axes[place].name, fn, "inclusive", "up", TRUE, expr)),
                 computed(stored), x.shape)
    return b.compute(x.shape, lambda i: Cast(stored, made.at(i))) if is_short(stored) else made


def running_total(b: Builder, fn: str, x: Array, axis: Any, dtype: str | None) -> Array:
    """`cumsum` and `cumprod`: along an axis, or of all elements in order."""
    if axis is None:
        x, axis = ravel(b, x), 0
    return scanned(b, fn, x, axis, dtype_of_total(b, x, dtype))


def cumulative(b: Builder, fn: str, x: Array, axis: Any, dtype: str | None, include_initial: bool) -> Array:
    """`np.cumulative_sum` and `np.cumulative_prod`: the axis may be left out of arrays of one. `include_initial`: with
    the total of no elements, 0 or 1, in front."""
    if axis is None and x.rank != 1:
        b.fail("E321", f"an array of the shape {spelled(x.shape)} needs the axis of its running totals", "axis=…")
    place = axis_of(b, 0 if axis is None else axis, x.rank)
    made = running_total(b, fn, x, place, dtype)
    if not include_initial:
        return made
    first = [ONE if n == place else extent for n, extent in enumerate(x.shape)]
    return concatenate(b, [b.compute(first, lambda _: number(int(fn == "mul"), made.dtype)), made], place)

"""Running totals: `np.cumsum`, `np.cumulative_sum`, `np.cumprod`, `np.maximum.accumulate`; and totals of parts of an
axis: `np.add.reduceat`."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import computed, is_short
from ...core.expr import TRUE, Cast, Expr, Op, number
from ...loop.affine import canonical
from ...tensor.values import Inside, Scan
from ..typing import Value
from .argument_binding import as_array
from .array_reductions import dtype_of_total
from .axis_arguments import axis_of
from .builder import Builder
from .handles import ONE, Array, Indices, is_whole, spelled, spelled_extent
from .joining import concatenate
from .reshaping import ravel
from .views import moveaxis


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


def reduced_at(b: Builder, fn: str, x: Array, written: Any, axis: Any, dtype: str | None) -> Array:
    """The elements from one index to before the next one, or to the end, combined; the element at an index alone if the
    next one is not above it. For indices in an array each result looks at the whole axis."""
    place = axis_of(b, axis, x.rank)
    dtype = dtype_of_total(b, x, dtype) if fn in ("add", "mul") else dtype
    starts = as_array(b, written)
    if starts is None or starts.rank != 1 or not is_whole(starts.dtype):
        b.fail("E322", "the indices of a reduceat are integers along one axis", "np.add.reduceat(x, [0, 4, 8])")
    extent, count = x.shape[place], starts.shape[0]
    z, last = moveaxis(b, x, place, -1), canonical(count - 1)
    row = b.check(f"an index of a reduceat is outside [0, {spelled_extent(extent)})", b.pos)

    def start(k: Expr) -> Expr:
        found = starts.at((k,))
        return Inside(found if starts.dtype == "i64" else Cast("i64", found), extent, row)

    first = b.compute((count,), lambda i: start(i[0]))
    ends = b.compute((count,), lambda i: Op("where", (Op("lt", (i[0], last)), first.at((Op("min", (
        canonical(i[0] + 1), last)),)), extent)))

    def element(outer: Indices, inner: Indices) -> Value:
        expr = z.at((*outer[:-1], *inner))
        return Value(dtype or x.dtype, b.pos, expr=expr if dtype in (None, x.dtype) else Cast(dtype, expr))

    def holds(outer: Indices, inner: Indices) -> Expr:
        begin, end, (at,) = first.at(outer[-1:]), ends.at(outer[-1:]), inner
        return Op("or", (Op("eq", (at, begin)), Op("and", (Op("lt", (begin, at)), Op("lt", (at, end))))))

    made = b.reduce(fn, (*z.shape[:-1], count), (extent,), element, "this reduction", holds)
    return moveaxis(b, made, -1, place)

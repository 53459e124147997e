"""Accumulation at the indices of an array: `np.add.at(Z, index, values)`, `np.bincount`."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import computed
from ...core.expr import TRUE, Cast, Expr, number
from ...core.monoids import is_monoid
from ...tensor.values import Inside, Scatter
from ..typing import Value, spell
from .builder import Builder
from .handles import Array, Operand, is_whole, shape_of, spelled, spelled_extent
from .selection import gathered
from .subscripts import Gathered, Listed, Masked, items_of

# The functions of numpy with `.at`, and how they combine.
AT: dict[str, str] = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "bitwise_and": "and",
                      "bitwise_or": "or", "bitwise_xor": "xor"}


def accumulate_at(b: Builder, fn: str, old: Array, written: Any, value: Operand) -> Array:
    """The array after `np.add.at(old, written, value)`: an element takes all values that its indices name. Types that
    are for storage only are accumulated in float32, as in sums, and rounded once."""
    items = items_of(b, old, written)
    if any(isinstance(item, Masked) for item in items) or not any(isinstance(i, Gathered | Listed) for i in items):
        b.fail("E327", "only indices in an array are supported here yet", "Z[a:b] += value adds to a range")
    fn = b.typing.monoid(fn, old.dtype)
    if not is_monoid(fn, old.dtype):
        b.fail("E304", f"elements of {spell(old.dtype)} cannot be combined in this way")
    shape, index_map = gathered(b, old, items, written)
    common = b.broadcast(shape, shape_of(value))
    if len(common) != len(shape) or any(x is not y for x, y in zip(shape, common, strict=True)):
        b.fail("E320", f"a value of the shape {spelled(shape_of(value))} does not fit into {spelled(shape)}")
    axes, indices = b.axes(shape)
    expr = b.typing.stored(b.broadcast_term(value, indices, shape), old.dtype, "this array")
    wide = computed(old.dtype)
    source = old if wide == old.dtype else b.compute(old.shape, lambda at: Cast(wide, old.at(at)))
    made = Array(b.define(Scatter(wide, source.name, old.shape, axes, fn, tuple(index_map(indices)), TRUE,
                                  expr if wide == old.dtype else Cast(wide, expr))), wide, old.shape)
    return made if wide == old.dtype else b.compute(old.shape, lambda at: Cast(old.dtype, made.at(at)))


def bincount(b: Builder, x: Array, weights: Array | None, minlength: Expr | None) -> Array:
    """How often each number from 0 to `minlength` - 1 occurs, or the sum of its weights in float64. Other numbers make
    the call fail: numpy would return more bins."""
    if minlength is None:
        b.fail("E328", "how many bins np.bincount makes is not known before the call",
               "np.bincount(x, minlength=N) has N bins, and larger elements of x make the call fail")
    if x.rank != 1 or not is_whole(x.dtype):
        b.fail("E322", f"np.bincount takes integers along one axis, not {spell(x.dtype)}{spelled(x.shape)}")
    if weights is not None:
        b.same_shape(weights.shape, x.shape, "the array that np.bincount counts")
    dtype = "i64" if weights is None else "f64"
    zeros = b.compute((minlength,), lambda _: number(0, dtype))
    axes, indices = b.axes(x.shape)
    at = x.at(indices)
    row = b.check(f"a number that np.bincount counts is outside [0, {spelled_extent(minlength)})", b.pos)
    bin_ = Inside(at if x.dtype == "i64" else Cast("i64", at), minlength, row)
    one: Expr = number(1, dtype)
    if weights is not None:
        expr = weights.at(indices)
        one = expr if weights.dtype == dtype else b.typing.settle(
            Value(dtype, b.pos, expr=Cast(dtype, expr)), dtype, "a weight")
    return Array(b.define(Scatter(dtype, zeros.name, (minlength,), axes, "add", (bin_,), TRUE, one)), dtype,
                 (minlength,))

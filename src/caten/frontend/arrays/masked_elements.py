"""`x[mask]`: the elements that a mask selects.

How many there are is not known before the call, so they stay at their places: arithmetic is on all elements, sums leave
out those that are not selected, and `y[mask] = …` stores only them.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_float
from ...core.expr import Expr, Var
from ...tensor.index_maps import element
from ...tensor.values import Compute, Read
from . import array_reductions
from .argument_binding import Function, call, refuse_selected
from .builder import Builder
from .elementwise_functions import apply, choose, converted, term_of, truth
from .handles import Array, Operand, Selected, is_whole

MOST_NODES = 500                # of two masks that are compared


def any_selected(*values: Any) -> bool:
    return any(isinstance(value, Selected) for value in values)


def lifted(b: Builder, make: Callable[..., Any], *values: Any) -> Selected:
    """The same operation on the whole arrays. E328 for arrays and for the elements of other masks."""
    (first, *others) = [value for value in values if isinstance(value, Selected)]
    for other in others:
        check_mask(b, first.mask, other.mask)
    for value in values:
        if isinstance(value, Array) and value.rank:
            refuse_selected(b)
    made = term_of(make(*[value.array if isinstance(value, Selected) else value for value in values]), b.pos)
    assert made is not None
    return Selected(b.array(made), first.mask)


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


def count(b: Builder, x: Selected) -> Array:
    """How many elements are selected."""
    return array_reductions.total(b, "add", x.mask, None, None, False)


def called(b: Builder, function: Function, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A function or method of selected elements."""
    name = function.name.removeprefix("np.").removeprefix(".")
    if name in REDUCTIONS and isinstance(args[0], Selected) and len(args) == 1 and keywords.keys() <= {"axis", "ddof"}:
        if keywords.get("axis") not in (None, 0, -1):
            b.fail("E321", "the elements that a mask selects have one axis")
        return REDUCTIONS[name](b, args[0], **({"ddof": keywords["ddof"]} if "ddof" in keywords else {}))
    if name not in ELEMENTWISE:
        refuse_selected(b)
    return lifted(b, lambda *values: call(b, function, values, keywords), *args)


def _with(b: Builder, x: Selected, other: float | int) -> Array:
    """The array with a number where the mask is not true."""
    rest = term_of(other, b.pos)
    assert rest is not None
    return b.array(choose(b, x.mask, x.array, rest))


def _total(fn: str, neutral: int) -> Callable[..., Operand]:
    return lambda b, x: array_reductions.total(b, fn, _with(b, x, neutral), None, None, False)


def _extreme(fn: str) -> Callable[..., Operand]:
    def make(b: Builder, x: Selected) -> Operand:
        row = DTYPES[x.dtype]
        worst: float | int = -math.inf if fn == "max" else math.inf
        if x.dtype == "bool":
            worst = fn != "max"
        elif is_whole(x.dtype):
            worst = row.least if fn == "max" else row.greatest
        return array_reductions.reduced(b, fn, _with(b, x, worst), None, False)
    return make


def _mean(b: Builder, x: Selected) -> Operand:
    dtype = x.dtype if is_float(x.dtype) or DTYPES[x.dtype].kind == "complex" else "f64"
    total = _total("add", 0)(b, Selected(b.array(converted(b, dtype, x.array)), x.mask))
    return apply(b, "div", total, converted(b, dtype, count(b, x)))


def _variance(b: Builder, x: Selected, ddof: int = 0) -> Operand:
    mean = _mean(b, x)
    apart = lifted(b, lambda v: apply(b, "sub", v, mean), x)
    total = _total("add", 0)(b, lifted(b, lambda v: apply(b, "mul", v, v), apart))
    less = term_of(ddof, b.pos)
    assert less is not None
    return apply(b, "div", total, converted(b, apart.dtype, apply(b, "sub", count(b, x), less)))


def _truth(fn: str) -> Callable[..., Operand]:
    def make(b: Builder, x: Selected) -> Operand:
        outside = x.mask if fn == "or" else b.array(apply(b, "not", x.mask))
        inside = apply(b, "and" if fn == "or" else "or", outside, truth(b, x.array))
        return array_reductions.any_of(b, fn, b.array(inside), None, False)
    return make


REDUCTIONS: dict[str, Callable[..., Operand]] = {
    "sum": _total("add", 0), "prod": _total("mul", 1), "max": _extreme("max"), "amax": _extreme("max"),
    "min": _extreme("min"), "amin": _extreme("min"), "mean": _mean, "var": _variance,
    "std": lambda b, x, ddof=0: apply(b, "sqrt", _variance(b, x, ddof)), "any": _truth("or"), "all": _truth("and"),
    "size": count}
# Functions and methods of single elements.
ELEMENTWISE = frozenset(" ".join((
    "abs fabs sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh floor ceil",
    "trunc rint sign negative positive square reciprocal maximum minimum fmax fmin add subtract multiply divide",
    "true_divide floor_divide mod remainder fmod power float_power isnan isinf isfinite clip round around astype copy",
    "conj conjugate logical_and logical_or logical_not logical_xor where arctan2 hypot real imag")).split())

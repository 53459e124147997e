"""Functions of what a mask selects: `X[mask].mean(axis=0)`, `np.linalg.norm(X[mask], axis=1)`, `X[m].T @ X[m]`.

Reductions over the axis of what is selected leave out the rest; those along other axes are those of the whole array.
"""
from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_complex, is_float
from ..typing import WEAK_FLOAT, Literal
from . import masked_elements
from .argument_binding import Function, call, parameters_of, refuse_selected
from .array_functions import NUMPY
from .array_products import matmul
from .axis_arguments import axes_of
from .builder import Builder
from .elementwise_functions import apply, converted, floating
from .handles import ONE, Array, Operand, Selected, dtype_of, is_one, is_whole
from .masked_elements import any_selected, as_axes, check_mask, filled, in_one_axis, lifted, spread_mask
from .numpy_calls import NumpyOperator, call_numpy, function_at
from .views import broadcast_to, squeeze

Callee = Function | NumpyOperator


def called(b: Builder, function: Callee, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A function or method of what masks select. E328 for one whose result is not known."""
    name = (function.name if isinstance(function, Function) else function.path).removeprefix("np.").removeprefix(".")
    if name in masked_elements.ATTRIBUTES and len(args) == 1:
        return masked_elements.ATTRIBUTES[name](b, args[0])
    if name in ("transpose", "permute_dims"):
        axes = keywords.get("axes", args[1:])
        return masked_elements.transposed(b, args[0], axes[0] if axes and isinstance(axes[0], tuple) else axes or None)
    if name in ("dot", "matmul") and len(args) == 2 and not keywords:
        return _dot(b, name, *args)
    if name in ELEMENTWISE and not any_selected(*keywords.values()):
        return lifted(b, lambda *values: _call(b, function, values, keywords), *args)
    names = _parameters(function)
    given = {**dict(zip(names, args, strict=False)), **keywords}
    x = given.get(next(iter(names), ""))
    if not isinstance(x, Selected) or "axis" not in names or len(args) > len(names):
        refuse_selected(b)
    axis = given.get("axis", names["axis"])
    axes = axes_of(b, axis, x.rank)
    rest = {key: value for key, value in given.items() if value is not x and key != "axis"}
    if x.axis in axes and "where" in names and given.get("where", True) is True:
        return _reduced(b, function, name, x, axes, rest)
    x = in_one_axis(b, x)
    if x.axis not in axes and (name in ALONG or "where" in names) and not any_selected(*rest.values()):
        made = b.array(_call(b, function, [x.array], {**rest, "axis": axis}))
        before = 0 if made.rank == x.array.rank else len([n for n in axes if n < x.axis])
        return Selected(made, x.mask, x.axis - before)
    if x.axis in axes and name == "ptp":
        ends = [called(b, NUMPY[fn], [x], {**rest, "axis": axis}) for fn in ("max", "min")]
        return apply(b, "sub", *ends)
    if x.axis in axes and name == "average" and given.get("weights") is None:
        return _mean(b, function, x, {**rest, "axis": axis})
    if x.axis in axes and name in FILLED:
        return _filled(b, function, name, x, {**rest, "axis": axis})
    if name in BY_NAN:
        b.fail("E328", f"np.{name} orders the elements, and how many a mask selects is not known before the call",
               f"np.{BY_NAN[name]}(np.where(mask, x, np.nan), axis=…) leaves out the others; of rows the mask is "
               "mask[:, None]")
    refuse_selected(b)


def _call(b: Builder, function: Callee, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    return call(b, function, args, keywords) if isinstance(function, Function) else call_numpy(
        b, function, args, keywords)


def _parameters(function: Callee) -> dict[str, Any]:
    """The names of the parameters, each with its default."""
    if isinstance(function, Function):
        return {p.name: p.default for p in parameters_of(function.signature)}
    try:
        return {p.name: p.default for p in inspect.signature(function_at(function.path)).parameters.values()}
    except ValueError:                                      # functions in C tell nothing of their arguments
        return {}


def _reduced(b: Builder, function: Callee, name: str, x: Selected, axes: Sequence[int], options: Mapping[str, Any],
             ) -> Operand:
    """A reduction that NumPy has with `where`."""
    count = x.mask.rank
    real = [at for n in axes for at in (
        range(n, n + count) if n == x.axis else [n if n < x.axis else n + count - 1])]
    first = name.split(".")[0].removeprefix("a")
    if first in ("max", "min", "maximum", "minimum") and options.get("initial") is None:
        options = {**options, "initial": _least(x.dtype, first.startswith("max"))}
    made: Operand = _call(b, function, [x.array], {**options, "axis": tuple(real), "where": spread_mask(b, x)})
    if options.get("keepdims") and count != 1:              # an axis in the place of several
        array = b.array(made)
        made = squeeze(b, array, tuple(range(x.axis + 1, x.axis + count))) if count else as_axes(b, array, x.axis, 1)
    return made


def _least(dtype: str, of_maximum: bool) -> float:
    """What is no greater than any number; or no less."""
    row = DTYPES[dtype]
    if dtype == "bool":
        return not of_maximum
    if is_whole(dtype):
        return row.least if of_maximum else row.greatest
    return -math.inf if of_maximum else math.inf


def _mean(b: Builder, function: Callee, x: Selected, options: Mapping[str, Any]) -> Any:
    """`np.average` without weights: a mean, or with `returned` the average with weights of 1."""
    if options.get("returned"):
        one = converted(b, dtype_of(floating(b, x.array)), Literal(WEAK_FLOAT, b.pos, value=1.0))
        ones = Selected(broadcast_to(b, b.array(one), x.array.shape), x.mask, x.axis)
        return _filled(b, function, "average", x, {**options, "weights": ones})
    return called(b, NUMPY["mean"], [x], {key: options[key] for key in ("axis", "keepdims") if key in options})


def _filled(b: Builder, function: Callee, name: str, x: Selected, options: Mapping[str, Any]) -> Any:
    """A reduction to which a number adds nothing."""
    rest = FILLED[name]
    order = options.get("ord")
    if "norm" in name and isinstance(order, int | float) and order < 0:
        refuse_selected(b)
    if name == "average" and not isinstance(options.get("weights"), Selected):
        b.fail("E328", "np.average of what a mask selects has weights that it selects",
               "np.average(X[mask], axis=0, weights=w[mask])")
    if math.isnan(rest) and not (is_float(x.dtype) or is_complex(x.dtype)):
        return called(b, NUMPY[name.removeprefix("nan")], [x], options)
    for each in options.values():
        if isinstance(each, Selected):
            check_mask(b, in_one_axis(b, each).mask, x.mask)
    return _call(b, function, [filled(b, x, rest)], {
        key: filled(b, in_one_axis(b, value), rest) if isinstance(value, Selected) else value
        for key, value in options.items()})


def _dot(b: Builder, name: str, x: Any, y: Any) -> Any:
    sides = [side if isinstance(side, Selected) else b.array(side) for side in (x, y)]
    if name == "dot" and max(side.rank for side in sides) > 2:
        refuse_selected(b)
    return product(b, *sides)


def product(b: Builder, left: Array | Selected, right: Array | Selected) -> Array | Selected:
    """`left @ right`: sums over what the same mask selects on both sides, or products of what it selects."""
    x, y = [in_one_axis(b, side) if isinstance(side, Selected) else side for side in (left, right)]
    if not x.rank or not y.rank:
        matmul(b, *[side.array if isinstance(side, Selected) else side for side in (x, y)])
    masks = [side.mask for side in (x, y) if isinstance(side, Selected)]
    if len(masks) == 2:
        check_mask(b, *masks)
    over = [isinstance(side, Selected) and side.axis == axis
            for side, axis in ((x, x.rank - 1), (y, max(y.rank - 2, 0)))]
    if over[0] != over[1]:
        b.fail("E328", "this product sums over what a mask selects on one side, and over all on the other one",
               "select from both: X[mask].T @ Y[mask]")
    if isinstance(x, Selected) and isinstance(y, Selected) and over[0]:
        return matmul(b, filled(b, x, 0), filled(b, y, 0))
    places = set()                                          # of what is selected, from the end of the result
    for side, other in ((x, y), (y, x)):
        if isinstance(side, Selected):
            is_batch = side.after > 1
            places.add(side.after - 1 + (other.rank > 1) if is_batch else int(side is x and other.rank > 1))
            if is_batch and other.rank > side.after and not is_one(
                    other.shape[-1 - side.after] if isinstance(other, Array) else ONE):
                refuse_selected(b)
    if len(masks) == 2 and (len(places) > 1 or not all(
            isinstance(side, Selected) and side.after > 1 for side in (x, y))):
        refuse_selected(b)
    made = matmul(b, *[side.array if isinstance(side, Selected) else side for side in (x, y)])
    return Selected(made, masks[0], made.rank - 1 - places.pop())


# Functions and methods of single elements.
ELEMENTWISE = frozenset(" ".join((
    "abs absolute fabs sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh",
    "arcsinh arccosh arctanh floor ceil trunc rint sign negative positive square reciprocal maximum minimum fmax fmin",
    "add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power pow isnan isinf",
    "isfinite isclose clip round around astype copy conj conjugate logical_and logical_or logical_not logical_xor",
    "bitwise_and bitwise_or bitwise_xor where arctan2 hypot real imag deg2rad rad2deg degrees radians sinc heaviside",
    "copysign logaddexp logaddexp2 nan_to_num signbit equal not_equal less less_equal greater greater_equal")).split())
# Functions along axes that may be others than that of what is selected: its axis stays, or moves up.
ALONG = frozenset(" ".join((
    "argmax argmin cumsum cumprod flip roll sort argsort diff median quantile percentile ptp count_nonzero average",
    "nanmedian nansum nanprod nanmax nanmin nanmean nanvar nanstd linalg.norm linalg.vector_norm logsumexp")).split())
# Reductions to which such a number adds nothing.
FILLED: dict[str, float] = {
    "linalg.norm": 0, "linalg.vector_norm": 0, "count_nonzero": 0, "average": 0,
    **dict.fromkeys(("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"), math.nan)}
# Functions of elements in order, and those that leave out NaN.
BY_NAN = {"median": "nanmedian", "quantile": "nanquantile", "percentile": "nanpercentile"}
# Python's functions of one axis, or of single elements.
OF_PYTHON: dict[str, Function] = {"sum": NUMPY["sum"], "max": NUMPY["max"], "min": NUMPY["min"], "abs": NUMPY["abs"],
                                  "pow": NUMPY["power"], "round": NUMPY["round"]}

"""Reductions: `x.sum(axis=…)`, `np.max`, `mean`, `var`, `any`, `logsumexp`, `np.linalg.norm`."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_complex, is_float, is_integer
from ...core.expr import Cast, Expr, Op
from ...loop.affine import canonical
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Term, Value, widened
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .elementwise_functions import apply, choose, converted, scalar, truth
from .handles import ONE, ZERO, Array, Indices, Operand, product_of, size_term, spelled
from .numpy_promotion import ON_BOOLS
from .views import expand_dims, squeeze

Element = Callable[[Term], Term]


def reduced(b: Builder, fn: str, x: Array, axis: Any, keepdims: bool, dtype: str | None = None) -> Array:
    """The elements of x, perhaps converted to `dtype`, combined along axes."""
    axes = tuple(sorted(axes_of(b, axis, x.rank)))
    kept = [n for n in range(x.rank) if n not in axes]

    def element(outer: Indices, inner: Indices) -> Term:
        expr = x.at(_joined(kept, outer, axes, inner))
        return Value(dtype or x.dtype, b.pos, expr=expr if dtype in (None, x.dtype) else Cast(dtype, expr))

    made = x if not axes else b.reduce(fn, [x.shape[n] for n in kept], [x.shape[n] for n in axes], element,
                                       "this reduction")
    return keep(b, made, axes) if keepdims else made


def _joined(kept: Sequence[int], outer: Indices, axes: Sequence[int], inner: Indices) -> list[Expr]:
    """The index of an element by its kept and its reduced axes."""
    at = dict(zip((*kept, *axes), (*outer, *inner), strict=True))
    return [at[n] for n in range(len(at))]


def keep(b: Builder, x: Array, axes: Sequence[int]) -> Array:
    """With an axis of extent 1 in the place of each reduced one."""
    return expand_dims(b, x, tuple(axes)) if axes else x


def total(b: Builder, fn: str, x: Array, axis: Any, dtype: str | None, keepdims: bool) -> Array:
    """`sum` and `prod`: in numpy bodies small integers are added in 64 bits."""
    return reduced(b, fn, x, axis, keepdims, dtype_of_total(b, x, dtype))


def dtype_of_total(b: Builder, x: Array, dtype: str | None) -> str | None:
    """The type of sums and products where none is given."""
    row = DTYPES[x.dtype]
    if dtype is None and b.lang == "python" and row.kind in ("int", "bool", "uint"):
        return "u64" if row.kind == "uint" else "i64"
    return dtype


def sum_to_shape(b: Builder, x: Array, shape: tuple[Expr, ...]) -> Array:
    """The gradient with respect to an array of that shape, which was broadcast to that of x: the sum over the axes
    along which it was repeated. E320 if it cannot be."""
    new = x.rank - len(shape)
    if new < 0:
        b.fail("E320", f"{spelled(x.shape)} is no array of the shape {spelled(shape)} that was broadcast")
    once = [n for n, extent in enumerate(shape) if extent is ONE and x.shape[new + n] is not ONE]
    for n, extent in enumerate(shape):
        if n not in once and b.same_extent(x.shape[new + n], extent) is None:
            b.fail("E320", f"{spelled(x.shape)} is no array of the shape {spelled(shape)} that was broadcast")
    kept = reduced(b, "add", x, tuple([new + n for n in once]), True) if once else x
    return reduced(b, "add", kept, tuple(range(new)), False) if new else kept


def any_of(b: Builder, fn: str, x: Array, axis: Any, keepdims: bool) -> Array:
    """`any` (or) and `all` (and)."""
    return reduced(b, fn, b.array(truth(b, x)), axis, keepdims)


def position(b: Builder, fn: str, x: Array, axis: Any, keepdims: bool) -> Array:
    """`argmax` and `argmin`: the index of the first greatest or least element along one axis, or in the flattened
    array; of the first NaN, if there is any. Two reductions: the extreme, then the least index where it is. A call
    with an empty axis is refused, as in numpy."""
    axes = tuple(range(x.rank)) if axis is None else (axis_of(b, axis, x.rank),)
    kept = [n for n in range(x.rank) if n not in axes]
    for n in axes:
        b.require(x.shape[n] > ZERO, "E321", f"axis {n} is empty: no element is the {fn}imum")
    top = reduced(b, ON_BOOLS[fn] if x.dtype == "bool" else fn, x, axes, False)

    def index(outer: Indices, inner: Indices) -> Term:
        flat: Expr = ZERO
        for n, at in zip(axes, inner, strict=True):
            flat = flat * x.shape[n] + at
        return Value("i64", b.pos, expr=canonical(flat))

    def is_extreme(outer: Indices, inner: Indices) -> Expr:
        element = widened(x.at(_joined(kept, outer, axes, inner)))
        found = Op("eq", (element, widened(top.at(outer))))
        return Op("or", (found, Op("isnan", (element,)))) if is_float(x.dtype) else found

    shape, over = ([x.shape[n] for n in ns] for ns in (kept, axes))
    made = b.reduce("min", shape, over, index, "this index", is_extreme) if axes else b.compute((), lambda _: ZERO)
    return keep(b, made, axes) if keepdims else made


def mean(b: Builder, x: Array, axis: Any, dtype: str | None, keepdims: bool) -> Operand:
    """The sum divided by the number of elements; of integers in float64."""
    if dtype is None and (is_integer(x.dtype) or x.dtype == "bool"):
        dtype = "f64"
    return apply(b, "div", reduced(b, "add", x, axis, keepdims, dtype), _count(b, x, axis))


def var(b: Builder, x: Array, axis: Any, dtype: str | None, ddof: int, keepdims: bool,
        center: Operand | None = None) -> Operand:
    """The mean square of the differences from the mean (two passes), of complex numbers of their magnitudes. `center`:
    a mean that is known."""
    if dtype is None and (is_integer(x.dtype) or x.dtype == "bool"):
        dtype = "f64"
    if dtype is not None:
        x = b.array(converted(b, dtype, x))
    difference = apply(b, "sub", x, mean(b, x, axis, None, True) if center is None else center)
    return apply(b, "div", reduced(b, "add", square_of(b, difference), axis, keepdims),
                 freedom(b, _count(b, x, axis), ddof))


def square_of(b: Builder, x: Operand) -> Array:
    """|x|²"""
    if is_complex(b.array(x).dtype):
        real, imaginary = apply(b, "real", x), apply(b, "imag", x)
        return b.array(apply(b, "add", apply(b, "mul", real, real), apply(b, "mul", imaginary, imaginary)))
    return b.array(apply(b, "mul", x, x))


def freedom(b: Builder, count: Operand, ddof: int) -> Operand:
    """A number of elements less `ddof`, and not below 0."""
    if not ddof:
        return count
    return apply(b, "max", apply(b, "sub", count, Literal(WEAK_INT, b.pos, value=ddof)), Literal(
        WEAK_INT, b.pos, value=0))


def _count(b: Builder, x: Array, axis: Any) -> Operand:
    count = product_of([x.shape[n] for n in axes_of(b, axis, x.rank)])
    return scalar(b, size_term(count, b.pos))


def logsumexp(b: Builder, x: Array, axis: Any, keepdims: bool) -> Operand:
    """log Σ e^x, with the maximum taken out so that nothing overflows; an infinite maximum is the result."""
    top, greatest = (reduced(b, "max", x, axis, kept) for kept in (True, False))
    powers = b.array(apply(b, "exp", apply(b, "sub", x, top)))
    whole = apply(b, "add", apply(b, "log", reduced(b, "add", powers, axis, False)), greatest)
    whole = choose(b, apply(b, "isinf", greatest), greatest, whole)
    return keep(b, b.array(whole), sorted(axes_of(b, axis, x.rank))) if keepdims else whole


def norm(b: Builder, x: Array, order: Any, axis: Any, keepdims: bool) -> Operand:
    """`np.linalg.norm`: of a vector (Σ |x|^p)^(1/p), the greatest (inf) or least (-inf) |x|, or how many are not 0 (0);
    of a matrix the root of the sum of squares ("fro"), the greatest or least sum of a column (1, -1) or of a row (inf,
    -inf). Without an order, the root of the sum of the squares of all elements."""
    x, axes = _real(b, x), axes_of(b, axis, x.rank)
    if order is None or (order == "fro" and len(axes) == 2) or (order == 2 and len(axes) == 1):
        return apply(b, "sqrt", reduced(b, "add", b.array(apply(b, "mul", x, x)), axis, keepdims))
    if len(axes) == 1 and isinstance(order, int | float):
        return _norm_of_vectors(b, x, float(order), axes, keepdims)
    if len(axes) == 2 and order in (1, -1, math.inf, -math.inf):
        summed, kept = axes if order in (1, -1) else axes[::-1]
        sums = reduced(b, "add", b.array(apply(b, "abs", x)), summed, True)
        made = reduced(b, "max" if order > 0 else "min", sums, kept, True)
        return made if keepdims else squeeze(b, made, axes)
    if len(axes) == 2 and order in (2, -2, "nuc"):
        b.fail("E327", f"the norm {order} of a matrix is one of its singular values",
               "np.linalg.svd(x, compute_uv=False) gives them")
    b.fail("E322", f"there is no norm {order!r} along {len(axes)} {'axis' if len(axes) == 1 else 'axes'}",
           "1 axis: a number; 2 axes: 1, -1, 2, -2, np.inf, -np.inf, 'fro', 'nuc'")


def _real(b: Builder, x: Array) -> Array:
    """Integers as float64, and the magnitudes of complex numbers."""
    if is_integer(x.dtype) or x.dtype == "bool":
        return b.array(converted(b, "f64", x))
    return b.array(apply(b, "abs", x)) if is_complex(x.dtype) else x


def _norm_of_vectors(b: Builder, x: Array, order: float, axis: Any, keepdims: bool) -> Operand:
    def number(value: float) -> Literal:
        return Literal(WEAK_FLOAT, b.pos, value=value)
    if order == 0:
        nonzero = apply(b, "ne", x, number(0.0))
        return reduced(b, "add", b.array(converted(b, x.dtype, nonzero)), axis, keepdims)
    sizes = b.array(apply(b, "abs", x))
    if math.isinf(order):
        return reduced(b, "max" if order > 0 else "min", sizes, axis, keepdims)
    powers = sizes if order == 1 else b.array(apply(b, "pow", sizes, number(order)))
    total = reduced(b, "add", powers, axis, keepdims)
    return total if order == 1 else apply(b, "pow", total, number(1 / order))


def vector_norm(b: Builder, x: Array, axis: Any, keepdims: bool, order: Any) -> Operand:
    """`np.linalg.vector_norm`: of all elements, or along one axis or several, which count as one vector."""
    if not isinstance(order, int | float):
        b.fail("E322", f"there is no norm {order!r} of vectors", "ord=2, or another number")
    x, axes = _real(b, x), axes_of(b, axis, x.rank)
    if order == 2:
        return apply(b, "sqrt", reduced(b, "add", b.array(apply(b, "mul", x, x)), axes, keepdims))
    return _norm_of_vectors(b, x, float(order), axes, keepdims)


def matrix_norm(b: Builder, x: Array, keepdims: bool, order: Any) -> Operand:
    """`np.linalg.matrix_norm`: of the matrices along the last two axes."""
    return norm(b, x, order, (-2, -1), keepdims)

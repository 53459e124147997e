"""Functions of NumPy that are made of operators of the library and other functions: `np.nanstd`, `np.percentile` of
several shares, `np.gradient`, `np.trapezoid`, windows of signals."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.expr import Cast, Expr, Op, index
from ...loop.affine import canonical
from ..typing import WEAK_FLOAT, Literal
from .argument_binding import as_array, described
from .array_reductions import keep, mean, total
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .elementwise_functions import apply, choose, converted, term_of
from .fourier import FOURIER, Numpy
from .handles import ONE, Array, Operand, product_of, shape_of, size_term, spelled
from .joining import concatenate, stack
from .reshaping import ravel, reshape
from .selection import select
from .size_facts import floor_quotient
from .views import broadcast_to, expand_dims, moveaxis


def _along_one(name: str) -> Callable[..., Operand]:
    """A function of one axis along several, which become one; without an axis along all."""
    def made(numpy: Numpy, b: Builder, x: Array, axis: Any, keepdims: bool, **options: Any) -> Operand:
        axes = sorted(axes_of(b, axis, x.rank))
        found = numpy(b, name, _joined(b, x, axes), axis=-1, **options)
        return keep(b, b.array(found), axes) if keepdims else found
    return made


def _nanvar(numpy: Numpy, b: Builder, x: Array, axis: Any, ddof: int, keepdims: bool) -> Operand:
    return _along_one("nanvar")(numpy, b, _floating(b, x), axis, keepdims, ddof=ddof)


def _nanstd(numpy: Numpy, b: Builder, *given: Any) -> Operand:
    return apply(b, "sqrt", _nanvar(numpy, b, *given))


def _joined(b: Builder, x: Array, axes: Sequence[int]) -> Array:
    """With some of its axes as one, the last."""
    if len(axes) == 1:
        return moveaxis(b, x, axes[0], -1)
    kept = [extent for n, extent in enumerate(x.shape) if n not in axes]
    last = tuple(range(-len(axes), 0))
    return reshape(b, moveaxis(b, x, tuple(axes), last), (*kept, product_of([x.shape[n] for n in axes])))


def _quantile(name: str, whole: int) -> Callable[..., Operand]:
    """Of one share, or of several along a new first axis. `whole`: what all elements are, 1 or 100."""
    def made(numpy: Numpy, b: Builder, x: Array, q: Any, axis: Any, method: str,
             keepdims: bool) -> Operand:
        if method != "linear":
            b.fail("E327", f"np.{name} with the method '{method}' is not supported yet", "'linear' is")
        if isinstance(q, tuple | list):
            return stack(b, [b.array(made(numpy, b, x, each, axis, method, keepdims)) for each in q])
        if not isinstance(q, int | float) or isinstance(q, bool):
            b.fail("E327", f"the shares of np.{name} are numbers that are known when the body is compiled",
                   "np.sort, and np.interp at the places of the shares, computes others")
        if not 0 <= q <= whole:
            b.fail("E326", f"the shares of np.{name} are between 0 and {whole}, and not {q}")
        return _along_one(QUANTILES[name])(numpy, b, x, axis, keepdims, q=float(q) / whole)
    return made


QUANTILES = {"quantile": "quantile", "percentile": "quantile", "nanquantile": "nanquantile",
             "nanpercentile": "nanquantile"}


def _gradient(numpy: Numpy, b: Builder, x: Array, spacing: tuple[Any, ...], axis: Any) -> Any:
    """Along one axis; along several, or (None) all of more than one, a list."""
    axes = axes_of(b, axis, x.rank)
    gaps = list(spacing) * len(axes) if len(spacing) == 1 else [*spacing] or [1.0] * len(axes)
    operands = [term_of(gap, b.pos) for gap in gaps]
    if len(gaps) != len(axes) or any(gap is None or shape_of(gap) for gap in operands):
        b.fail("E327", "the distances of np.gradient are one number, or one for each axis")
    made = [_slope(b, _floating(b, x), gap, n) for gap, n in zip(operands, axes, strict=True) if gap is not None]
    return made[0] if len(axes) == 1 else made


def _slope(b: Builder, x: Array, gap: Operand, axis: int) -> Array:
    """Central differences, one-sided at both ends."""
    b.require(Op("le", (index(2), x.shape[axis])), "E323", f"axis {axis} of {spelled(x.shape)} is too short for "
              "np.gradient: it needs 2 elements")
    z = moveaxis(b, x, axis, -1)

    def difference(after: slice, before: slice, width: Operand) -> Array:
        change = apply(b, "sub", select(b, z, (Ellipsis, after)), select(b, z, (Ellipsis, before)))
        return b.array(apply(b, "div", change, width))

    twice = apply(b, "mul", gap, Literal(WEAK_FLOAT, b.pos, value=2.0))
    made = concatenate(b, [difference(slice(1, 2), slice(0, 1), gap), difference(slice(2, None), slice(0, -2), twice),
                           difference(slice(-1, None), slice(-2, -1), gap)], -1)
    return moveaxis(b, made, -1, axis)


def _floating(b: Builder, x: Array) -> Array:
    """Integers as float64."""
    wide = x.dtype == "bool" or x.dtype[0] in "iu"
    return b.array(converted(b, "f64", x)) if wide else x


def _trapezoid(numpy: Numpy, b: Builder, y: Array, x: Array | None, dx: Any, axis: Any) -> Operand:
    """`x`: where the points are, for all rows or for each."""
    place = axis_of(b, axis, y.rank)
    y = moveaxis(b, y, place, -1)
    points = None if x is None else x if x.rank < 2 else moveaxis(b, x, place, -1)
    gaps: Any = term_of(dx, b.pos) if points is None else numpy(b, "diff", points, axis=-1)
    pairs = apply(b, "add", select(b, y, (Ellipsis, slice(1, None))), select(b, y, (Ellipsis, slice(None, -1))))
    half = apply(b, "div", pairs, Literal(WEAK_FLOAT, b.pos, value=2.0))
    return total(b, "add", b.array(apply(b, "mul", gaps, half)), -1, None, False)


def _average(numpy: Numpy, b: Builder, x: Array, axis: Any, weights: Array | None, keepdims: bool) -> Operand:
    """With weights of the shape of x, or of one axis along `axis`."""
    if weights is None:
        return mean(b, x, axis, None, keepdims)
    if weights.rank == 1 and x.rank > 1:
        if not isinstance(axis, int):
            b.fail("E321", "weights of one axis need the axis that they are along", "axis=…")
        place = axis_of(b, axis, x.rank)
        weights = expand_dims(b, weights, tuple([n for n in range(x.rank) if n != place]))
    whole = broadcast_to(b, _floating(b, weights), x.shape)
    weighted = b.array(apply(b, "mul", x, whole))
    sums = [total(b, "add", each, axis, None, keepdims) for each in (weighted, whole)]
    return apply(b, "div", *sums)


def _diff(numpy: Numpy, b: Builder, x: Array, n: int, axis: Any, prepend: Any, append: Any) -> Operand:
    place = axis_of(b, axis, x.rank)
    edges: list[list[Array]] = []
    for edge in (prepend, append):
        if edge is None:
            edges.append([])
            continue
        if not shape_of(edge):
            edge = broadcast_to(b, b.array(converted(b, x.dtype, edge) if not isinstance(edge, Array) else edge),
                                tuple([ONE if axis_ == place else e for axis_, e in enumerate(x.shape)]))
        edges.append([b.array(edge)])
    before, after = edges
    return numpy(b, "diff", concatenate(b, [*before, x, *after], place), n=n, axis=place)


def _digitize(numpy: Numpy, b: Builder, x: Array, bins: Array, right: bool) -> Operand:
    """Bins in ascending order."""
    return numpy(b, "searchsorted", bins, x, side="left" if right else "right")


def _interp(numpy: Numpy, b: Builder, x: Array, xp: Array, fp: Array, left: Any, right: Any) -> Operand:
    """`left` and `right`: instead of the first and the last value, outside."""
    found = numpy(b, "interp", x, xp, fp)
    if left is not None:
        found = choose(b, apply(b, "lt", x, select(b, xp, 0)), left, found)
    return found if right is None else choose(b, apply(b, "gt", x, select(b, xp, -1)), right, found)


def _lexsort(numpy: Numpy, b: Builder, keys: Any) -> Operand:
    rows = as_array(b, keys)
    if rows is None or rows.rank != 2:
        b.fail("E322", f"np.lexsort takes keys of one axis, not {described(keys)}")
    return numpy(b, "lexsort", rows)


def _partition(name: str) -> Callable[..., Operand]:
    """All elements in order: one of the orders in which the elements before and behind `kth` are."""
    def made(numpy: Numpy, b: Builder, x: Array, kth: Any, axis: Any) -> Operand:
        for k in kth if isinstance(kth, tuple | list) else [kth]:
            if isinstance(k, int):                         # it has to be inside
                select(b, ravel(b, x) if axis is None else moveaxis(b, x, axis, 0), k)
        return numpy(b, name, x, axis=axis)
    return made


def _packbits(numpy: Numpy, b: Builder, x: Array, axis: Any) -> Operand:
    bits = x if x.dtype != "bool" else b.array(converted(b, "u8", x))
    return numpy(b, "packbits", bits, axis=axis)


def _fftfreq(positive: bool) -> Callable[..., Operand]:
    def made(numpy: Numpy, b: Builder, count: Expr, d: Any) -> Operand:
        distance = term_of(d, b.pos)
        assert distance is not None
        middle = floor_quotient(canonical(count + (2 if positive else 1)), index(2))
        length = middle if positive else count
        at = b.compute((length,), lambda i: i[0] if positive else Op("where", (
            i[0] < middle, i[0], canonical(i[0] - count))))
        width = apply(b, "mul", converted(b, "f64", size_term(count, b.pos)), distance)
        return apply(b, "div", converted(b, "f64", at), width)
    return made


def _window(*weights: float) -> Callable[..., Operand]:
    """The sum of weights[k] cos(k pi n / (M - 1)), n = 1 - M, 3 - M, …, M - 1: a sum of cosines (Harris 1978)."""
    def made(numpy: Numpy, b: Builder, count: Expr) -> Operand:
        def number(value: float) -> Literal:
            return Literal(WEAK_FLOAT, b.pos, value=value)
        angle = apply(b, "mul", _place(b, count), number(math.pi))
        terms = [number(weights[0])] + [apply(b, "mul", number(weight), apply(b, "cos", apply(
            b, "mul", angle, number(float(k))))) for k, weight in enumerate(weights[1:], 1)]
        made: Operand = terms[0]
        for term in terms[1:]:
            made = apply(b, "add", made, term)
        return made
    return made


def _bartlett(numpy: Numpy, b: Builder, count: Expr) -> Operand:
    return apply(b, "sub", Literal(WEAK_FLOAT, b.pos, value=1.0), apply(b, "abs", _place(b, count)))


def _place(b: Builder, count: Expr) -> Array:
    """-1 to 1; 0 for a window of one element."""
    last = canonical(count - 1)
    width = Cast("f64", canonical(Op("max", (last, index(1)))))
    return b.compute((count,), lambda i: Op("div", (Cast("f64", canonical(i[0] * 2 - last)), width)))


SHARES = "a:array q axis=None method:text='linear' keepdims:bool=False"
# By their paths: the signature, and what makes the result of other functions.
COMPOSED: dict[str, tuple[str, Callable[..., Any]]] = {
    **{name: ("a:array axis=None ddof:int=0 keepdims:bool=False", make)
       for name, make in (("nanvar", _nanvar), ("nanstd", _nanstd))},
    **{name: ("a:array axis=None keepdims:bool=False", _along_one(name)) for name in (
        "median", "nanmedian", "nanmax", "nanmean", "nanmin", "nanprod", "nansum")},
    **{name: (SHARES, _quantile(name, 100 if name.endswith("percentile") else 1)) for name in QUANTILES},
    "gradient": ("f:array *varargs axis=None", _gradient),
    "trapezoid": ("y:array x:array=None dx:operand=1.0 axis=-1", _trapezoid),
    "average": ("a:array axis=None weights:array=None keepdims:bool=False", _average),
    "diff": ("a:array n:int=1 axis=-1 prepend:operand=None append:operand=None", _diff),
    "digitize": ("x:array bins:array right:bool=False", _digitize),
    "interp": ("x:array xp:array fp:array left:operand=None right:operand=None", _interp),
    "lexsort": ("keys", _lexsort),
    "partition": ("a:array kth axis=-1", _partition("sort")),
    "argpartition": ("a:array kth axis=-1", _partition("argsort")),
    "packbits": ("a:array axis=None", _packbits),
    "fft.fftfreq": ("n:extent d:operand=1.0", _fftfreq(False)),
    "fft.rfftfreq": ("n:extent d:operand=1.0", _fftfreq(True)),
    "hanning": ("M:extent", _window(0.5, 0.5)),
    "hamming": ("M:extent", _window(0.54, 0.46)),
    "blackman": ("M:extent", _window(0.42, 0.5, 0.08)),
    "bartlett": ("M:extent", _bartlett),
    **FOURIER,
}

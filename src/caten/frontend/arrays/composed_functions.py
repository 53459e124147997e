"""Functions of NumPy that are made of operators of the library and other functions: `np.nanstd`, `np.percentile` of
several shares, `np.gradient`, `np.trapezoid`, windows of signals."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_complex
from ...core.expr import FALSE, TRUE, Cast, Expr, Op, index
from ...loop.affine import canonical
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Value
from .argument_binding import ElementType, as_array, call, described
from .array_functions import NUMPY
from .array_reductions import keep, mean, reduced, total
from .array_scans import running_total
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .covariances import COVARIANCES
from .differences import DIFFERENCES
from .elementwise_functions import apply, choose, converted, floating, term_of, truth
from .fourier import FOURIER, Numpy, fitted
from .handles import ZERO, Array, Operand, dtype_of, is_whole, product_of, shape_of, size_term
from .histograms import HISTOGRAMS
from .joining import concatenate, stack
from .matrix_functions import MATRICES
from .padding import pad
from .reshaping import ravel, reshape
from .selection import select
from .size_facts import floor_quotient
from .spaced_numbers import SPACED
from .views import broadcast_to, expand_dims, moveaxis


def _of_known(name: str) -> Callable[..., Operand]:
    """A reduction of what is not NaN: of integers and bools the plain one."""
    def made(numpy: Numpy, b: Builder, x: Array, axis: Any, keepdims: bool, dtype: str | None, initial: Operand | None,
             where: Any) -> Operand:
        fn = PLAIN[name]
        if dtype is not None or initial is not None or where is not True:
            neutral = Literal(WEAK_INT, b.pos, value=int(fn == "mul")) if fn in ("add", "mul") else initial
            known = x if neutral is None or not _has_nan(x) else choose(b, apply(b, "isnan", x), neutral, x)
            options = {"dtype": ElementType(dtype)} if dtype is not None else {}
            return _called(b, name.removeprefix("nan"), known, axis=axis, keepdims=keepdims, initial=initial,
                           where=where, **options)
        if DTYPES[x.dtype].kind in ("int", "uint", "bool"):
            return total(b, fn, x, axis, None, keepdims) if fn in ("add", "mul") else reduced(b, fn, x, axis, keepdims)
        return _along_one(name)(numpy, b, x, axis, keepdims)
    return made


def _running_known(name: str, fn: str) -> Callable[..., Operand]:
    def made(numpy: Numpy, b: Builder, x: Array, axis: Any, dtype: str | None) -> Operand:
        known = x if DTYPES[x.dtype].kind in ("int", "uint", "bool") else b.array(
            choose(b, apply(b, "isnan", x), Literal(WEAK_INT, b.pos, value=int(fn == "mul")), x))
        return running_total(b, fn, known, axis, dtype)
    return made


PLAIN = {"nansum": "add", "nanprod": "mul", "nanmax": "max", "nanmin": "min"}


def _along_one(name: str) -> Callable[..., Operand]:
    """A function of one axis along several, which become one; without an axis along all."""
    def made(numpy: Numpy, b: Builder, x: Array, axis: Any, keepdims: bool, **options: Any) -> Operand:
        axes = sorted(axes_of(b, axis, x.rank))
        found = numpy(b, name, _joined(b, x, axes), axis=-1, **options)
        return keep(b, b.array(found), axes) if keepdims else found
    return made


def _has_nan(x: Array) -> bool:
    return DTYPES[x.dtype].kind not in ("int", "uint", "bool")


def _called(b: Builder, name: str, *args: Any, **keywords: Any) -> Operand:
    """The result of a function of NumPy that is no operator of the library."""
    made: Operand = call(b, NUMPY[name], args, {key: value for key, value in keywords.items() if value is not None})
    return made


def _of_known_where(name: str, make: Callable[..., Operand], b: Builder, x: Array, axis: Any, dtype: str | None,
                    keepdims: bool, where: Any, **options: Any) -> Operand:
    """The function of what is not NaN, and where a condition holds."""
    if dtype is not None:
        x = b.array(converted(b, dtype, x))
    if where is True:
        return make(x)
    known = apply(b, "not", apply(b, "isnan", x)) if _has_nan(x) else Value("bool", b.pos, expr=TRUE)
    return _called(b, name, x, axis=axis, keepdims=keepdims, where=apply(b, "and", known, truth(b, where)), **options)


def _nanmean(numpy: Numpy, b: Builder, x: Array, axis: Any, dtype: str | None, keepdims: bool, where: Any) -> Operand:
    return _of_known_where("mean", lambda x: _along_one("nanmean")(numpy, b, x, axis, keepdims), b, x, axis, dtype,
                           keepdims, where)


def _nanvar(numpy: Numpy, b: Builder, x: Array, axis: Any, dtype: str | None, ddof: int, keepdims: bool,
            where: Any) -> Operand:
    return _of_known_where("var", lambda x: _nanvar_of(numpy, b, x, axis, ddof, keepdims), b, x, axis, dtype,
                           keepdims, where, ddof=ddof)


def _nanvar_of(numpy: Numpy, b: Builder, x: Array, axis: Any, ddof: int, keepdims: bool) -> Operand:
    return _along_one("nanvar")(numpy, b, floating(b, x), axis, keepdims, ddof=ddof)


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
        if method != "linear" and method not in METHODS:
            b.fail("E322", f"np.{name} has no method '{method}'", f"there are linear, {', '.join(METHODS)}")
        if name == "quantile" and method == "linear" and _are_whole(q):        # the least or the greatest element
            method = "lower"
        if isinstance(q, tuple | list):
            if method == "linear":                         # the shares are an array, of float64
                x = b.array(converted(b, "f64", x))
                q = [float(each) if isinstance(each, int) else each for each in q]
            return stack(b, [b.array(made(numpy, b, x, each, axis, method, keepdims)) for each in q])
        if not isinstance(q, int | float) or isinstance(q, bool):
            b.fail("E327", f"the shares of np.{name} are numbers that are known when the body is compiled",
                   "np.sort, and np.interp at the places of the shares, computes others")
        if not 0 <= q <= whole:
            b.fail("E326", f"the shares of np.{name} are between 0 and {whole}, and not {q}")
        if method != "linear":
            if name.startswith("nan"):
                b.fail("E327", f"np.{name} with the method '{method}' is not supported yet", "'linear' is")
            return _of_method(numpy, b, x, q / whole, axis, method, keepdims)
        return _along_one(QUANTILES[name])(numpy, b, x, axis, keepdims, q=float(q) / whole)
    return made


def _are_whole(q: Any) -> bool:
    """Is a share an integer, or is each of several?"""
    return all(isinstance(each, int) for each in q) if isinstance(q, tuple | list) else isinstance(q, int)


def _of_method(numpy: Numpy, b: Builder, x: Array, q: float, axis: Any, method: str, keepdims: bool) -> Operand:
    """The elements at both sides of q in ascending order, or what the method makes of them; NaN if one is NaN."""
    axes = sorted(axes_of(b, axis, x.rank))
    ordered = b.array(numpy(b, "sort", _joined(b, x, axes), axis=-1))
    last = canonical(ordered.shape[-1] - 1)
    b.require(last >= ZERO, "E321", "a quantile of no elements")
    end = converted(b, "f64", size_term(last, b.pos))
    places, share = METHODS[method](b, q, end)
    sides = [b.array(converted(b, "i64", apply(b, "clip", place, _number(b, 0.0), end))) for place in places]
    parts = [select(b, ordered, (Ellipsis, side)) for side in sides]
    made: Operand = parts[0]
    if share is not None:                                  # integers in float64, where their sum has room
        made = _between(b, floating(b, parts[0]), floating(b, parts[1]), share)
    greatest = select(b, ordered, (Ellipsis, -1))
    if DTYPES[x.dtype].kind == "float":
        made = choose(b, apply(b, "isnan", greatest), greatest, made)
    return keep(b, b.array(made), axes) if keepdims else made


def _number(b: Builder, value: float) -> Literal:
    return Literal(WEAK_FLOAT, b.pos, value=value)


def _between(b: Builder, low: Operand, high: Operand, share: Operand) -> Operand:
    """low + share (high - low), from the nearer of the two; as in NumPy NaN between equal infinities."""
    share = converted(b, dtype_of(low), share)
    gap = apply(b, "sub", high, low)
    rest = apply(b, "sub", _number(b, 1.0), share)
    near = [apply(b, "add", low, apply(b, "mul", gap, share)), apply(b, "sub", high, apply(b, "mul", gap, rest))]
    return choose(b, apply(b, "lt", share, _number(b, 0.5)), *near)


# Where a method has its elements, as float64, and how far between the first and the second it is (None: the first).
Places = tuple[list[Operand], Operand | None]


def _of_positions(*functions: str) -> Callable[[Builder, float, Operand], Places]:
    """Of q (n - 1), rounded. `end`: n - 1."""
    def made(b: Builder, q: float, end: Operand) -> Places:
        at = apply(b, "mul", _number(b, q), end)
        return [apply(b, fn, at) for fn in functions], _number(b, 0.5) if len(functions) == 2 else None
    return made


def _of_counts(shift: float, gain: float, rounding: str) -> Callable[[Builder, float, Operand], Places]:
    """Of n q + shift + gain q - 1 (Hyndman and Fan 1996). `rounding`: up; up, and with the one behind from a whole
    number; the even one of two at equal distances; or none."""
    def made(b: Builder, q: float, end: Operand) -> Places:
        count = apply(b, "add", end, _number(b, 1.0))
        at = apply(b, "add", apply(b, "mul", _number(b, q), count), _number(b, shift + gain * q - 1))
        low, high = apply(b, "floor", at), apply(b, "ceil", at)
        behind = apply(b, "add", low, _number(b, 1.0))
        match rounding:
            case "up":
                return [high], None
            case "both":
                return [high, behind], _number(b, 0.5)
            case "even":
                is_odd = apply(b, "eq", apply(b, "mod", low, _number(b, 2.0)), _number(b, 1.0))
                return [choose(b, apply(b, "and", apply(b, "eq", low, at), is_odd), low, behind)], None
        return [low, behind], apply(b, "sub", at, low)
    return made


# "linear" has its operators.
METHODS: dict[str, Callable[[Builder, float, Operand], Places]] = {
    "lower": _of_positions("floor"), "higher": _of_positions("ceil"),
    "nearest": _of_positions("round"), "midpoint": _of_positions("floor", "ceil"),
    "inverted_cdf": _of_counts(0, 0, "up"), "averaged_inverted_cdf": _of_counts(0, 0, "both"),
    "closest_observation": _of_counts(-0.5, 0, "even"), "interpolated_inverted_cdf": _of_counts(0, 0, "none"),
    "hazen": _of_counts(0.5, 0, "none"), "weibull": _of_counts(0, 1, "none"),
    "median_unbiased": _of_counts(1 / 3, 1 / 3, "none"), "normal_unbiased": _of_counts(3 / 8, 1 / 4, "none")}
QUANTILES = {"quantile": "quantile", "percentile": "quantile", "nanquantile": "nanquantile",
             "nanpercentile": "nanquantile"}


def _average(numpy: Numpy, b: Builder, x: Array, axis: Any, weights: Array | None, returned: bool,
             keepdims: bool) -> Any:
    """With weights of the shape of x, or of one axis along `axis`. `returned`: and the sums of the weights."""
    if weights is None:
        found = mean(b, x, axis, None, keepdims)
        count = converted(b, dtype_of(found), size_term(product_of([x.shape[n] for n in axes_of(b, axis, x.rank)])))
        return (found, broadcast_to(b, b.array(count), shape_of(found))) if returned else found
    if weights.rank == 1 and x.rank > 1:
        if not isinstance(axis, int):
            b.fail("E321", "weights of one axis need the axis that they are along", "axis=…")
        place = axis_of(b, axis, x.rank)
        weights = expand_dims(b, weights, tuple([n for n in range(x.rank) if n != place]))
    whole = broadcast_to(b, floating(b, weights), x.shape)
    weighted = b.array(apply(b, "mul", x, whole))
    sums = [total(b, "add", each, axis, None, keepdims) for each in (weighted, whole)]
    found = apply(b, "div", *sums)
    return (found, b.array(converted(b, dtype_of(found), sums[1]))) if returned else found


def _isclose(numpy: Numpy, b: Builder, x: Operand, y: Operand, rtol: Operand | float,
             atol: Operand | float, equal_nan: bool) -> Operand:
    """Is |x - y| ≤ atol + rtol |y|? Equal infinities are close."""
    x, y = (converted(b, "f64", each) if dtype_of(each) == "bool" else each for each in (x, y))
    rtol, atol = (Literal(WEAK_FLOAT, b.pos, value=each) if isinstance(each, float) else each for each in (rtol, atol))
    apart, size = apply(b, "abs", apply(b, "sub", x, y)), apply(b, "abs", y)
    near = apply(b, "le", apart, apply(b, "add", atol, apply(b, "mul", rtol, size)))
    finite = apply(b, "lt", size, Literal(WEAK_FLOAT, b.pos, value=math.inf))
    close = apply(b, "or", apply(b, "eq", x, y), apply(b, "and", near, finite))
    if not equal_nan:
        return close
    return apply(b, "or", close, apply(b, "and", apply(b, "ne", x, x), apply(b, "ne", y, y)))


def _allclose(numpy: Numpy, b: Builder, *given: Any) -> Operand:
    return reduced(b, "and", b.array(_isclose(numpy, b, *given)), None, False)


def _array_equal(numpy: Numpy, b: Builder, x: Array, y: Array, equal_nan: bool) -> Operand:
    """Are the shapes and all elements equal? Extents that may differ are a condition of the call."""
    never = Value("bool", b.pos, expr=FALSE)
    if x.rank != y.rank or any(b.sizes.refutes(Op("eq", (s, t))) for s, t in zip(x.shape, y.shape, strict=True)):
        return never
    b.same_shape(y.shape, x.shape, "np.array_equal compares arrays of one shape, and the first of these",
                 "np.array_equiv broadcasts them")
    return _array_equiv(numpy, b, x, y, equal_nan)


def _array_equiv(numpy: Numpy, b: Builder, x: Array, y: Array, equal_nan: bool = False) -> Operand:
    same = apply(b, "eq", x, y)
    if equal_nan:
        same = apply(b, "or", same, apply(b, "and", apply(b, "ne", x, x), apply(b, "ne", y, y)))
    return reduced(b, "and", b.array(same), None, False)


def _angle(numpy: Numpy, b: Builder, z: Operand, deg: bool) -> Operand:
    if dtype_of(z) in DTYPES and is_complex(dtype_of(z)):
        real, imaginary = apply(b, "real", z), apply(b, "imag", z)
    else:
        real = converted(b, "f64", z) if dtype_of(z) == "bool" or is_whole(dtype_of(z)) else z
        imaginary = choose(b, apply(b, "ne", real, real), real, Literal(WEAK_FLOAT, b.pos, value=0.0))
    angle = apply(b, "atan2", imaginary, real)
    return apply(b, "mul", angle, Literal(WEAK_FLOAT, b.pos, value=180 / math.pi)) if deg else angle


def _nan_to_num(numpy: Numpy, b: Builder, x: Array, copy: bool, nan: Any, posinf: Any, neginf: Any) -> Operand:
    """Integers as they are, complex numbers part by part."""
    if DTYPES[x.dtype].kind in ("int", "uint", "bool"):
        return x
    options = {name: value for name, value in (("nan", nan), ("posinf", posinf), ("neginf", neginf))
               if value is not None}
    if any(not isinstance(value, int | float) for value in options.values()):
        b.fail("E322", "what np.nan_to_num puts in the place of others are numbers that are known")
    parts = [apply(b, fn, x) for fn in ("real", "imag")] if is_complex(x.dtype) else [x]
    made = [numpy(b, "nan_to_num", b.array(each), **options) for each in parts]
    return apply(b, "complex", *made) if is_complex(x.dtype) else made[0]


def _digitize(numpy: Numpy, b: Builder, x: Array, bins: Array, right: bool) -> Operand:
    """Bins in ascending order."""
    return numpy(b, "searchsorted", bins, x, side="left" if right else "right")


def _interp(numpy: Numpy, b: Builder, x: Array, xp: Array, fp: Array, left: Any, right: Any,
            period: float | None) -> Operand:
    """`left` and `right`: instead of the first and the last value, outside. `period`: x + period is x; there is no
    outside then, and the places need no order."""
    if period is not None:
        x, xp, fp = _around(numpy, b, x, xp, fp, period)
        left = right = None
    found = numpy(b, "interp", x, xp, fp)
    if left is not None:
        found = choose(b, apply(b, "lt", x, select(b, xp, 0)), left, found)
    return found if right is None else choose(b, apply(b, "gt", x, select(b, xp, -1)), right, found)


def _around(numpy: Numpy, b: Builder, x: Array, xp: Array, fp: Array, period: float) -> tuple[Array, Array, Array]:
    """Places within one period, in ascending order, with a neighbour beyond each end."""
    if not isinstance(period, int | float) or not period or not math.isfinite(period):
        b.fail("E326", "the period of np.interp is a number other than 0 that is known when the body is compiled")
    by = Literal(WEAK_FLOAT, b.pos, value=float(abs(period)))
    x, xp = (b.array(apply(b, "mod", converted(b, "f64", each), by)) for each in (x, xp))
    order = b.array(numpy(b, "argsort", xp))
    xp, fp = select(b, xp, order), select(b, fp, order)
    last, first = slice(-1, None), slice(0, 1)
    beyond = [b.array(apply(b, fn, select(b, xp, part), by)) for fn, part in (("sub", last), ("add", first))]
    values = concatenate(b, [select(b, fp, last), fp, select(b, fp, first)])
    return x, concatenate(b, [beyond[0], xp, beyond[1]]), values


def _isin(numpy: Numpy, b: Builder, x: Operand, others: Array, assume_unique: bool, invert: bool,
          kind: str | None) -> Operand:
    """Is each element one of the others? Of complex numbers by comparing all pairs."""
    dtypes = [dtype_of(x), others.dtype]
    if any(dtype in DTYPES and is_complex(dtype) for dtype in dtypes):
        each = b.array(x)
        pairs = b.array(apply(b, "eq", expand_dims(b, each, each.rank), ravel(b, others)))
        found: Operand = reduced(b, "or", pairs, -1, False)
    else:
        x, among = (converted(b, "u8", each) if dtype_of(each) == "bool" else each for each in (x, others))
        found = numpy(b, "isin", x, ravel(b, b.array(among)))
    return apply(b, "not", found) if invert else found


def _ptp(numpy: Numpy, b: Builder, x: Array, axis: Any, keepdims: bool) -> Operand:
    """The greatest less the least element."""
    return apply(b, "sub", *[reduced(b, fn, x, axis, keepdims) for fn in ("max", "min")])


def _count_nonzero(numpy: Numpy, b: Builder, x: Array, axis: Any, keepdims: bool) -> Operand:
    return total(b, "add", b.array(truth(b, x)), axis, None, keepdims)


def _cross(numpy: Numpy, b: Builder, x: Array, y: Array, axisa: Any, axisb: Any, axisc: Any, axis: Any) -> Operand:
    """Of vectors along an axis of each, of the same number from the front or the end with `axis`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(b, x, axisa, -1), moveaxis(b, y, axisb, -1)
    made = b.array(numpy(b, "cross", x, y))
    return moveaxis(b, made, -1, axisc) if made.rank == max(x.rank, y.rank) else made


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


def _packbits(numpy: Numpy, b: Builder, x: Array, axis: Any, bitorder: str) -> Operand:
    bits = x if x.dtype != "bool" else b.array(converted(b, "u8", x))
    return numpy(b, "packbits", bits, axis=axis, bitorder=bitorder)


def _unpackbits(numpy: Numpy, b: Builder, x: Array, axis: Any, count: int | None, bitorder: str) -> Operand:
    """`count`: how many bits, filled with 0; if it is negative, how many at the end are left out."""
    bits = b.array(numpy(b, "unpackbits", x, axis=axis, bitorder=bitorder))
    place = axis_of(b, -1 if axis is None else axis, bits.rank)
    if count is None:
        return bits
    return fitted(b, bits, index(count), place) if count >= 0 else select(
        b, bits, (*[slice(None)] * place, slice(None, count)))


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


CLOSE = "a:operand b:operand rtol:operand=1e-05 atol:operand=1e-08 equal_nan:bool=False"
SHARES = "a:array q axis=None method:text='linear' keepdims:bool=False"
# By their paths: the signature, and what makes the result of other functions.
COMPOSED: dict[str, tuple[str, Callable[..., Any]]] = {
    **{name: ("a:array axis=None dtype:dtype=None ddof:int=0 keepdims:bool=False * where:operand=True", make)
       for name, make in (("nanvar", _nanvar), ("nanstd", _nanstd))},
    **{name: ("a:array axis=None keepdims:bool=False", _along_one(name)) for name in (
        "median", "nanmedian")},
    "nanmean": ("a:array axis=None dtype:dtype=None keepdims:bool=False * where:operand=True", _nanmean),
    **{name: ("a:array axis=None keepdims:bool=False dtype:dtype=None initial:operand=None where:operand=True",
              _of_known(name)) for name in PLAIN},
    **{name: ("a:array axis=None dtype:dtype=None", _running_known(name, fn))
       for name, fn in (("nancumsum", "add"), ("nancumprod", "mul"))},
    **{name: (SHARES, _quantile(name, 100 if name.endswith("percentile") else 1)) for name in QUANTILES},
    "average": ("a:array axis=None weights:array=None returned:bool=False * keepdims:bool=False", _average),
    "isclose": (CLOSE, _isclose), "allclose": (CLOSE, _allclose),
    "array_equal": ("a1:array a2:array equal_nan:bool=False", _array_equal),
    "array_equiv": ("a1:array a2:array", _array_equiv),
    "angle": ("z:operand deg:bool=False", _angle),
    "nan_to_num": ("x:array copy:bool=True nan=0.0 posinf=None neginf=None", _nan_to_num),
    "digitize": ("x:array bins:array right:bool=False", _digitize),
    "interp": ("x:array xp:array fp:array left:operand=None right:operand=None period=None", _interp),
    "lexsort": ("keys", _lexsort),
    "partition": ("a:array kth axis=-1", _partition("sort")),
    "argpartition": ("a:array kth axis=-1", _partition("argsort")),
    "packbits": ("a:array axis=None bitorder:text='big'", _packbits),
    "unpackbits": ("a:array axis=None count:int=None bitorder:text='big'", _unpackbits),
    "ptp": ("a:array axis=None keepdims:bool=False", _ptp),
    "count_nonzero": ("a:array axis=None * keepdims:bool=False", _count_nonzero),
    "cross": ("a:array b:array axisa=-1 axisb=-1 axisc=-1 axis=None", _cross),
    "isin": ("element:operand test_elements:array assume_unique:bool=False invert:bool=False kind:text=None", _isin),
    "fft.fftfreq": ("n:extent d:operand=1.0", _fftfreq(False)),
    "fft.rfftfreq": ("n:extent d:operand=1.0", _fftfreq(True)),
    "hanning": ("M:extent", _window(0.5, 0.5)),
    "hamming": ("M:extent", _window(0.54, 0.46)),
    "blackman": ("M:extent", _window(0.42, 0.5, 0.08)),
    "bartlett": ("M:extent", _bartlett),
    "pad": ("array:array pad_width mode:text='constant' constant_values=0 end_values=0 stat_length=None "
            "reflect_type:text='even'", pad),
    **COVARIANCES, **DIFFERENCES, **FOURIER, **HISTOGRAMS, **MATRICES, **SPACED,
}

"""NumPy's functions on tensors: `np.exp(x)`, `np.concatenate([x, y], axis=1)`. NumPy calls this module by its protocols
`__array_ufunc__` and `__array_function__`.

So a program that is written for arrays builds a graph. A NumPy scalar, such as the result of np.sqrt(2 / np.pi), does
not change the type of a tensor, as if it were a Python number; in NumPy it would turn float32 into float64. If the
library has no operator for a function, NumPy computes it immediately, from the values.
"""
from __future__ import annotations

import inspect
import operator as op
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from caten.frontend import operator_library
from caten.frontend.numpy_signatures import Unknown

from . import array_api, library_calls
from .array_api.data_types import dtype_object
from .tensor import Tensor, apply, one, product, tensor
from .tracing import ACTIVE

xp: Any = array_api

# Where the names differ: those of NumPy, and those of the array API standard.
NAMES = {"absolute": "abs", "fabs": "abs", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
         "right_shift": "bitwise_right_shift", "conjugate": "conj", "rint": "round",
         "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arccosh": "acosh", "arcsinh": "asinh",
         "arctanh": "atanh", "arctan2": "atan2", "amax": "max", "amin": "min", "around": "round"}
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": op.add, "subtract": op.sub, "multiply": op.mul, "divide": op.truediv, "true_divide": op.truediv,
    "floor_divide": op.floordiv, "remainder": op.mod, "power": op.pow, "float_power": op.pow, "matmul": op.matmul,
    "bitwise_and": op.and_, "bitwise_or": op.or_, "bitwise_xor": op.xor, "less": op.lt, "less_equal": op.le,
    "greater": op.gt, "greater_equal": op.ge, "equal": op.eq, "not_equal": op.ne}
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
              "logical_or": "any"}


def of_elements(ufunc: np.ufunc, method: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a universal function gives: the protocol `__array_ufunc__`."""
    (out,) = named.get("out", (None,)) if ufunc.nout == 1 else (None,)
    others = {n: v for n, v in named.items() if n != "out"}
    try:
        if not isinstance(out, Tensor | None) or (ufunc.nout > 1 and "out" in named):
            raise Unknown
        made = _of_elements(ufunc, method, inputs, others)
    except Unknown:
        return _by_numpy(getattr(ufunc, method), ufunc.__name__, inputs, named)
    if out is not None:
        out[...] = made
        return out
    return made


def _of_elements(ufunc: np.ufunc, method: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    name = ufunc.__name__
    if method == "reduce" and name in REDUCTIONS and not named.keys() - {"axis", "keepdims", "dtype"}:
        return reduced(REDUCTIONS[name], *inputs, **{"axis": 0, **named})
    if method == "outer" and len(inputs) == 2 and not named:
        a, b = map(tensor, inputs)
        return _of_elements(ufunc, "__call__", (a.reshape(*a.shape, *[1] * b.ndim), b), {})
    if method != "__call__" or named.keys() - {"dtype"}:
        raise Unknown
    given, dtype = [_operand(v) for v in inputs], named.get("dtype")
    if dtype is not None:
        given = [_in_type(ufunc, v, dtype) for v in given]
    if name == "vecmat":                                    # the vector is conjugated
        given[0] = xp.conj(given[0]) if isinstance(given[0], Tensor) and given[0].dtype.kind == "complex" else given[0]
    if name in OPERATORS:
        made = OPERATORS[name](given[0] if isinstance(given[1], Tensor) else tensor(given[0]), given[1])
    elif hasattr(xp.elementwise, NAMES.get(name, name)):
        made = getattr(xp.elementwise, NAMES.get(name, name))(*map(_of_floats(name), given))
    else:
        made = _of_library(name, given)
    return made if dtype is None else made.astype(dtype)


def _in_type(ufunc: np.ufunc, value: Any, dtype: Any) -> Any:
    """An operand in the type in which a function is computed. Unknown where NumPy refuses the conversion, or means the
    type of the results alone (comparisons)."""
    wanted = dtype_object(dtype)
    if all(each[-1] == "?" for each in ufunc.types if each[0] != "O"):
        if wanted.kind != "bool":
            raise Unknown
        return value
    if not isinstance(value, Tensor):
        return value
    if not np.can_cast(value.dtype.numpy, wanted.numpy, "same_kind"):
        raise Unknown
    return value.astype(wanted)


def _of_floats(name: str) -> Callable[[Any], Any]:
    """Integers become floats where NumPy's function has only results of floats."""
    kinds = {t[-1] for t in getattr(np, name).types if t[0] in "?lq"} if hasattr(np, name) else set()
    if kinds & {"?", "l", "q", "b", "i"}:
        return lambda v: v
    return lambda v: v.astype("float64") if isinstance(v, Tensor) and v.dtype.kind in ("int", "uint", "bool") else v


def of_arrays(function: Callable[..., Any], inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a function of NumPy gives: the protocol `__array_function__`."""
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", "") or ""
    try:
        if module == "numpy.linalg" or module.startswith("numpy.linalg."):
            return _in(xp.linalg, name, inputs, named)
        if module == "numpy.fft" or module.startswith("numpy.fft."):
            return _in(xp.fft, name, inputs, named)
        if name in FUNCTIONS:
            return FUNCTIONS[name](*map(_operand, inputs), **{n: _operand(v) for n, v in named.items()})
        return library_calls.call(function, NAMES.get(name, name), [_operand(v) for v in inputs],
                                  {n: _operand(v) for n, v in named.items()})
    except Unknown:
        return _by_numpy(function, name, inputs, named)


def _in(namespace: Any, name: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    if name in OF_LINALG:
        return OF_LINALG[name](*inputs, **named)
    if namespace is xp.fft:
        inputs, named = _by_name(name, inputs, named)
    made: Any = getattr(namespace, name, None)
    try:
        inspect.signature(made).bind(*inputs, **named)
    except TypeError:                                       # there is none, or it has no such argument
        raise Unknown from None
    return made(*map(_operand, inputs), **named)


def _by_name(name: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a transform, which NumPy takes by position, too; None is what it has by itself."""
    try:
        bound = inspect.signature(getattr(np.fft, name)).bind(*inputs, **named).arguments
    except (TypeError, ValueError):
        raise Unknown from None
    first, *others = bound
    return (bound[first],), {n: bound[n] for n in others if bound[n] is not None}


def _of_library(name: str, given: Sequence[Any], named: Mapping[str, Any] | None = None) -> Any:
    if operator_library.find(name) is None:
        raise Unknown
    return apply(name, *given, **(named or {}))


def _operand(value: Any) -> Any:
    """A number of NumPy as one of Python; arrays as tensors, also in lists."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tensor(value)
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor | np.ndarray) for v in value):
        return type(value)([_operand(v) for v in value])
    return value


def _by_numpy(function: Callable[..., Any], name: str, inputs: Any, named: Mapping[str, Any]) -> Any:
    """By NumPy, from the values."""
    def array(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.numpy()
        if isinstance(value, list | tuple):
            return type(value)([array(v) for v in value])
        return value
    if ACTIVE.get() is not None:
        raise TypeError(f"numpy.{name} is no operator of daten with these arguments, so its result would be the same "
                        f"in each call of what jit traces")
    return function(*[array(v) for v in inputs], **{n: array(v) for n, v in named.items()})


# ---- functions, as NumPy declares them

def reduced(name: str, x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
            initial: Any = None, where: Any = True, ddof: int | None = None) -> Any:
    """A reduction over axes."""
    if out is not None or where is not True or initial is not None:
        raise Unknown
    given = tensor(x) if dtype is None else tensor(x).astype(dtype)
    if ddof is not None and given.dtype.kind == "complex":
        parts = [xp.var(part, axis=axis, correction=ddof, keepdims=bool(keepdims)) for part in (given.real, given.imag)]
        return parts[0] + parts[1] if name == "var" else (parts[0] + parts[1]).sqrt()
    if ddof is not None:
        return getattr(xp, name)(_float(given), axis=axis, correction=ddof, keepdims=bool(keepdims))
    if name == "mean":
        given = _float(given)
    return getattr(xp, name)(given, axis=axis, keepdims=bool(keepdims))


def _reduction(name: str, spread: bool = False) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
                 ddof: int = 0, initial: Any = None, where: Any = True) -> Any:
        return reduced(name, a, axis, dtype, out, keepdims, initial, where, ddof if spread else None)
    return function


def _extreme(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
                 where: Any = True) -> Any:
        return reduced(name, a, axis, None, out, keepdims, initial, where)
    return function


def _float(x: Tensor) -> Tensor:
    return x.astype("float64") if x.dtype.kind in ("int", "uint", "bool") else x


def _scan(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        if out is not None:
            raise Unknown
        x = tensor(a).reshape(-1) if axis is None else tensor(a)
        return getattr(xp, name)(x, axis=axis or 0, dtype=dtype)
    return function


def norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a vector, or of all elements."""
    if ord is not None and axis is None and x.ndim > 1:
        raise Unknown
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)


def reshape(a: Tensor, shape: Any, order: str = "C") -> Tensor:
    """The same elements in another shape."""
    if order != "C":
        raise Unknown
    return a.reshape(*(shape if isinstance(shape, list | tuple) else (shape,)))


def squeeze(a: Tensor, axis: Any = None) -> Any:
    """Without axes of extent 1."""
    return xp.squeeze(a, tuple([n for n, e in enumerate(a.shape) if e == 1]) if axis is None else axis)


def split(ary: Tensor, sections: Any, axis: int = 0, is_uneven: bool = False) -> list[Tensor]:
    """Parts along an axis: so many, or between positions."""
    extent, at = ary.shape[axis], axis % ary.ndim
    if isinstance(sections, int):
        if extent % sections and not is_uneven:
            raise ValueError(f"{ary!r}: an axis of {extent} cannot be split into {sections} equal parts")
        short, longer = divmod(extent, sections)
        ends = [n * short + min(n, longer) for n in range(sections + 1)]
    else:
        ends = [0, *[slice(int(n)).indices(extent)[1] for n in sections], extent]
    return [ary[(*[slice(None)] * at, slice(a, max(a, b)))] for a, b in pairwise(ends)]


def concatenate(arrays: Sequence[Any], axis: int | None = 0, out: None = None, dtype: Any = None) -> Any:
    """Joined along an axis."""
    if out is not None:
        raise Unknown
    made = xp.concat([tensor(a) for a in arrays], axis=axis)
    return made if dtype is None else made.astype(dtype)


def _at_least(arrays: Sequence[Any], rank: int) -> list[Tensor]:
    return [t.reshape(*[1] * (rank - t.ndim), *t.shape) for t in map(tensor, arrays)]


def hstack(tup: Sequence[Any]) -> Any:
    """Joined along the second axis; vectors along the first."""
    given = _at_least(tup, 1)
    return concatenate(given, axis=0 if given[0].ndim == 1 else 1)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y; the positions where it holds, if there are none."""
    if x is None or y is None:
        return xp.nonzero(tensor(condition))
    return one("where", tensor(condition) if isinstance(condition, Tensor) else np.asarray(condition, bool), x, y)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None) -> Any:
    """Not below the first bound, and not above the second."""
    if out is not None:
        raise Unknown
    return xp.clip(tensor(a), min=a_min if min is None else min, max=a_max if max is None else max)


def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The elements at indices along an axis, or of all in order."""
    x = tensor(a).reshape(-1) if axis is None else tensor(a)
    return x[(*[slice(None)] * ((axis or 0) % x.ndim), indices)]


def dot(a: Any, b: Any, out: None = None) -> Tensor:
    """The product of vectors or matrices; a sum over the last axis of a and the one before the last of b."""
    x, y = tensor(a), tensor(b)
    if not x.ndim or not y.ndim:
        return x * y
    return product(x, y) if y.ndim <= 2 else xp.tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 2,)))


def einsum(subscripts: str, *operands: Any, **named: Any) -> Tensor:
    """Sums of products. More than two arrays are contracted in pairs, in the order that NumPy finds to be cheap for
    these extents."""
    if named.keys() - {"optimize"} or not isinstance(subscripts, str):
        raise Unknown
    if len(operands) < 3:
        return one("einsum" if len(operands) == 2 else "einsum1", *operands, subscripts=subscripts)
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow:
        letters = given.replace(",", "").replace("...", "")
        result = ("..." if "..." in given else "") + "".join(sorted([c for c in set(letters) if letters.count(c) == 1]))
    arrays = [tensor(o) for o in operands]
    left = list(zip(given.split(","), arrays, strict=True))
    path, _ = np.einsum_path(f"{given}->{result}", *[np.broadcast_to(np.False_, t._ref.shape) for t in arrays])
    for positions in path[1:]:
        chosen = [left[n] for n in positions]
        left = [each for n, each in enumerate(left) if n not in positions]
        while len(chosen) > 1:
            (a, x), (b, y), *chosen = chosen
            others = [term for term, _ in (*chosen, *left)]
            term = _kept(a + b, [*others, result]) if others else result
            chosen.insert(0, (term, one("einsum", x, y, subscripts=f"{a},{b}->{term}")))
        left += chosen
    return left[0][1]


def _kept(letters: str, others: Sequence[str]) -> str:
    """The subscripts of an array that others need."""
    read = "".join(others)
    return ("..." if "..." in letters else "") + "".join(dict.fromkeys([c for c in letters if c != "." and c in read]))


def pad(array: Tensor, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """With elements around it."""
    widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))]
    if mode == "constant" and isinstance(constant_values, int | float):
        return one("pad", array, widths=tuple(widths), value=constant_values)
    if mode not in ("edge", "wrap", "reflect"):
        raise Unknown
    for axis, (before, after) in enumerate(widths):
        array = one(f"pad_{mode}", array, axis=axis, before=before, after=after)
    return array


def _transposed(a: Any, axes: Any = None) -> Tensor:
    return tensor(a).transpose(*(axes or ()))


def _swapped(a: Tensor, axis1: int, axis2: int) -> Tensor:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return a.transpose(*order)


def _matrices(a: Any, axis1: int, axis2: int) -> Tensor:
    """With these axes, in this order, as the last two: NumPy has the matrices along the first ones."""
    made: Tensor = xp.moveaxis(tensor(a), (axis1, axis2), (-2, -1))
    return made


def _like(name: str) -> Callable[..., Tensor]:
    def function(a: Tensor, *value: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
        if shape is not None:
            raise Unknown
        return getattr(xp, name)(a, *value, dtype=None if dtype is None else dtype_object(dtype))
    return function


def quantile(name: str, scale: float = 1.0) -> Callable[..., Any]:
    """`np.quantile(x, q)`, of one number q."""
    def function(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
                 method: str = "linear", keepdims: bool = False, **others: Any) -> Any:
        if out is not None or method != "linear" or keepdims or others or not isinstance(q, int | float) or isinstance(
                axis, tuple):
            raise Unknown
        x = _float(tensor(a))
        return one(name, x.reshape(-1) if axis is None else x, q=q * scale, axis=-1 if axis is None else axis)
    return function


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean; with weights along one axis, or of the array's shape, the weighted one."""
    if returned:
        raise Unknown
    if weights is None:
        return reduced("mean", a, axis, keepdims=keepdims)
    x, w = tensor(a), tensor(weights)
    if w.ndim == 1 and x.ndim > 1 and isinstance(axis, int):
        w = xp.broadcast_to(w.reshape([-1 if n == axis % x.ndim else 1 for n in range(x.ndim)]), x.shape)
    return one("average", x, w, axis=axis, keepdims=keepdims)


def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Change the diagonal of a matrix."""
    if wrap or a.ndim != 2 or not isinstance(val, int | float):
        raise TypeError("np.fill_diagonal of a tensor takes a matrix and a number, without wrap")
    a[...] = one("fill_diagonal", a, val)


def expand_dims(a: Tensor, axis: int | Sequence[int]) -> Tensor:
    """New axes of extent 1, at one position or several of the result."""
    at = [axis] if isinstance(axis, int) else list(axis)
    places = {n + a.ndim + len(at) if n < 0 else n for n in at}
    if len(places) < len(at) or not places <= set(range(a.ndim + len(at))):
        raise IndexError(f"new axes of {a!r} are at different positions of the result, not at {axis}")
    extents = iter(a.shape)
    return a.reshape([1 if n in places else next(extents) for n in range(a.ndim + len(at))])


def put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    """Change elements by their numbers."""
    at = tensor(np.asarray(ind)).reshape(-1) if not isinstance(ind, Tensor) else ind.reshape(-1)
    values = tensor(np.asarray(v, a.dtype.numpy)) if not isinstance(v, Tensor) else v
    if mode != "raise" or values.size not in (1, at.size):
        raise TypeError("np.put of a tensor takes a value for each index, or one, and mode='raise'")
    a[...] = one("put", a, at, xp.broadcast_to(values.reshape(-1), at.shape))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Each element minus the one before it, n times; of bools, whether they differ."""
    x = tensor(a)
    at = axis % x.ndim
    edges = [None if e is None else tensor(x.dtype.numpy.type(e) if isinstance(e, bool | int | float) else e)
             for e in (prepend, append)]
    before, after = [[] if e is None else [e if e.ndim else xp.broadcast_to(
        e, [1 if k == at else extent for k, extent in enumerate(x.shape)])] for e in edges]
    if before or after:
        wide = np.result_type(*[e.dtype.numpy for e in (*before, x, *after)])
        x = concatenate([e.astype(wide.name) for e in (*before, x, *after)], axis=at)
    if x.dtype.kind != "bool":
        return xp.diff(x, n=n, axis=at)
    for _ in range(n):
        upper, lower = [x[(*[slice(None)] * at, part)] for part in (slice(1, None), slice(None, -1))]
        x = upper != lower
    return x


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Is |a - b| ≤ atol + rtol |b|? Equal infinities are close."""
    x, y = [_float(tensor(each)) if isinstance(each, Tensor | np.ndarray) else each for each in (a, b)]
    if any(isinstance(each, Tensor) and each.dtype.kind == "complex" for each in (x, y)):
        raise Unknown
    close = one("isclose", x, y, rtol=rtol, atol=atol)
    return close | ((x != x) & (y != y)) if equal_nan else close


def _of_known(name: str, plain: str) -> Callable[..., Any]:
    """A reduction of what is not NaN: of integers the plain one."""
    def function(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False,
                 **others: Any) -> Any:
        x = tensor(a)
        if dtype is not None or out is not None or others:
            raise Unknown
        if x.dtype.kind in ("int", "uint", "bool"):
            return reduced(plain, x, axis, keepdims=bool(keepdims) if isinstance(keepdims, bool) else False)
        return one(name, x, axis=axis, keepdims=keepdims is True)
    return function


def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Any:
    """The product of several matrices, in the order that `einsum` chooses; the first and the last may be vectors."""
    if out is not None:
        raise Unknown
    given = [tensor(a) for a in arrays]
    letters = [chr(ord("a") + n) for n in range(len(given) + 1)]
    if len(given) < 2 or len(letters) > 26 or any(t.ndim != 2 for t in given[1:-1]) or any(
            t.ndim not in (1, 2) for t in (given[0], given[-1])):
        raise Unknown
    terms = [letters[n] + letters[n + 1] for n in range(len(given))]
    terms[0], terms[-1] = terms[0][2 - given[0].ndim:], terms[-1][:given[-1].ndim]
    result = "".join([c for c in letters if "".join(terms).count(c) == 1])
    return einsum(f"{','.join(terms)}->{result}", *given)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Each array along its axis of a grid, the first two exchanged under `xy`. `sparse`: without repetitions."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"np.meshgrid has the indexing 'xy' and 'ij', not {indexing!r}")
    places = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        places[:2] = 1, 0
    made = [tensor(x).reshape([-1 if n == place else 1 for n in range(len(xi))])
            for x, place in zip(xi, places, strict=True)]
    return tuple(made if sparse else xp.broadcast_arrays(*made))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number is there, or the sum of its weights. How many bins there are is the greatest number, so
    that of a tensor has to be known: it is computed, and inside of `jit` the numbers are those of an array."""
    at = tensor(x)
    if at.ndim != 1 or at.dtype.kind not in ("int", "uint"):
        raise Unknown
    bins = max(minlength, int(at.numpy().max(initial=-1)) + 1)
    if not bins:
        return Tensor(np.zeros(0, np.int64 if weights is None else np.float64))
    if weights is None:
        return one("bincount", at, bins=bins)
    return one("weighted_bincount", at, tensor(weights).astype("float64"), bins=bins)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """The elements of the first array whose condition holds."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"np.select takes as many choices as conditions, not {len(choicelist)} for {len(condlist)}")
    made = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        made = where(condition, choice, made)
    return made


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where elements would be inserted into an ascending sequence."""
    if sorter is not None or side not in ("left", "right"):
        raise Unknown
    return xp.searchsorted(tensor(a), tensor(v), side=side)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """The x of the least norm for which |a x - b| is least, the sums of the squares of what is left, the rank and the
    singular values. The sums are those of columns, whose number depends on the rank: where a has as many rows as
    columns or fewer there are none, as in NumPy, and a rank below the number of columns is not looked for."""
    x, y = tensor(a), tensor(b)
    columns = y.reshape(-1, 1) if y.ndim == 1 else y
    kind = "float64" if "float64" in (str(x.dtype), str(y.dtype)) or x.dtype.kind != "float" else str(x.dtype)
    x, columns = x.astype(kind), columns.astype(kind)
    limit = {} if rcond is None else {"rcond": rcond}
    found = one("lstsq", x, columns, **limit)
    rest = columns - x @ found
    sums = (rest * rest).sum(axis=0) if x.shape[0] > x.shape[1] else Tensor(np.zeros(0, kind))
    values = xp.linalg.svdvals(x)
    rank = one("matrix_rank", x)
    return found.reshape(-1) if y.ndim == 1 else found, sums, rank, values


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **named: Any) -> Any:
    """The value of the last condition that holds; functions are applied to all elements."""
    z = tensor(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    values = [f(z, *args, **named) if callable(f) else f for f in funclist]
    if len(values) - len(conditions) not in (0, 1):
        raise ValueError(f"np.piecewise takes a value or function for each of {len(conditions)} conditions, and "
                         f"perhaps one more, not {len(values)}")
    made = xp.zeros_like(z) + (values[-1] if len(values) > len(conditions) else 0)
    for condition, value in zip(conditions, values, strict=False):
        made = where(condition, value, made)
    return made.astype(z.dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "meshgrid": meshgrid, "bincount": bincount, "select": select, "searchsorted": searchsorted,
    "piecewise": piecewise,
    "quantile": quantile("quantile"), "nanquantile": quantile("nanquantile"), "percentile": quantile("quantile", 0.01),
    "nanpercentile": quantile("nanquantile", 0.01), "average": average, "fill_diagonal": fill_diagonal, "put": put,
    **{n: _reduction(n) for n in ("sum", "prod", "mean")}, **{n: _reduction(n, spread=True) for n in ("var", "std")},
    **{n: _extreme(NAMES.get(n, n)) for n in ("max", "min", "amax", "amin", "all", "any", "count_nonzero")},
    **{n: lambda a, axis=None, out=None, keepdims=False, n=n: reduced(n, a, axis, None, out, keepdims)
       for n in ("argmax", "argmin")},
    "cumsum": _scan("cumulative_sum"), "cumprod": _scan("cumulative_prod"),
    "reshape": reshape, "ravel": lambda a: a.reshape(-1), "transpose": _transposed, "squeeze": squeeze,
    "permute_dims": _transposed, "swapaxes": _swapped, "moveaxis": lambda a, source, destination: xp.moveaxis(
        a, source, destination),
    "expand_dims": expand_dims, "copy": lambda a, order="K": Tensor(a),
    "broadcast_to": lambda array, shape: xp.broadcast_to(
        tensor(array), shape if isinstance(shape, tuple) else (shape,)),
    "broadcast_arrays": lambda *args: tuple(xp.broadcast_arrays(*map(tensor, args))),
    "atleast_1d": lambda *a: _at_least(a, 1)[0] if len(a) == 1 else tuple(_at_least(a, 1)),
    "atleast_2d": lambda *a: _at_least(a, 2)[0] if len(a) == 1 else tuple(_at_least(a, 2)),
    "split": split, "array_split": lambda ary, sections, axis=0: split(ary, sections, axis, is_uneven=True),
    "hsplit": lambda ary, sections: split(ary, sections, min(1, ary.ndim - 1)),
    "vsplit": lambda ary, sections: split(ary, sections, 0),
    "concatenate": concatenate, "concat": concatenate, "hstack": hstack,
    "vstack": lambda tup: concatenate(_at_least(tup, 2)), "stack": lambda arrays, axis=0: xp.stack(
        [tensor(a) for a in arrays], axis=axis),
    "flip": lambda m, axis=None: xp.flip(m, axis=axis), "flipud": lambda m: xp.flip(m, axis=0),
    "fliplr": lambda m: xp.flip(m, axis=1), "roll": lambda a, shift, axis=None: xp.roll(a, shift, axis=axis),
    "repeat": lambda a, repeats, axis=None: xp.repeat(a, repeats, axis=axis),
    "tile": lambda a, reps: xp.tile(a, reps if isinstance(reps, tuple) else (reps,)),
    "where": where, "clip": clip, "take": take, "round": lambda a, decimals=0: one("round", a, decimals=decimals),
    "take_along_axis": lambda arr, indices, axis=-1: xp.take_along_axis(arr, tensor(indices), axis=axis),
    "sort": lambda a, axis=-1, kind=None: xp.sort(a, axis=axis), "diff": diff,
    "isclose": isclose, **{f"nan{n}": _of_known(f"nan{n}", n) for n in ("sum", "prod", "max", "min")},
    "argsort": lambda a, axis=-1, kind=None: xp.argsort(a, axis=axis), "nonzero": lambda a: xp.nonzero(a),
    "dot": dot, "inner": lambda a, b: xp.tensordot(tensor(a), tensor(b), axes=((-1,), (-1,))), "einsum": einsum,
    "outer": lambda a, b: one("outer", tensor(a).reshape(-1), tensor(b).reshape(-1)),
    "tensordot": lambda a, b, axes=2: xp.tensordot(tensor(a), tensor(b), axes=axes),
    "trace": lambda a, offset=0, axis1=0, axis2=1: xp.linalg.trace(_matrices(a, axis1, axis2), offset=offset),
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: xp.linalg.diagonal(_matrices(a, axis1, axis2), offset=offset),
    "tril": lambda m, k=0: xp.tril(m, k=k), "triu": lambda m, k=0: xp.triu(m, k=k), "pad": pad,
    "real": lambda val: xp.real(val), "imag": lambda val: xp.imag(val),
    **{n: lambda *inputs, n=n, **named: bool(_of_library(n, inputs, named)) for n in ("allclose", "array_equal")},
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "size": lambda a, axis=None: (
        a.size if axis is None else a.shape[axis]),
    **{n: _like(n) for n in ("zeros_like", "ones_like", "full_like", "empty_like")},
}
OF_LINALG: dict[str, Callable[..., Any]] = {"norm": norm, "multi_dot": multi_dot, "lstsq": lstsq}

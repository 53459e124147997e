"""Calls of NumPy's functions that are operators of the library, `np.median(x, axis=0)`, in whole-array bodies."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtypes import DTYPES, whole
from ...core.expr import index
from ...frozen import frozen
from ...loop.affine import canonical
from ..numpy_signatures import OTHERS, BoundCall, Unknown, bind
from .argument_binding import as_array
from .array_products import conjugated
from .builder import Builder
from .called_composites import CalledComposite, Composites, call_composite
from .elementwise_functions import FLOAT_OF, converted, truth
from .handles import Array, spelled
from .joining import concatenate
from .reshaping import ravel
from .size_facts import floor_quotient
from .sorting_networks import short_order
from .views import expand_dims, flip, squeeze, transpose


@frozen
class NumpyOperator:
    """A function of NumPy, by its path below `numpy`, and the operator that means the same."""

    path: str
    operator: CalledComposite


def operator_of(composites: Composites, path: str, name: str | None) -> NumpyOperator | CalledComposite | None:
    """The operator that a function of NumPy is. `name`: its name if that is known to mean the same, else the
    function's own is looked for."""
    own = path.rpartition(".")[2]
    if path == "correlate":                                 # a convolution with the second array reversed
        own = name = "convolve"
    if (name is None and own in OTHERS) or (operator := composites.of_library(name or own)) is None:
        return None
    if own in OTHERS and path not in ADAPTED:
        return operator
    if function_at(path) is None:                             # in the array API standard, or in a later NumPy
        return operator if name is not None else None
    return NumpyOperator(path, operator)


def call_numpy(b: Builder, callee: NumpyOperator, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The results, as NumPy's signature reads the arguments. E327 for what the operator does not compute."""
    operator, mode = callee.operator, None
    if callee.path in VARIABLES:
        return _of_variables(b, callee, args, keywords)
    if callee.path in MODES:
        args, keywords, mode = _without_mode(args, keywords, MODES[callee.path])
    args = [v if n >= len(operator.inputs) or not isinstance(v, tuple | list) or (x := as_array(b, v)) is None else x
            for n, v in enumerate(args)]                     # numbers in a list
    try:
        bound = _bound(callee, args, keywords)
    except Unknown:
        b.fail("E327", f"np.{callee.path} is not supported with these arguments",
               f"`caten ops {operator.name}` tells what {operator.usage} computes; it is called without np.")
    arrays = [ravel(b, v) if bound.flattened and isinstance(v, Array) else v for v in bound.arrays]
    if (made := short_order(b, callee.path, arrays[0], bound.attributes)) is not None:
        return made
    are_bools = callee.path in OF_PRODUCTS and all(isinstance(v, Array) and v.dtype == "bool" for v in arrays)
    if are_bools:                                            # is a product true?
        arrays = [converted(b, "i64", v) for v in arrays]
    arrays = _of_one_type(b, operator, callee.path, arrays)
    if callee.path == "linalg.solve" and isinstance(arrays[1], Array) and arrays[1].rank == 1:
        solved = call_composite(b, operator, [arrays[0], expand_dims(b, arrays[1], 1)], bound.attributes)
        return squeeze(b, solved, -1)
    if callee.path.startswith("fft."):                      # transforms of real numbers are those of complex ones
        of_complex = {tensor.name for tensor in operator.generic if tensor.word == "Complex"}
        arrays = [_complex(b, v) if name in of_complex else v for name, v in zip(operator.inputs, arrays, strict=True)]
    if callee.path == "vecmat":                             # the vector is conjugated
        arrays[0] = conjugated(b, b.array(arrays[0]))
    if callee.path == "correlate":
        arrays[1] = flip(b, conjugated(b, b.array(arrays[1])))
    made = call_composite(b, operator, arrays, bound.attributes)
    if callee.path == "linalg.svd" and bound.attributes.get("compute_uv") is False:
        return made[1]
    if callee.path == "linalg.qr" and bound.attributes.get("mode") == "r":
        return made[1]
    if are_bools:
        made = b.array(truth(b, made))
    return made if mode is None else _overlapping(b, made, arrays, mode, callee.path)


def _of_variables(b: Builder, callee: NumpyOperator, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """`np.cov` and `np.corrcoef`: variables in rows or columns, of one array or two; of a single one a number."""
    operator = callee.operator
    try:
        arrays, are_rows, attributes = VARIABLES[callee.path](*args, **keywords)
    except (TypeError, Unknown):
        b.fail("E327", f"np.{callee.path} is not supported with these arguments",
               f"it takes the arrays, rowvar, and for np.cov bias and ddof; `caten ops {operator.name}` tells more")
    rows = [in_rows(b, b.array(x), are_rows) for x in arrays]
    together = rows[0] if len(rows) == 1 else concatenate(b, rows, 0)
    made = call_composite(b, operator, _of_one_type(b, operator, callee.path, [together]), attributes)
    return squeeze(b, made, (0, 1)) if len(arrays) == 1 and b.array(arrays[0]).rank == 1 else made


def in_rows(b: Builder, x: Array, are_rows: bool) -> Array:
    """Variables as the rows of a matrix. E330 for more than two axes."""
    if x.rank not in (1, 2):
        b.fail("E330", f"variables are a matrix or a vector, not an array of the shape {spelled(x.shape)}")
    return expand_dims(b, x, 0) if x.rank == 1 else x if are_rows else transpose(b, x, None)


def _overlapping(b: Builder, made: Array, arrays: Sequence[Any], mode: str, what: str) -> Array:
    """The part of a convolution that a mode of NumPy has; the second array is no longer than the first."""
    whole_, part = [b.array(v).shape[0] for v in arrays]
    b.require(part <= whole_, "E326", f"np.{what} with the mode '{mode}' takes a second array that is no longer than "
              "the first", "exchange them")
    first = canonical(part - 1) if mode == "valid" else floor_quotient(canonical(part - 1), index(2))
    count = canonical(whole_ - part + 1) if mode == "valid" else whole_
    return b.view(made, (count,), lambda i: (canonical(i[0] + first),))


def _of_one_type(b: Builder, operator: CalledComposite, path: str, arrays: Sequence[Any]) -> list[Any]:
    """Arrays whose elements the operator wants of one type in that which holds all of them; integers as floats where it
    is for floats."""
    words = {tensor.name: tensor.word for tensor in operator.generic if tensor.variable}
    kinds: dict[str, str] = {}
    for name, value in zip(operator.inputs, arrays, strict=True):
        if (word := words.get(name)) and isinstance(value, Array):
            kinds[word] = b.typing.join_kinds(kinds.get(word, value.dtype), value.dtype, b.pos, f"np.{operator.name}")
    of_elements = type(function_at(path)).__name__ == "ufunc"
    for word, dtype in kinds.items():
        if word.lower() in ("floating", "inexact") and DTYPES[dtype].kind in ("int", "uint", "bool"):
            kinds[word] = FLOAT_OF.get(dtype, "f64") if of_elements else "f64"
    return [converted(b, kinds[words[name]], v) if isinstance(v, Array) and words.get(name) in kinds else v
            for name, v in zip(operator.inputs, arrays, strict=True)]


def _complex(b: Builder, value: Any) -> Any:
    if isinstance(value, Array) and (dtype := whole(value.dtype)):
        return converted(b, dtype, value)
    return value


def _without_mode(args: Sequence[Any], keywords: Mapping[str, Any],
                  otherwise: str) -> tuple[Sequence[Any], Mapping[str, Any], Any]:
    """The arguments of np.convolve or np.correlate, and the mode if that is a part of the whole."""
    mode = keywords.get("mode", args[2] if len(args) == 3 else otherwise)
    if mode in ("valid", "same", "full"):
        return args[:2], {n: v for n, v in keywords.items() if n != "mode"}, mode if mode != "full" else None
    return args, keywords, None


def _bound(callee: NumpyOperator, args: Sequence[Any], keywords: Mapping[str, Any]) -> BoundCall:
    path, operator = callee.path, callee.operator
    if path in ADAPTED:
        try:
            return ADAPTED[path](*args, **keywords)
        except TypeError:
            raise Unknown from None
    if path in ("sort", "argsort"):                         # they are stable, whatever is asked for
        args, keywords = args[:2], {n: v for n, v in keywords.items() if n not in ("kind", "stable")}
    function = function_at("convolve" if path == "correlate" else path)
    return bind(function, operator.inputs, [name for name, _ in operator.attributes], args, keywords)


def _searchsorted(a: Any, v: Any, side: Any = "left") -> BoundCall:
    if side not in ("left", "right"):
        raise Unknown
    return BoundCall((a, v), {"right": side == "right"})


def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = None) -> BoundCall:
    """The bound has two names; that a matrix is symmetric changes how, not what."""
    if hermitian not in (False, True) or (rcond is not None and rtol is not None):
        raise Unknown
    found = rcond if rtol is None else rtol
    return BoundCall((a,), {} if found is None else {"rtol": found})


def _shifted(x: Any, axes: Any = None) -> BoundCall:
    """One axis is a list of it."""
    return BoundCall((x,), {} if axes is None else {"axes": (axes,) if isinstance(axes, int) else axes})


def _cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None) -> Any:
    if not all(isinstance(v, bool | int) for v in (rowvar, bias, ddof or 0)):
        raise Unknown
    return [x for x in (m, y) if x is not None], bool(rowvar), {"ddof": ddof if ddof is not None else int(not bias)}


def _corrcoef(x: Any, y: Any = None, rowvar: Any = True) -> Any:
    if not isinstance(rowvar, bool | int):
        raise Unknown
    return [v for v in (x, y) if v is not None], bool(rowvar), {}


# Functions of variables, as arrays, whether they are in rows, and the attributes of the operator.
VARIABLES: dict[str, Callable[..., Any]] = {"cov": _cov, "corrcoef": _corrcoef}
# Functions with a mode, and the one that they have where none is given.
MODES = {"convolve": "full", "correlate": "valid"}
OF_PRODUCTS = ("convolve", "correlate", "kron")             # sums of products, of bools too
# Where the operator's attributes are others than NumPy's.
ADAPTED: dict[str, Callable[..., BoundCall]] = {"searchsorted": _searchsorted, "linalg.pinv": _pinv,
                                                **{f"fft.{name}": _shifted for name in ("fftshift", "ifftshift")}}


def function_at(path: str) -> Any:
    """What NumPy has at a path: `linalg.cond`. None if it has nothing to call."""
    import numpy as found

    value: Any = found
    for part in path.split("."):
        value = getattr(value, part, None)
    return value if callable(value) else None

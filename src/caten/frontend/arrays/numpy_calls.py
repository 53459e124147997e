"""Calls of NumPy's functions that are operators of the library, `np.median(x, axis=0)`, in whole-array bodies."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtypes import whole
from ...frozen import frozen
from ..numpy_signatures import OTHERS, BoundCall, Unknown, bind
from .builder import Builder
from .called_composites import CalledComposite, Composites, call_composite
from .elementwise_functions import converted
from .handles import Array
from .reshaping import ravel


@frozen
class NumpyOperator:
    """A function of NumPy, by its path below `numpy`, and the operator that means the same."""

    path: str
    operator: CalledComposite


def operator_of(composites: Composites, path: str, name: str | None) -> NumpyOperator | CalledComposite | None:
    """The operator that a function of NumPy is. `name`: its name if that is known to mean the same, else the
    function's own is looked for."""
    own = path.rpartition(".")[2]
    if name is None and path in PERCENTILES:
        name = PERCENTILES[path]
    if (name is None and own in OTHERS) or (operator := composites.of_library(name or own)) is None:
        return None
    if own in OTHERS and path not in ADAPTED:
        return operator
    if _function(path) is None:                             # in the array API standard, or in a later NumPy
        return operator if name is not None else None
    return NumpyOperator(path, operator)


def call_numpy(b: Builder, callee: NumpyOperator, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The results, as NumPy's signature reads the arguments. E327 for what the operator does not compute."""
    operator = callee.operator
    try:
        bound = _bound(callee, args, keywords)
    except Unknown:
        b.fail("E327", f"np.{callee.path} is not supported with these arguments",
               f"`caten ops {operator.name}` tells what {operator.usage} computes; it is called without np.")
    arrays = [ravel(b, v) if bound.flattened and isinstance(v, Array) else v for v in bound.arrays]
    if callee.path.startswith("fft."):                      # transforms of real numbers are those of complex ones
        of_complex = {tensor.name for tensor in operator.generic if tensor.word == "Complex"}
        arrays = [_complex(b, v) if name in of_complex else v for name, v in zip(operator.inputs, arrays, strict=True)]
    return call_composite(b, operator, arrays, bound.attributes)


def _complex(b: Builder, value: Any) -> Any:
    if isinstance(value, Array) and (dtype := whole(value.dtype)):
        return converted(b, dtype, value)
    return value


def _bound(callee: NumpyOperator, args: Sequence[Any], keywords: Mapping[str, Any]) -> BoundCall:
    path, operator = callee.path, callee.operator
    if path in ADAPTED:
        try:
            return ADAPTED[path](*args, **keywords)
        except TypeError:
            raise Unknown from None
    if path in PERCENTILES:
        path = PERCENTILES[path]
        args, keywords = [*args[:1], *map(_share, args[1:2]), *args[2:]], {
            name: _share(value) if name == "q" else value for name, value in keywords.items()}
    return bind(_function(path), operator.inputs, [name for name, _ in operator.attributes], args, keywords)


def _share(percent: Any) -> float:
    if not isinstance(percent, int | float):
        raise Unknown
    return percent / 100


def _searchsorted(a: Any, v: Any, side: Any = "left") -> BoundCall:
    if side not in ("left", "right"):
        raise Unknown
    return BoundCall((a, v), {"right": side == "right"})


PERCENTILES = {"percentile": "quantile", "nanpercentile": "nanquantile"}
# Where the operator's attributes are others than NumPy's.
ADAPTED: dict[str, Callable[..., BoundCall]] = {"searchsorted": _searchsorted}


def _function(path: str) -> Any:
    """What NumPy has at a path: `linalg.cond`. None if it has nothing to call."""
    import numpy as found

    value: Any = found
    for part in path.split("."):
        value = getattr(value, part, None)
    return value if callable(value) else None

"""Calls of NumPy's functions as operators of the library that have their names."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from caten.frontend import operator_library
from caten.frontend.numpy_signatures import OTHERS, Unknown, bind

from .tensor import Tensor, apply, tensor


def call(function: Callable[..., Any], name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The results of the operator of that name. Unknown where NumPy means something else."""
    if name in OTHERS or operator_library.find(name) is None:
        raise Unknown
    inputs, attributes = _declared(name)
    bound = bind(function, tuple(inputs), attributes, given, named)
    arrays = [tensor(v).reshape(-1) for v in bound.arrays] if bound.flattened else bound.arrays
    return apply(name, *[_of_class(v, word) for v, word in zip(arrays, inputs.values(), strict=True)],
                 **bound.attributes)


def _of_class(value: Any, word: str) -> Any:
    """Integers and bools as float64 for an operator of floats."""
    is_whole = isinstance(value, Tensor) and value.dtype.kind in ("int", "uint", "bool")
    return value.astype("float64") if is_whole and word in ("Floating", "Inexact") else value


@cache
def _declared(name: str) -> tuple[dict[str, str], frozenset[str]]:
    """The inputs of an operator, with the words for their types, and its attributes."""
    entry = operator_library.find(name)
    assert entry is not None
    table = entry.table
    return (dict([text.split("}")[0].split("{") for text in table["inputs"]]),
            frozenset([text.split("=")[0].strip() for text in table.get("attributes", ())]))

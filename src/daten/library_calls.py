"""Calls of NumPy's functions as operators of the library that have their names."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from caten.frontend import operator_library
from caten.frontend.numpy_signatures import OTHERS, Unknown, bind

from .tensor import apply, tensor


def call(function: Callable[..., Any], name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The results of the operator of that name. Unknown where NumPy means something else."""
    if name in OTHERS or operator_library.find(name) is None:
        raise Unknown
    bound = bind(function, *_declared(name), given, named)
    arrays = [tensor(v).reshape(-1) for v in bound.arrays] if bound.flattened else bound.arrays
    return apply(name, *arrays, **bound.attributes)


@cache
def _declared(name: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The inputs and the attributes of an operator."""
    entry = operator_library.find(name)
    assert entry is not None
    table = entry.table
    return (tuple([text.split("{")[0] for text in table["inputs"]]),
            frozenset([text.split("=")[0].strip() for text in table.get("attributes", ())]))

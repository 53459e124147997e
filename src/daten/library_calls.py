"""Calls of NumPy's functions as operators of the library that have their names: the arguments by NumPy's signature.

An operator stands for the call only if it means the same: its attributes get NumPy's defaults (`axis=None` is the
flattened array), and an argument that it has not must have NumPy's default.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from caten.frontend import operator_library

from .tensor import Tensor, apply, tensor

# Operators whose results are others: of another shape, of a length of their own, of complex numbers only.
OTHERS = frozenset(("histogram", "bincount", "vander", "angle", "unravel_index", "diag", "searchsorted", "correlate",
                    "ravel_multi_index"))


class Unknown(Exception):
    """No operator computes this."""


def call(function: Callable[..., Any], name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The results of the operator of that name. Unknown where NumPy means something else."""
    if name in OTHERS or operator_library.find(name) is None:
        raise Unknown
    inputs, attributes = _declared(name)
    parameters = _parameters(function)
    if parameters is None:                                # a function in C tells nothing of its arguments
        if len(given) != len(inputs) or not named.keys() <= attributes:
            raise Unknown
        return apply(name, *given, **named)
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*given, **named).arguments
    except TypeError:
        raise Unknown from None
    arrays = [bound.pop(each) for each in [*bound][:len(inputs)]]
    if len(arrays) != len(inputs) or any(isinstance(v, tuple | list) for v in arrays):
        raise Unknown
    passed: dict[str, Any] = {}
    for each, parameter in list(parameters.items())[len(inputs):]:
        value = bound.get(each, parameter.default)
        if each == "axis" and value is None and "axis" in attributes:
            arrays, value = _flattened(arrays, bound), -1
        if each in attributes and value is not None:      # None is what the operator has by itself
            passed[each] = value
        elif each in attributes:
            continue
        elif value is not parameter.default and (isinstance(value, Tensor | np.ndarray) or value != parameter.default):
            raise Unknown
    if isinstance(passed.get("axis"), tuple):
        raise Unknown
    return apply(name, *arrays, **{n: v for n, v in passed.items() if v is not np._NoValue})


def _flattened(arrays: Sequence[Any], bound: Mapping[str, Any]) -> list[Any]:
    """The only array, flattened."""
    if len(arrays) != 1 or bound.get("keepdims"):
        raise Unknown
    return [tensor(arrays[0]).reshape(-1)]


@cache
def _declared(name: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The inputs and the attributes of an operator."""
    entry = operator_library.find(name)
    assert entry is not None
    table = entry.table
    return (tuple([text.split("{")[0] for text in table["inputs"]]),
            frozenset([text.split("=")[0].strip() for text in table.get("attributes", ())]))


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return None

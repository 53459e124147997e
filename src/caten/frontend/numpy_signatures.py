"""NumPy's functions as operators of the library that have their names: the arguments of a call by NumPy's signature.

An operator stands for the call only if it means the same: its attributes get NumPy's defaults (`axis=None` is the
flattened array), and an argument that it has not must have NumPy's default.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from ..frozen import frozen

# Operators whose results are others: of another shape, of a length of their own, of complex numbers only.
OTHERS = frozenset(("histogram", "bincount", "vander", "angle", "unravel_index", "diag", "searchsorted", "correlate",
                    "ravel_multi_index"))


class Unknown(Exception):
    """No operator computes this."""


@frozen
class BoundCall:
    """The arguments of an operator. `flattened`: its only array is meant as one axis."""

    arrays: tuple[Any, ...]
    attributes: dict[str, Any]
    flattened: bool = False


def bind(function: Callable[..., Any], inputs: Sequence[str], attributes: Collection[str], given: Sequence[Any],
         named: Mapping[str, Any]) -> BoundCall:
    """The arguments of the operator with these inputs and attributes for a call of a function of NumPy. Unknown where
    the operator means something else, or a function in C, which tells nothing of its arguments, is called otherwise
    than by position."""
    parameters = _parameters(function)
    if parameters is None:
        if len(given) != len(inputs) or not named.keys() <= set(attributes):
            raise Unknown
        return BoundCall(tuple(given), dict(named))
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*given, **named).arguments
    except TypeError:
        raise Unknown from None
    arrays = tuple([bound.pop(each) for each in [*bound][:len(inputs)]])
    if len(arrays) != len(inputs) or any(isinstance(v, tuple | list) for v in arrays):
        raise Unknown
    passed: dict[str, Any] = {}
    flattened = False
    for each, parameter in list(parameters.items())[len(inputs):]:
        value = bound.get(each, parameter.default)
        if each == "axis" and value is None and "axis" in attributes:
            if len(arrays) != 1 or bound.get("keepdims"):
                raise Unknown
            flattened, value = True, -1
        if each in attributes:
            if value is not None and not _is_no_value(value):      # None is what the operator has by itself
                passed[each] = value
        elif value is not parameter.default and (hasattr(value, "shape") or value != parameter.default):
            raise Unknown
    if isinstance(passed.get("axis"), tuple):
        raise Unknown
    return BoundCall(arrays, passed, flattened)


def _is_no_value(value: Any) -> bool:
    """NumPy's mark for an argument that is not given."""
    return type(value).__name__ == "_NoValueType"


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return None

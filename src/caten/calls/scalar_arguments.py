"""Scalar and size arguments of a call: which values a call accepts, and their conversion for C."""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..core.dtypes import DTYPES, FORMATS, is_short, rounds_to_infinity, short_bits
from ..core.size_inference import GREATEST_SIZE
from ..echo import spelled
from ..errors import CatenError, error

Argument = Mapping[str, Any]                 # one argument of a manifest


def size(name: str, value: Any, op: str) -> int:
    """A size that was given by name: E708 for no integer, E710 outside 0 … 2^40."""
    try:
        number = operator.index(value)
    except TypeError:
        raise error("E708", f"{op}: the size {name} must be an integer, not "
                            f"{'None' if value is None else f'a {type(value).__name__}'}") from None
    if not 0 <= number <= GREATEST_SIZE:
        raise error("E710", f"{op}: the size {name} is {spelled(number)}; sizes go from 0 to 2^40")
    return number


def scalar(argument: Argument, op: str) -> Callable[[Any], Any]:
    """A function that converts a scalar for the C call. E708 for a wrong type, E709 outside the type's range."""
    dtype, name = DTYPES[argument["dtype"]], argument["name"]
    greatest = FORMATS[dtype.name][2] if dtype.kind == "float" else 0.0

    def wrong(value: Any, wanted: str) -> CatenError:
        return error("E708", f"{op}: {name} must be {wanted}, not "
                             f"{'None' if value is None else f'a {type(value).__name__}'}")

    def integer(value: Any) -> int:
        try:
            number = int(value) if type(value).__name__ in ("int4", "uint4") else operator.index(value)
        except TypeError:
            raise wrong(value, "an integer") from None
        if not dtype.least <= number <= dtype.greatest:
            raise error("E709", f"{op}: {name} is {spelled(number)}, outside the range of {dtype.numpy}, "
                                f"{dtype.least} to {dtype.greatest}")
        return number

    def real(value: Any) -> float:
        if isinstance(value, str | bytes) or "complex" in type(value).__name__ or not (hasattr(value, "__float__")
                                                                                       or hasattr(value, "__index__")):
            raise wrong(value, "a number")
        try:
            number = float(value)
        except TypeError:
            raise wrong(value, "a number") from None
        except OverflowError:
            raise error("E709", f"{op}: {name} is outside the range of {dtype.numpy}") from None
        if abs(number) > greatest and rounds_to_infinity(number, dtype.name):
            raise error("E709", f"{op}: {name} is {number}, outside the range of {dtype.numpy}")
        return number

    def short(value: Any) -> int:
        return short_bits(real(value), dtype.name)

    def truth(value: Any) -> int:
        if type(value).__name__ not in ("bool", "bool_"):
            raise wrong(value, "True or False")
        return int(bool(value))

    def pair(value: Any) -> tuple[float, float]:
        if isinstance(value, str | bytes) or not any(hasattr(value, m)
                                                     for m in ("__complex__", "__float__", "__index__")):
            raise wrong(value, "a complex number")
        try:
            number = complex(value)
        except OverflowError:
            raise error("E709", f"{op}: {name} is outside the range of {dtype.numpy}") from None
        return number.real, number.imag

    convert: Callable[[Any], Any] = {"int": integer, "uint": integer, "float": short if is_short(dtype.name) else real,
                                     "bool": truth,
                                     "complex": pair}[dtype.kind]

    def lone(value: Any) -> Any:
        if not hasattr(value, "ndim"):
            return convert(value)
        if value.ndim:
            raise error("E708", f"{op}: {name} must be a number, not an array of shape {tuple(value.shape)}")
        return convert(_element(value))

    return lone


def _element(value: Any) -> Any:
    """The element of an array without axes: a numpy scalar, or a Python number for arrays of other libraries."""
    import numpy as np
    if isinstance(value, np.generic):
        return value
    if isinstance(value, np.ndarray):
        return value[()]
    return value.item() if hasattr(value, "item") else value

"""Functions that work element by element."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..element_types import DType
from ..operands import nearest
from ..tensor import Tensor, one
from .data_types import complex64, complex128, float32, isdtype

# Functions of complex numbers that the library has not, and NumPy computes at once: their names there.
OF_COMPLEX = {n: n for n in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "exp", "expm1", "log", "log1p", "log2",
                             "log10", "sqrt")}
OF_COMPLEX |= {f"a{n}": f"arc{n}" for n in ("cos", "cosh", "sin", "sinh", "tan", "tanh")}



def _unary(name: str, operator: str = "", kept: Any = "", bools: str = "") -> Any:
    """A function of the standard that calls an operator of the library. `kept`: the kinds of arrays that it returns
    unchanged. `bools`: the operator for bools."""
    def function(x: Tensor, /) -> Tensor:
        if kept and isdtype(x.dtype, kept):
            return Tensor(x)
        if name in OF_COMPLEX and isdtype(x.dtype, "complex floating"):
            return Tensor(getattr(np, OF_COMPLEX[name])(x.numpy()))
        return one(bools if bools and x.dtype == "bool" else operator or name, x)
    return _named(function, name)


def _binary(name: str, operator: str = "", bools: str = "") -> Any:
    """A function of two operands; one may be a Python number."""
    def function(x1: Any, x2: Any, /) -> Tensor:
        given = _together((x1, x2))
        return one(bools if bools and given[0].dtype == "bool" else operator or name, *given)
    return _named(function, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}, element by element."
    return function


def _together(arrays: tuple[Any, ...]) -> list[Tensor]:
    """The operands as tensors; Python numbers get the element type of the others. TypeError if there is no array."""
    like = next((a for a in arrays if isinstance(a, Tensor)), None)
    if like is None:
        raise TypeError("one of the operands has to be an array")
    return [a if isinstance(a, Tensor) else Tensor(np.asarray(a), _beside(a, like.dtype)) for a in arrays]


def _beside(value: Any, dtype: DType) -> DType:
    if isinstance(value, complex) and isdtype(dtype, "real floating"):
        return complex64 if dtype == float32 else complex128
    return dtype


acos, acosh, asin, asinh, atan, atanh = [_unary(n) for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh")]
cos, cosh, sin, sinh, tan, tanh = [_unary(n) for n in ("cos", "cosh", "sin", "sinh", "tan", "tanh")]
exp, expm1, log, log1p, log2, log10, sqrt = [
    _unary(n) for n in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt")]
negative, reciprocal, square, signbit = [_unary(n) for n in ("negative", "reciprocal", "square", "signbit")]
floor, ceil, trunc = [_unary(n, kept="integral") for n in ("floor", "ceil", "trunc")]
conj, imag = _unary("conj", kept=("integral", "real floating")), _unary("imag")
logical_not, bitwise_invert = _unary("logical_not"), _unary("bitwise_invert", "bitwise_not", bools="logical_not")
atan2, hypot, logaddexp, copysign = [_binary(n) for n in ("atan2", "hypot", "logaddexp", "copysign")]
add, subtract, multiply, divide, floor_divide, remainder = [
    _binary(n) for n in ("add", "subtract", "multiply", "divide", "floor_divide", "remainder")]
maximum, minimum, equal, not_equal = [_binary(n) for n in ("maximum", "minimum", "equal", "not_equal")]
less, less_equal, greater, greater_equal = [_binary(n) for n in ("less", "less_equal", "greater", "greater_equal")]
logical_and, logical_or, logical_xor = [_binary(n) for n in ("logical_and", "logical_or", "logical_xor")]
bitwise_and, bitwise_or, bitwise_xor = [
    _binary(f"bitwise_{n}", bools=f"logical_{n}") for n in ("and", "or", "xor")]
bitwise_left_shift = _binary("bitwise_left_shift", "left_shift")
bitwise_right_shift = _binary("bitwise_right_shift", "right_shift")


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return one("real", x) if isdtype(x.dtype, "complex floating") else Tensor(x)


def positive(x: Tensor, /) -> Tensor:
    """The array itself: +x."""
    return Tensor(x)


def abs(x: Tensor, /) -> Tensor:
    """The absolute value of each element; for complex numbers a real number."""
    return x.__abs__() if not isdtype(x.dtype, "unsigned integer") else Tensor(x)


def pow(x1: Any, x2: Any, /) -> Tensor:
    """x1 to the power of x2, element by element."""
    a, b = _together((x1, x2))
    if isdtype(a.dtype, "complex floating") or isdtype(b.dtype, "complex floating"):
        return Tensor(np.power(a.numpy(), b.numpy()))
    return a ** b


def round(x: Tensor, /) -> Tensor:
    """The nearest integer of each element; halves are rounded to the even integer."""
    if isdtype(x.dtype, "integral"):
        return Tensor(x)
    if isdtype(x.dtype, "complex floating"):
        return _complex(one("round", real(x)), one("round", imag(x)))
    return one("round", x)


def sign(x: Tensor, /) -> Tensor:
    """The sign of each element: -1, 0 or 1; for complex numbers x / |x|, or 0 for x = 0."""
    if not isdtype(x.dtype, "complex floating"):
        return one("sign", x)
    size = abs(x)
    return one("where", size == 0, 0.0, 1.0).astype(x.dtype) * x / one(
        "where", size == 0, 1.0, size).astype(x.dtype)


def isnan(x: Tensor, /) -> Tensor:
    """True for each element that is NaN; for complex numbers, if a part is NaN."""
    return _of_parts("isnan", x, any=True)


def isinf(x: Tensor, /) -> Tensor:
    """True for each infinite element; for complex numbers, if a part is infinite."""
    return _of_parts("isinf", x, any=True)


def isfinite(x: Tensor, /) -> Tensor:
    """True for each element that is neither NaN nor infinite."""
    return _of_parts("isfinite", x, any=False)


def _of_parts(name: str, x: Tensor, any: bool) -> Tensor:
    if isdtype(x.dtype, "complex floating"):
        a, b = one(name, real(x)), one(name, imag(x))
        return a | b if any else a & b
    if not isdtype(x.dtype, "real floating"):
        return Tensor(np.full(x.shape, not any))
    return one(name, x)


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next representable number after x1 in the direction of x2."""
    return one("nextafter", *_together((x1, x2)))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit each element to the range from `min` to `max`. Either may be omitted; a NaN in x or in a limit gives
    NaN. An integer beyond the element type limits nothing more than the least or the greatest of it."""
    made = x
    for bound, operator in ((min, "maximum"), (max, "minimum")):
        if bound is not None:
            limit = bound.astype(x.dtype) if isinstance(bound, Tensor) else nearest(bound, x.dtype.caten)
            made = one(operator, made, limit)
    return Tensor(made)


def _complex(re: Tensor, im: Tensor) -> Tensor:
    """re + i · im."""
    wide = "complex64" if re.dtype == "float32" else "complex128"
    return re.astype(wide) + im.astype(wide) * 1j


__all__ = sorted(n for n, v in globals().items() if callable(v) and not n.startswith("_")
                 and getattr(v, "__module__", "") == __name__)


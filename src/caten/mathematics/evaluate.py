"""The exact meaning of every row of the operator table, on numpy scalars and, elementwise, on numpy arrays.

This is the reference: the interpreter, the folding of floats and the conformance cases all come here. One table per
kind of element; a row is a function of operands of equal element type. Callers run under
`numpy.errstate(all="ignore")`, which `apply` sets itself: overflow wraps or gives inf.

Functions of float32 are computed in float64 and rounded once, so they are correctly rounded but for rare ties; those of
float64 are the C library's by way of `math`, as numpy's own vector versions may be 4 units in the last place off."""
from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES, computed, is_packed, is_short, part
from ..core.numpy_types import numpy_dtype
from ..core.scalars import OPERATORS
from .double_double import two_sum
from .special import LGAMMA_AT_2

Function = Callable[..., Any]


def numpy_type(dtype: str) -> Any:
    """The numpy scalar class of an element type."""
    return numpy_dtype(dtype).type


def apply(fn: str, args: tuple[Any, ...] | list[Any], dtype: str) -> Any:
    """Operator `fn` on numpy values. `dtype`: the element type of its operands (of the arms, for `where`), which plain
    Python numbers take."""
    like = numpy_type(dtype)
    typed = [a if isinstance(a, (np.ndarray, np.generic)) else np.bool_(a) if fn == "where" and n == 0 else like(a)
             for n, a in enumerate(args)]
    with np.errstate(all="ignore"):
        return function(fn, dtype)(*typed)


def function(fn: str, dtype: str) -> Function:
    """The function of an operator on operands of an element type."""
    if is_short(dtype) and fn != "where":
        return _short(fn, dtype)
    kind = DTYPES[dtype].kind
    return TABLES["f32" if dtype == "f32" else "f64" if kind == "float" else kind][fn]


def choose(x: Any, y: Any, z: Any) -> Any:
    """y if x else z; on arrays lane by lane."""
    if np.ndim(x) == 0 and np.ndim(y) == np.ndim(z) == 0:
        return y if x else z
    return np.where(x, y, z)


def _short(fn: str, dtype: str) -> Function:
    """An operator on 16-bit floats: computed in float32, and rounded where it gives a float."""
    wide = function(fn, computed(dtype))

    def compute(*args: Any) -> Any:
        result = wide(*[np.asarray(a).astype(np.float32)[()] for a in args])
        return result if OPERATORS[fn].gives == "bool" else cast(result, "f32", dtype)
    return compute


# Integers.

def _truncdiv(x: Any, y: Any) -> Any:
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(quotient.dtype)


def _clip(x: Any, y: Any, z: Any) -> Any:
    return np.minimum(np.maximum(x, y), z)


def _relu(x: Any) -> Any:
    return np.maximum(x, x.dtype.type(0))


# Fused multiply-add.

def _round_to_odd(total: Any, error: Any) -> Any:
    """The sum total + error (as two_sum gives it) rounded to odd: rounding that once more, to fewer bits, then errs by
    that rounding only (Boldo, Melquiond: Emulation of FMA and correctly rounded sums, 2008)."""
    if not np.count_nonzero(error):                                                    # often: of small integers
        return total
    even = (np.asarray(total, np.float64).view(np.int64) & 1) == 0
    return np.where(even & (error != 0) & np.isfinite(total), np.nextafter(total, np.where(error > 0, np.inf, -np.inf)),
                    total)


def _fma32(x: Any, y: Any, z: Any) -> Any:
    product = np.float64(x) * np.float64(y)                                # 48 bits: exact
    return _round_to_odd(*two_sum(product, np.float64(z))).astype(np.float32)[()]


def _fma64_one(x: float, y: float, z: float) -> float:
    if math.isfinite(x) and math.isfinite(y) and not math.isfinite(z):
        return z                                                           # however large the product is
    if not (math.isfinite(x) and math.isfinite(y)):
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z                                                   # for the sign of zero
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _elementwise(one: Callable[..., float]) -> Function:
    """A function of Python floats, on numpy scalars and arrays; the result is float64."""
    each = np.frompyfunc(one, one.__code__.co_argcount, 1)

    def over(*args: Any) -> Any:
        if all(isinstance(a, (float, np.generic)) or a.ndim == 0 for a in args):
            return np.float64(one(*[float(a) for a in args]))
        return each(*[np.asarray(a, np.float64) for a in args]).astype(np.float64)
    return over


# Floating-point functions.

def _total(name: str) -> Callable[..., float]:
    """`math.name` without its exceptions: NaN outside the domain, infinity at a pole or on overflow, as IEEE 754 has
    it."""
    compute: Callable[..., float] = getattr(math, name)
    otherwise: Callable[..., Any] = getattr(np, OPERATORS[name].numpy or "positive")
    if name in ("pow", "hypot", "atan2"):
        def two(x: float, y: float) -> float:
            try:
                return compute(x, y)
            except (ValueError, OverflowError):
                return float(otherwise(np.float64(x), np.float64(y)))
        return two

    def single(x: float) -> float:
        try:
            return compute(x)
        except (ValueError, OverflowError):
            return math.inf if name == "lgamma" else float(otherwise(np.float64(x)))
    return single


@cache
def _lgamma_of_c() -> Callable[[float], float]:
    """The C library's, which is accurate near the zeros between negative integers, where Python's own is not; Python's
    where it cannot be had."""
    try:
        function = ctypes.CDLL(None).lgamma
    except (OSError, AttributeError):
        return _total("lgamma")
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
    called: Callable[[float], float] = function
    return called


def _lgamma(x: float) -> float:
    """They are accurate in the absolute sense only where the result is small: there the Taylor series at 2, and Γ(x +
    1) = x Γ(x)."""
    if not 0.5 < x < 8:
        return _lgamma_of_c()(x)
    factors = 1.0
    while x >= 2.5:
        x -= 1
        factors *= x
    z = x - 2 if x >= 1.5 else x - 1
    terms = [c * z**k for k, c in enumerate(LGAMMA_AT_2)]
    return math.fsum([*terms, math.log(factors) if x >= 1.5 else -math.log1p(z)])


def _sigmoid(x: float) -> float:
    small = math.exp(-abs(x))                       # never overflows
    return small / (1 + small) if x < 0 else 1 / (1 + small)


MATH: tuple[str, ...] = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "cbrt", "sin", "cos",
                         "tan", "asin", "acos", "atan",
                         "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc")


def _rsqrt64(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _cbrt64(x: Any) -> Any:
    """By way of long double, where there is one: C libraries are off by up to 4 units in the last place."""
    return np.float64(np.cbrt(np.longdouble(x)))


_MATH64: dict[str, Function] = {
    **{name: _elementwise(_total(name)) for name in MATH}, "lgamma": _elementwise(_lgamma),
                                "sigmoid": _elementwise(_sigmoid), "rsqrt": _rsqrt64,
    "cbrt": _cbrt64,
}


def _rounded(function64: Function) -> Function:
    """A function of float64 on float32: computed wide and rounded once."""
    def narrow(*args: Any) -> Any:
        return np.float32(function64(*[np.float64(a) for a in args]))
    return narrow


def _with_parts(x: Any, y: Any) -> Any:
    """x + iy; a product with i would make NaN of infinities."""
    made = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(x, y, np.complex64))
    made.real, made.imag = x, y
    return made[()]


def _modulus(x: Any) -> Any:
    """Rounded once from float64, as other functions of float32 are."""
    return np.hypot(np.float64(x.real), np.float64(x.imag)).astype(x.real.dtype)


# One function per operator for every kind of element that it accepts. Python's operators are quicker on numpy scalars.
# A zero divisor of integers gives 0; a shift gives 0 or the sign from the width on, and for negative counts.
COMMON: dict[str, Function] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": np.absolute, "sign": np.sign, "floordiv": np.floor_divide, "mod": np.remainder, "truncmod": np.fmod,
    "clip": _clip, "relu": _relu, "max": np.maximum, "min": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert,
    "shl": np.left_shift, "shr": np.right_shift,
    "lt": operator.lt, "gt": operator.gt, "le": operator.le, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "where": choose, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sqrt": np.sqrt,
    "isnan": np.isnan, "isinf": np.isinf, "real": np.real, "imag": np.imag, "conj": np.conjugate,
    "complex": _with_parts,
}
_INTEGER: dict[str, Function] = {"truncdiv": _truncdiv, "fma": lambda x, y, z: x * y + z}
_FLOAT: dict[str, Function] = {"truncdiv": lambda x, y: np.trunc(x / y)}
# Element type or kind -> its functions.
TABLES: dict[str, dict[str, Function]] = {
    name: {fn: f for fn,
           f in (COMMON | own).items() if OPERATORS[fn].accepts("float" if name in ("f32", "f64") else name)}
    for name, own in {
        "bool": {}, "int": _INTEGER, "uint": _INTEGER, "complex": {"abs": _modulus},
        "f64": _FLOAT | _MATH64 | {"fma": _elementwise(_fma64_one)},
        "f32": _FLOAT | {name: _rounded(f) for name, f in _MATH64.items()} | {"fma": _fma32}}.items()}


# Conversions.

def cast(x: Any, source: str, target: str) -> Any:
    """`(cast target x)`: to bool is x ≠ 0, float to integer saturates and maps NaN to 0, to a narrower integer wraps,
    to a float rounds."""
    to, kind = numpy_type(target), DTYPES[source].kind
    if target == "bool":
        return np.asarray(x != 0)[()]
    if kind == "complex" and DTYPES[target].kind != "complex":
        return cast(np.real(x), part(source), target)
    if target == "bf16" and source not in ("f16", "bf16", "f32", "bool"):
        return np.asarray(_near_odd(x)).astype(to)[()]
    if is_packed(source) and is_packed(target):
        x = np.asarray(x).astype(np.int8)                     # ml_dtypes has no conversion between the two
    if kind != "float" or DTYPES[target].kind not in ("int", "uint"):
        return np.asarray(x).astype(to)[()]
    return _saturate(x, DTYPES[target].least, DTYPES[target].greatest, to)


def _saturate(x: Any, least: int, greatest: int, to: Any) -> Any:
    whole = np.trunc(np.asarray(x, np.float64))
    above, below = whole >= float(greatest + 1), whole < float(least)       # both are powers of two or zero: exact
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(to)
    return np.where(above, to(greatest), np.where(below, to(least), inside))[()]


def _near_odd(x: Any) -> Any:
    """A float64 or integer as a float32 rounded to odd, so that rounding it to bfloat16, which ml_dtypes does by way of
    float32, rounds once."""
    given = np.asarray(x)
    wide = given.astype(np.float64)
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        low = given & given.dtype.type(2047)
        odd = given - low + np.where(low != 0, 1024, 0).astype(given.dtype)
        wide = np.where(np.abs(wide) < 2.0**53, wide, odd.astype(np.float64))
    single = wide.astype(np.float32)
    lost = wide - single
    even = (single.view(np.int32) & 1) == 0
    toward = np.where(lost > 0, np.float32(np.inf), np.float32(-np.inf))
    return np.where(even & (lost != 0) & np.isfinite(single), np.nextafter(single, toward), single)


def bitcast(x: Any, target: str) -> Any:
    """`(bitcast target x)`: the same bits as another type of the same size; any non-zero byte is true."""
    if target == "bool":
        return np.asarray(np.asarray(x).view(np.uint8) != 0)[()]
    return np.asarray(x).view(numpy_type(target))[()]

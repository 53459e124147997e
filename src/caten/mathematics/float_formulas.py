"""Building blocks of float formulas: operators as functions, series, rounding, exact sums and products."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.expr import Bitcast, Cast, Expr, Op, number
from .double_double import two_sum

INF = float("inf")
BITS = {"f32": ("u32", 0x7FFFFFFF), "f64": ("u64", 0x7FFFFFFFFFFFFFFF)}


def op(fn: str, *args: Expr) -> Expr:
    """An operator applied."""
    return Op(fn, args)


def where(cond: Expr, then: Expr | float, otherwise: Expr | float) -> Expr:
    """then if cond else otherwise; one of them may be a plain number, or both: then of float64."""
    like = then.dtype if isinstance(then, Expr) else otherwise.dtype if isinstance(otherwise, Expr) else "f64"
    return Op("where", (cond, *[arm if isinstance(arm, Expr) else number(arm, like) for arm in (then, otherwise)]))


def isolated_sign(x: Expr) -> Expr:
    """|x|: the sign bit cleared."""
    bits, mask = BITS[x.dtype]
    return Bitcast(x.dtype, op("and", Bitcast(bits, x), number(mask, bits)))


def is_negative(x: Expr) -> Expr:
    """Is the sign bit set? True for -0 too."""
    return Bitcast({"f32": "i32", "f64": "i64"}[x.dtype], x) < 0


def signed(x: Expr, magnitude: Expr) -> Expr:
    """An odd function from its values for |x|."""
    return where(is_negative(x), magnitude * -1, magnitude)


def sqrt(x: Expr) -> Expr:
    """√x"""
    return op("sqrt", x)


def exp(x: Expr) -> Expr:
    """e^x"""
    return op("exp", x)


def log(x: Expr) -> Expr:
    """ln x"""
    return op("log", x)


def sin(x: Expr) -> Expr:
    """sin x"""
    return op("sin", x)


def least(x: Expr, bound: float) -> Expr:
    """min(x, bound); NaN stays."""
    return op("min", x, number(bound, x.dtype))


def horner(coefficients: Sequence[float], x: Expr) -> Expr:
    """c₀ + c₁ x + c₂ x² + … by Horner's scheme."""
    total: Expr = number(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# Rounding. Any operand of 2^52 (2^23 in float32) or more is a whole number already, and so is what `where` keeps of NaN
# and infinity.

def _whole(x: Expr) -> float:
    return {"f32": 2.0**23, "f64": 2.0**52}[x.dtype]


def _small(x: Expr, form: Expr) -> Expr:
    return where(isolated_sign(x) < _whole(x), signed(x, isolated_sign(form)), x)        # a zero has the sign of x


def _through_integer(x: Expr) -> Expr:
    return Cast(x.dtype, Cast({"f32": "i32", "f64": "i64"}[x.dtype], x))


def trunc(x: Expr) -> Expr:
    """A conversion to integer rounds towards zero."""
    return _small(x, _through_integer(x))


def floor(x: Expr) -> Expr:
    """trunc, one less where that is above x."""
    t = _through_integer(x)
    return _small(x, where(x < t, t - 1, t))


def ceil(x: Expr) -> Expr:
    """trunc, one more where that is below x."""
    t = _through_integer(x)
    return _small(x, where(t < x, t + 1, t))


def nearest(x: Expr) -> Expr:
    """At 2^52 the distance of neighbours is 1: adding and subtracting it rounds half to even."""
    big = _whole(x)
    return _small(x, where(x < 0, (x - big) + big, (x + big) - big))


# Exact products.

def two_product(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """x · y and its rounding error, also where fma is itself decomposed; Arithmetic.two_product does without the error
    there, for speed."""
    product = x * y
    return product, op("fma", x, y, product * -1)


def _split(x: Expr) -> tuple[Expr, Expr]:
    """The upper 26 bits and the rest (Veltkamp, 1968)."""
    c = x * 134217729.0
    high = c - (c - x)
    return high, x - high


def _dekker(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """x · y and its rounding error without fma (Dekker, 1971)."""
    product = x * y
    (xh, xl), (yh, yl) = _split(x), _split(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _to_odd(total: Expr, error: Expr) -> Expr:
    """total + error rounded to odd, so that a further rounding errs once (Boldo, Melquiond: Emulation of FMA and
    correctly rounded sums, 2008)."""
    bits = Bitcast("i64", total)
    even = op("eq", op("and", bits, number(1, "i64")), number(0, "i64"))
    towards = where(op("xor", error < 0, total < 0), number(-1, "i64"), number(1, "i64"))
    inexact = op("or", error < 0, number(0.0, "f64") < error)
    return where(op("and", even, inexact), Bitcast("f64", bits + towards), total)


def _fma32(x: Expr, y: Expr, z: Expr) -> Expr:
    """The product of two float32 is exact in float64."""
    return Cast("f32", _to_odd(*two_sum(Cast("f64", x) * Cast("f64", y), Cast("f64", z))))


def _fma64(x: Expr, y: Expr, z: Expr) -> Expr:
    """Boldo and Melquiond's algorithm; outside 2^±480, where a part may overflow or vanish, x · y + z."""
    plain = x * y + z
    low, high = 2.0**-480, 2.0**480
    fits: Expr = number(True, "bool")
    for operand in (x, y, z):
        a = isolated_sign(operand)
        fits = op("and", fits, op("and", number(low, "f64") < a, a < high))
    uh, ul = _dekker(x, y)
    th, tl = two_sum(z, ul)
    vh, vl = two_sum(uh, th)
    return where(fits, vh + _to_odd(*two_sum(tl, vl)), plain)


FMA: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {"f32": _fma32, "f64": _fma64}

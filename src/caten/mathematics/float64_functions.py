"""Elementary functions on float64 expressions, built from + × ÷ √ exp log sin, comparisons and bits.

Each formula names its source; coefficients of series are exact. `a` is |x| throughout.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from ..core.expr import Bitcast, Cast, Expr, number
from .double_double import two_sum
from .float_formulas import (
    INF,
    ceil,
    exp,
    floor,
    horner,
    is_negative,
    isolated_sign,
    least,
    log,
    nearest,
    op,
    signed,
    sin,
    sqrt,
    trunc,
    two_product,
    where,
)
from .special import erf, erfc, lgamma

# Powers and logarithms.

LN2 = math.log(2)
# the upper part has 33 bits: exact times an exponent
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def rsqrt(x: Expr) -> Expr:
    """1 / √x"""
    return number(1, x.dtype) / sqrt(x)


def cbrt(x: Expr) -> Expr:
    """e^(log(a)/3), then one step of Newton's method for t³ = a."""
    a = isolated_sign(x)
    t = exp(log(a) / 3)
    better = t - (t - a / (t * t)) / 3
    return where(op("and", number(0.0, "f64") < a, a < INF), signed(x, better), x)


def _power_of_two(n: Expr) -> Expr:
    """2^n from its bits, -1022 ≤ n ≤ 1023."""
    return Bitcast("f64", op("shl", n + 1023, number(52, "i64")))


def _scaled(y: Expr, n: Expr) -> Expr:
    """y · 2^n in two steps, so that a result below the normal range is rounded once."""
    i = Cast("i64", n)
    half = op("shr", i, number(1, "i64"))
    return y * _power_of_two(half) * _power_of_two(i - half)


def exp2(x: Expr) -> Expr:
    """2^n · e^(r log 2), n the nearest integer, r = x - n"""
    c = op("max", least(x, 1200.0), number(-1200.0, "f64"))
    n = op("round", c)
    return _scaled(exp((c - n) * LN2), n)


_EXPM1 = [1 / math.factorial(k + 2) for k in range(22)]


def expm1(x: Expr) -> Expr:
    """x + x²/2! + x³/3! + … near 0; elsewhere e^x - 1 does not cancel."""
    near = op("and", number(-0.7, "f64") < x, x < 1.1)
    return where(near, x + x * x * horner(_EXPM1, x), exp(x) - 1)


def log1p(x: Expr) -> Expr:
    """log u + (x - (u - 1)) / u with u = 1 + x rounded: the second term is what rounding lost (Hewlett-Packard, HP-15C
    Advanced Functions, 1982)."""
    u = x + 1
    lost = (x - (u - 1)) / u
    inside = op("and", number(0.0, "f64") < u, u < INF)
    return where(inside, log(u) + lost, log(u))


def _mantissa(x: Expr) -> tuple[Expr, Expr]:
    """m and e with x = m · 2^e and √½ < m ≤ √2, for finite x > 0."""
    tiny = x < 2.0**-1022
    bits = Bitcast("i64", where(tiny, x * 2.0**54, x))
    exponent = op("shr", bits, number(52, "i64")) - where(tiny, number(1077, "i64"), number(1023, "i64"))
    m = Bitcast("f64", op("or", op("and", bits, number((1 << 52) - 1, "i64")), number(1023 << 52, "i64")))
    large = number(math.sqrt(2), "f64") < m
    return where(large, m * 0.5, m), Cast("f64", where(large, exponent + 1, exponent))


def log2(x: Expr) -> Expr:
    """e + log(m) / log 2; exact for powers of two."""
    m, e = _mantissa(x)
    inside = op("and", number(0.0, "f64") < x, x < INF)
    return where(inside, e + log(m) * (1 / LN2), log(x))


def log10(x: Expr) -> Expr:
    """log x / log 10"""
    return log(x) * (1 / math.log(10))


_LOG_TAIL = [2 / (2 * k + 5) for k in range(12)]


def log_pair(a: Expr) -> tuple[Expr, Expr]:
    """log a to some 68 bits, as a sum of two, for finite a > 0: log m = 2 artanh s = 2 s + 2/3 s³ + 2/5 s⁵ + …, s = (m
    - 1) / (m + 1)."""
    m, e = _mantissa(a)
    f = m - 1
    g, g_low = two_sum(m, number(1.0, "f64"))
    s = f / g
    s_low = (op("fma", s * -1, g, f) - s * g_low) / g
    q, q_low = two_product(s, s)
    q_low = q_low + s * s_low * 2
    w, w_low = two_product(s, q)
    w_low = w_low + s_low * q + s * q_low
    third, third_low = 2 / 3, 3.700743415417188e-17
    t, t_low = two_product(w, number(third, "f64"))
    t_low = t_low + w * third_low + w_low * third
    high, low = two_sum(s * 2, t)
    low = low + (s_low * 2 + t_low + w * q * horner(_LOG_TAIL, q))
    top, rest = two_sum(e * LN2_HIGH, high)
    rest = rest + (low + e * LN2_LOW)
    total = top + rest
    return total, rest - (total - top)


def power(x: Expr, y: Expr) -> Expr:
    """e^(y log |x|) with the product in two parts; signs and special values as IEEE 754-2019, 9.2.1."""
    a = isolated_sign(x)
    zero, one, infinite = number(0.0, "f64"), number(1.0, "f64"), number(INF, "f64")
    high, low = log_pair(a)
    p, p_low = two_product(y, high)
    inside = isolated_sign(p) < 1400.0
    correction = where(inside, p_low + y * low, zero)
    clamped = op("max", least(p, 1400.0), number(-1400.0, "f64"))
    half = exp(clamped * 0.5)
    e = exp(clamped)
    general = where(isolated_sign(clamped) < 708.0, e + e * correction, half * (half + half * correction))
    at_ends = where(op("eq", a, zero), where(y < 0, infinite, zero), where(y < 0, zero, infinite))
    magnitude = where(op("eq", a, one), one, where(op("and", zero < a, a < infinite), general, at_ends))
    whole = op("eq", op("floor", y), y)
    odd = op("and", whole, op("xor", op("eq", op("floor", y * 0.5), y * 0.5), number(True, "bool")))
    fractional = op("and", op("and", x < 0, a < INF), op("xor", whole, number(True, "bool")))
    result = where(fractional, number(float("nan"), "f64"),
                   where(op("and", is_negative(x), odd), magnitude * -1, magnitude))
    unordered = op("xor", op("and", op("eq", x, x), op("eq", y, y)), number(True, "bool"))
    trivial = op("or", op("eq", y, zero), op("eq", x, one))
    return where(trivial, one, where(unordered, x + y, result))


def hypot(x: Expr, y: Expr) -> Expr:
    """√(x² + y²) scaled, with a correction (Borges: An improved algorithm for hypot(a, b), 2019)."""
    ax, ay = isolated_sign(x), isolated_sign(y)
    top, low = op("max", ax, ay), op("min", ax, ay)
    scale = where(number(2.0**500, "f64") < top, 2.0**-600,
                  where(top < 2.0**-500, number(2.0**600, "f64"), number(1.0, "f64")))
    u, v = top * scale, low * scale
    h = sqrt(op("fma", u, u, v * v))
    hh, uu = h * h, u * u
    excess = op("fma", v * -1, v, hh - uu) + op("fma", h, h, hh * -1) - op("fma", u, u, uu * -1)
    result = where(number(0.0, "f64") < h, h - excess / (h * 2), h) / scale
    infinite = op("or", op("eq", ax, number(INF, "f64")), op("eq", ay, number(INF, "f64")))
    return where(infinite, INF, result)


# Trigonometry.

PI, PI_LOW = math.pi, 1.2246467991473532e-16


def cos(x: Expr) -> Expr:
    """sin 2x / (2 sin x), as sin is accurate relative to its value everywhere and 2x is exact; 1 - 2 sin²(x/2) where 2x
    would overflow."""
    a = isolated_sign(x)
    s, h = sin(x), sin(x * 0.5)
    return where(a < 2.0**-27, 1.0, where(a < 2.0**1000, sin(x * 2) / (s * 2), number(1.0, "f64") - h * h * 2))


def tan(x: Expr) -> Expr:
    """sin x / cos x"""
    return sin(x) / op("cos", x)


# c, atan c and the rest of atan c: around each, |t| stays below 7/16.
_ATAN_POINTS = ((0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
                (1.0, math.pi / 4, 3.06161699786838301793e-17),
                (1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17))
_ATAN = [(-1) ** k / (2 * k + 3) for k in range(23)]


def atan(x: Expr) -> Expr:
    """atan a = atan c + atan t, t = (a - c) / (1 + c a), for the nearest of 0, ½, 1, 3/2, ∞; atan t = t - t³/3 + t⁵/5 -
    …"""
    a = isolated_sign(x)
    t: Expr = number(-1.0, "f64") / a
    base: Expr = number(PI / 2, "f64")
    base_low: Expr = number(PI_LOW / 2, "f64")
    for upper, (c, high, low) in reversed(list(zip((11 / 16, 19 / 16, 39 / 16), _ATAN_POINTS, strict=True))):
        near = a < upper
        t, base, base_low = where(near, (a - c) / (a * c + 1), t), where(near, high, base), where(near, low, base_low)
    near = a < 7 / 16
    t, base, base_low = where(near, a, t), where(near, 0.0, base), where(near, 0.0, base_low)
    q = t * t
    return signed(x, base + (base_low + (t - t * q * horner(_ATAN, q))))


def asin(x: Expr) -> Expr:
    """atan(x / √(1 - x²))"""
    return op("atan", x / sqrt((number(1.0, "f64") - x) * (x + 1)))


def acos(x: Expr) -> Expr:
    """2 atan √((1 - x) / (1 + x))"""
    return op("atan", sqrt((number(1.0, "f64") - x) / (x + 1))) * 2


def atan2(y: Expr, x: Expr) -> Expr:
    """atan of the smaller over the greater of |y| and |x|, mirrored into its octant."""
    ay, ax = isolated_sign(y), isolated_sign(x)
    top, low = op("max", ay, ax), op("min", ay, ax)
    ratio = where(op("eq", top, low), where(op("eq", top, number(0.0, "f64")), number(0.0, "f64"), number(1.0, "f64")),
                  low / top)
    angle = op("atan", ratio)
    angle = where(ax < ay, number(PI / 2, "f64") - (angle - PI_LOW / 2), angle)
    angle = where(is_negative(x), number(PI, "f64") - (angle - PI_LOW), angle)
    return where(is_negative(y), angle * -1, angle)


# Hyperbolic functions, from expm1 and log1p so that nothing cancels near 0.

def sinh(x: Expr) -> Expr:
    """(t + t / (t + 1)) / 2 with t = e^a - 1"""
    a = isolated_sign(x)
    t, h = op("expm1", a), exp(a * 0.5)
    return signed(x, where(a < 22.0, (t + t / (t + 1)) * 0.5, h * 0.5 * h))


def cosh(x: Expr) -> Expr:
    """(e^a + e^-a) / 2"""
    a = isolated_sign(x)
    e, h = exp(a), exp(a * 0.5)
    return where(a < 22.0, (e + number(1.0, "f64") / e) * 0.5, h * 0.5 * h)


def tanh(x: Expr) -> Expr:
    """t / (t + 2) with t = e^2a - 1"""
    t = op("expm1", least(isolated_sign(x), 22.0) * 2)
    return signed(x, t / (t + 2))


def asinh(x: Expr) -> Expr:
    """log(a + √(a² + 1)) = log1p(a + a² / (1 + √(a² + 1)))"""
    a = isolated_sign(x)
    return signed(x, where(a < 2.0**28, op("log1p", a + a * a / (sqrt(a * a + 1) + 1)), log(a) + LN2))


def acosh(x: Expr) -> Expr:
    """log(x + √(x² - 1)) = log1p(t + √(2t + t²)) with t = x - 1"""
    t = x - 1
    return where(x < 1.0, float("nan"), where(x < 2.0**28, op("log1p", t + sqrt(t * 2 + t * t)), log(x) + LN2))


def atanh(x: Expr) -> Expr:
    """log((1 + a) / (1 - a)) / 2 = log1p(2a / (1 - a)) / 2"""
    a = isolated_sign(x)
    return signed(x, op("log1p", a * 2 / (number(1.0, "f64") - a)) * 0.5)


def sigmoid(x: Expr) -> Expr:
    """e = e^-a ≤ 1 never overflows: 1 / (1 + e) for x ≥ 0, e / (1 + e) below."""
    e = exp(isolated_sign(x) * -1)
    return where(x < 0, e, number(1, x.dtype)) / (e + 1)


# operator -> its number of operands, whether the formula serves float32 as it is, and the formula
FUNCTIONS: dict[str, tuple[int, bool, Callable[..., Expr]]] = {
    "floor": (1, True, floor), "ceil": (1, True, ceil), "trunc": (1, True, trunc), "round": (1, True, nearest),
    "rsqrt": (1, True, rsqrt), "cbrt": (1, False, cbrt), "exp2": (1, False, exp2), "expm1": (1, False, expm1),
    "log2": (1, False, log2), "log10": (1, False, log10), "log1p": (1, False, log1p), "pow": (2, False, power),
                                                               "hypot": (2, False, hypot),
    "cos": (1, False, cos), "tan": (1, False, tan), "asin": (1, False, asin), "acos": (1, False, acos),
                                                               "atan": (1, False, atan),
    "atan2": (2, False, atan2), "sinh": (1, False, sinh), "cosh": (1, False, cosh), "tanh": (1, False, tanh),
    "asinh": (1, False, asinh), "acosh": (1, False, acosh), "atanh": (1, False, atanh),
    "erf": (1, False, erf), "erfc": (1, False, erfc), "lgamma": (1, False, lgamma), "sigmoid": (1, True, sigmoid),
}

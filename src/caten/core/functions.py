"""Elementary and special functions on float64 expressions, from +, ×, ÷, √, exp, log, sin, comparisons and bits.

Each formula names its source. Coefficients of series are exact; rational approximations are the published ones. `a` is |x| throughout.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .expr import Bitcast, Cast, Expr, Op, number

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
    return where(x < 0, magnitude * -1, magnitude)


def sqrt(x: Expr) -> Expr:
    return op("sqrt", x)


def exp(x: Expr) -> Expr:
    return op("exp", x)


def log(x: Expr) -> Expr:
    return op("log", x)


def sin(x: Expr) -> Expr:
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


# Rounding. Any operand of 2^52 (2^23 in float32) or more is a whole number already, and so is what `where` keeps of NaN and infinity.

def _whole(x: Expr) -> float:
    return {"f32": 2.0**23, "f64": 2.0**52}[x.dtype]


def _small(x: Expr, form: Expr) -> Expr:
    return where(isolated_sign(x) < _whole(x), form, x)


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


# Exact sums and products.

def two_sum(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """x + y and its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """x · y and its rounding error."""
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
    """total + error rounded to odd, so that a further rounding errs once (Boldo, Melquiond: Emulation of FMA and correctly rounded sums, 2008)."""
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


# Powers and logarithms.

LN2 = math.log(2)
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10        # the upper part has 33 bits: exact times an exponent


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
    """log u + (x - (u - 1)) / u with u = 1 + x rounded: the second term is what rounding lost (Hewlett-Packard, HP-15C Advanced Functions, 1982)."""
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
    """log a to some 68 bits, as a sum of two, for finite a > 0: log m = 2 artanh s = 2 s + 2/3 s³ + 2/5 s⁵ + …, s = (m - 1) / (m + 1)."""
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
    result = where(fractional, number(float("nan"), "f64"), where(op("and", is_negative(x), odd), magnitude * -1, magnitude))
    unordered = op("xor", op("and", op("eq", x, x), op("eq", y, y)), number(True, "bool"))
    trivial = op("or", op("eq", y, zero), op("eq", x, one))
    return where(trivial, one, where(unordered, x + y, result))


def hypot(x: Expr, y: Expr) -> Expr:
    """√(x² + y²) scaled, with a correction (Borges: An improved algorithm for hypot(a, b), 2019)."""
    ax, ay = isolated_sign(x), isolated_sign(y)
    top, low = op("max", ax, ay), op("min", ax, ay)
    scale = where(number(2.0**500, "f64") < top, 2.0**-600, where(top < 2.0**-500, number(2.0**600, "f64"), number(1.0, "f64")))
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
    """sin 2x / (2 sin x), as sin is accurate relative to its value everywhere and 2x is exact; 1 - 2 sin²(x/2) where 2x would overflow."""
    a = isolated_sign(x)
    s, h = sin(x), sin(x * 0.5)
    return where(a < 2.0**-27, 1.0, where(a < 2.0**1000, sin(x * 2) / (s * 2), number(1.0, "f64") - h * h * 2))


def tan(x: Expr) -> Expr:
    """sin x / cos x"""
    return sin(x) / op("cos", x)


# c, atan c and the rest of atan c: around each, |t| stays below 7/16.
_ATAN_POINTS = ((0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17), (1.0, math.pi / 4, 3.06161699786838301793e-17),
                (1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17))
_ATAN = [(-1) ** k / (2 * k + 3) for k in range(23)]


def atan(x: Expr) -> Expr:
    """atan a = atan c + atan t, t = (a - c) / (1 + c a), for the nearest of 0, ½, 1, 3/2, ∞; atan t = t - t³/3 + t⁵/5 - …"""
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
    ratio = where(op("eq", top, low), where(op("eq", top, number(0.0, "f64")), number(0.0, "f64"), number(1.0, "f64")), low / top)
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


# Special functions.

# W. J. Cody: Rational Chebyshev approximations for the error function, Mathematics of Computation 23 (1969): erf(x)/x in x² up to 0.46875;
# e^(x²) erfc(x) in x up to 4; x² (e^(x²) x erfc(x) - 1/√π) in 1/x² beyond. Lowest power first.
_ERF_P = (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02, 3.16112374387056560e00, 1.85777706184603153e-1)
_ERF_Q = (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02, 2.36012909523441209e01, 1.0)
_ERFC_P = (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03, 8.81952221241769090e02, 2.98635138197400131e02,
           6.61191906371416295e01, 8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8)
_ERFC_Q = (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03, 3.29079923573345963e03, 1.62138957456669019e03,
           5.37181101862009858e02, 1.17693950891312499e02, 1.57449261107098347e01, 1.0)
_TAIL_P = (6.58749161529837803e-4, 1.60837851487422766e-2, 1.25781726111229246e-1, 3.60344899949804439e-1, 3.05326634961232344e-1,
           1.63153871373020978e-2)
_TAIL_Q = (2.33520497626869185e-3, 6.05183413124413191e-2, 5.27905102951428412e-1, 1.87295284992346725e00, 2.56852019228982242e00, 1.0)
_ERF_EDGE = 0.46875


def _erfc_of_positive(a: Expr) -> Expr:
    """erfc(a) for a ≥ 0.46875; e^-a² as a product, one factor of an exact square."""
    c = least(a, 30.0)
    coarse = op("trunc", c * 16) * (1 / 16)
    gauss = exp(coarse * coarse * -1) * exp((coarse - c) * (c + coarse))
    inverse = number(1.0, "f64") / (c * c)
    tail = (number(1 / math.sqrt(math.pi), "f64") - inverse * horner(_TAIL_P, inverse) / horner(_TAIL_Q, inverse)) / c
    return gauss * where(c < 4.0, horner(_ERFC_P, c) / horner(_ERFC_Q, c), tail)


def _erf_near_zero(x: Expr) -> Expr:
    return x * horner(_ERF_P, x * x) / horner(_ERF_Q, x * x)


def erf(x: Expr) -> Expr:
    """Cody's approximation near 0, else 1 - erfc"""
    a = isolated_sign(x)
    return where(a < _ERF_EDGE, _erf_near_zero(x), signed(x, number(1.0, "f64") - _erfc_of_positive(a)))


def erfc(x: Expr) -> Expr:
    """1 - erf near 0, 2 - erfc(-x) below"""
    a = isolated_sign(x)
    far = _erfc_of_positive(a)
    return where(a < _ERF_EDGE, number(1.0, "f64") - _erf_near_zero(x), where(x < 0, number(2.0, "f64") - far, far))


def _zeta_minus_one(k: int) -> float:
    """ζ(k) - 1 by the Euler–Maclaurin formula."""
    n = 200.0
    tail = (n ** (1 - k) / (k - 1), n**-k / 2, k * n ** (-k - 1) / 12, -k * (k + 1) * (k + 2) * n ** (-k - 3) / 720)
    return math.fsum([*[float(i) ** -k for i in range(2, 200)], *tail])


EULER = 0.57721566490153286061
LGAMMA_AT_2 = [0.0, 1 - EULER, *[(-1) ** k * _zeta_minus_one(k) / k for k in range(2, 28)]]
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _lgamma_of_positive(a: Expr) -> Expr:
    """Around 2 the Taylor series, (1-γ) z + Σ (-1)^k (ζ(k) - 1) z^k / k with z = a - 2; up to 8 brought there by Γ(a+1) = a Γ(a); then Stirling's
    series."""
    def at_two(w: Expr) -> Expr:
        return horner(LGAMMA_AT_2, w)
    z, product = a - 2, number(1.0, "f64")
    down: Expr = product
    for k in range(1, 7):                           # a in [k + 1.5, 8): one more factor
        above = op("le", number(k + 1.5, "f64"), a)
        down = where(above, down * (a - k), down)
        z = where(above, a - (k + 2), z)
    middle = at_two(z) + where(op("le", number(2.5, "f64"), a), log(down), 0.0)
    inverse = number(1.0, "f64") / (a * a)
    large = a * (log(a) - 1) + (number(math.log(2 * math.pi) / 2, "f64") - log(a) * 0.5 + horner(_STIRLING, inverse) / a)
    near_one = at_two(a - 1) - op("log1p", a - 1)
    near_zero = at_two(a) - op("log1p", a) - log(a)
    return where(a < 0.5, near_zero, where(a < 1.5, near_one, where(a < 8.0, middle, where(a < 1e306, large, a * INF))))


def lgamma(x: Expr) -> Expr:
    """Below 0 by reflection, |Γ(x) Γ(-x)| = π / |x sin πx|"""
    a = isolated_sign(x)
    positive = _lgamma_of_positive(a)
    s = isolated_sign(sin((a - op("round", a)) * PI))
    reflected = number(math.log(math.pi), "f64") - log(a) - log(s) - positive
    return where(op("eq", a, number(INF, "f64")), INF, where(is_negative(x), where(op("eq", a, number(0.0, "f64")), INF, reflected), positive))


def sigmoid(x: Expr) -> Expr:
    """e = e^-a ≤ 1 never overflows: 1 / (1 + e) for x ≥ 0, e / (1 + e) below."""
    e = exp(isolated_sign(x) * -1)
    return where(x < 0, e, number(1, x.dtype)) / (e + 1)


# operator -> its number of operands, whether the formula serves float32 as it is, and the formula
FUNCTIONS: dict[str, tuple[int, bool, Callable[..., Expr]]] = {
    "floor": (1, True, floor), "ceil": (1, True, ceil), "trunc": (1, True, trunc), "round": (1, True, nearest),
    "rsqrt": (1, True, rsqrt), "cbrt": (1, False, cbrt), "exp2": (1, False, exp2), "expm1": (1, False, expm1),
    "log2": (1, False, log2), "log10": (1, False, log10), "log1p": (1, False, log1p), "pow": (2, False, power), "hypot": (2, False, hypot),
    "cos": (1, False, cos), "tan": (1, False, tan), "asin": (1, False, asin), "acos": (1, False, acos), "atan": (1, False, atan),
    "atan2": (2, False, atan2), "sinh": (1, False, sinh), "cosh": (1, False, cosh), "tanh": (1, False, tanh),
    "asinh": (1, False, asinh), "acosh": (1, False, acosh), "atanh": (1, False, atanh),
    "erf": (1, False, erf), "erfc": (1, False, erfc), "lgamma": (1, False, lgamma), "sigmoid": (1, True, sigmoid),
}

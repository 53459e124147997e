"""Exponential functions: exp, exp2, expm1, sinh, cosh, tanh, sigmoid.

All reduce x = n · ln 2 + r with |r| ≤ ln 2 / 2 (Cody and Waite); e^r - 1 - r is r² times a polynomial, least in its
greatest relative error (Remez). `a` is the arithmetic.
"""
from __future__ import annotations

from typing import NamedTuple

from ...core.expr import Expr, Op
from ..double_double import fast_two_sum
from .arithmetic import Arithmetic

# ln 2 in two parts: the first has so few bits that its product with any exponent is exact.
LN2 = {"f32": (0.693359375, -2.12194440e-4), "f64": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
LOG2_E = 1.4426950408889634

# (e^r - 1 - r) / r²; SHORT: in float64 for a result in float32; FAST: (e^r - 1) / r
TAIL = {
    "f32": (0.5, 0.166665405, 0.0416663997, 0.00836689118, 0.00139459281),
    "f64": (0.5, 0.16666666666666677, 0.04166666666666667, 0.008333333333321442, 0.001388888888887794,
            0.00019841269886333203,
            2.480158734819386e-05, 2.7557244219206415e-06, 2.755724553053602e-07, 2.510898337142532e-08,
            2.0925752589519897e-09),
}
# (e^r - 1 - r - r²/2) / r³ (Chebyshev)
CUBIC = {"f32": (0.166666672, 0.0416665524, 0.00833331048, 0.00139263785, 0.000198912501), "f64": TAIL["f64"][1:]}
SHORT = (0.5000000046194637, 0.16666666857355034, 0.04166635408512765, 0.008333260238277709, 0.0013941112902136903,
         0.00019923043736024261)
FAST = {
    "f32": (0.999999702, 0.499991447, 0.166676462, 0.0418985784, 0.00829256605),
    "f64": (1.0, 0.5000000000000012, 0.16666666666666255, 0.04166666666651836, 0.008333333333530965,
            0.0013888888946442107, 0.00019841269476325498, 2.4801490358869326e-05, 2.7557589486606913e-06,
            2.7631187393904585e-07, 2.5004184495364018e-08),
}
# (2^r - 1) / r
TWO = (0.693147182, 0.240225941, 0.0555036627, 0.00962543953, 0.00133879564, 0.000133379901)
TWO_FAST = (0.693147004, 0.240222186, 0.0555064641, 0.00967272464, 0.00132993027)
LN2_FULL, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17


class Reduced(NamedTuple):
    """x = n ln 2 + r + rest; `shifted` holds n plus an offset in its low bits."""

    shifted: Expr
    n: Expr
    r: Expr
    rest: Expr


def reduced(a: Arithmetic, x: Expr, offset: int) -> Reduced:
    """n and the remainder of x."""
    start = a.rounder + offset
    shifted = a.mad(x, a.at(LOG2_E), a.at(start))
    n = shifted - start
    high, low = LN2[a.dtype]
    first = a.mad(n, a.at(-high), x)                                    # exact
    r = a.mad(n, a.at(-low), first)
    return Reduced(shifted, n, r, a.mad(n, a.at(-low), first - r))


def tail(a: Arithmetic, r: Expr) -> Expr:
    """(e^r - 1 - r) / r²"""
    return a.horner(r, SHORT if a.short else TAIL[a.dtype])


def one_plus(a: Arithmetic, r: Expr) -> Expr:
    """e^r, as 1 + r (1 + r · tail): what the inner sum loses counts a third"""
    return a.mad(a.mad(tail(a, r), r, a.at(1.0)), r, a.at(1.0))


RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}                # beyond, e^x is 0 or infinity
MOST = {"f32": 89.7, "f64": 710.5}                                      # beyond, sinh and cosh are infinite
NORMAL = {"f32": (-87.3365448, 88.8), "f64": (-708.3964, 709.9)}       # e^x with the scale 0 at the lower end
NOTHING = {"f32": -104.6, "f64": -745.8}                                # e^x is 0, by the n that this x has


def exp(a: Arithmetic, x: Expr) -> Expr:
    """e^x = 2^n · e^r"""
    if a.fast:
        return _exp_normal(a, a.clamp(x, *NORMAL[a.dtype]))
    if a.scales:
        return _exp_or_0(a, x, RANGE[a.dtype][1])
    parts = reduced(a, a.clamp(x, NOTHING[a.dtype], RANGE[a.dtype][1]), a.least)
    return a.scaled_or_0(one_plus(a, parts.r), parts.shifted)


def exp_of_nonpositive(a: Arithmetic, x: Expr) -> Expr:
    """e^x for x ≤ 0, as e^r · 2^(n+u) · 2^-u: one power of two has to be made, not two. It is 0 where the result is.
    NaN for NaN, and anything for x > 0."""
    if a.fast:
        return _exp_normal(a, a.clamp(x, NORMAL[a.dtype][0], None))
    if a.scales:
        return _exp_or_0(a, x, None)
    up = a.mantissa + 1
    parts = reduced(a, a.clamp(x, NOTHING[a.dtype], None), a.bias + up)
    return one_plus(a, parts.r) * a.power_of_two(a.bits(parts.shifted)) * 2.0**-up


def exp_of_min_0(a: Arithmetic, x: Expr) -> Expr:
    """e^min(x, 0)"""
    return exp_of_nonpositive(a, a.clamp(x, None, 0.0))


def _exp_or_0(a: Arithmetic, x: Expr, high: float | None) -> Expr:
    """e^x on a machine that scales in one instruction and leaves out lanes for nothing: 0 instead of what
    underflows."""
    low = RANGE[a.dtype][0]
    parts = reduced(a, a.where(x < low, 0.0, a.clamp(x, None, high)), 2 * a.bias)
    return a.where(x < low, 0.0, a.scaled(one_plus(a, parts.r), parts.n, parts.shifted))


def _exp_normal(a: Arithmetic, x: Expr) -> Expr:
    """2e^r · 2^(n-1), of x in NORMAL; results below twice the least normal number are 0."""
    parts = reduced(a, x, a.bias - 1)
    double = a.horner(parts.r, (2.0, *[2 * c for c in FAST[a.dtype]]))
    return double * a.power_of_two(a.bits(parts.shifted))


def exp2(a: Arithmetic, x: Expr) -> Expr:
    """2^x = 2^n · 2^r with n the nearest whole number; x - n is exact."""
    low, high = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}[a.dtype]
    start = a.rounder + (2 * a.bias if a.scales else a.least)
    c = a.where(x < low, 0.0, a.clamp(x, None, high)) if a.scales else a.clamp(x, low, high)
    shifted = c + start
    n = shifted - start
    value = _exp2_of_rest(a, c - n)
    return a.where(x < low, 0.0, a.scaled(value, n, shifted)) if a.scales else a.scaled_or_0(value, shifted)


def _exp2_of_rest(a: Arithmetic, r: Expr) -> Expr:
    """2^r for |r| ≤ 1/2"""
    if a.dtype == "f32":
        return a.mad(a.horner(r, TWO_FAST if a.fast else TWO), r, a.at(1.0))
    if a.fast:
        return one_plus(a, r * LN2_FULL)
    t, rest = a.two_product(r, a.at(LN2_FULL))
    total, lost = fast_two_sum(a.at(1.0), t)
    return total + (lost + a.mad(tail(a, t), t * t, a.mad(r, a.at(LN2_REST), rest)))


def scaled_expm1(a: Arithmetic, x: Expr, down: int, rough: bool = False) -> Expr:
    """(e^x - 1) / 2^down: s · (e^r - 1) + (s - 2^-down) with s = 2^(n - down), the greater parts summed with what
    rounding takes. `rough` leaves that out, for one unit in the last place more."""
    parts = reduced(a, x, a.bias - down)
    s = a.power_of_two(a.bits(parts.shifted))
    base = s - 2.0**-down
    square = parts.r * parts.r
    if rough or a.short or a.fast:
        return a.mad(s, a.mad(tail(a, parts.r), square, parts.r), base)
    total = a.mad(s, parts.r, base)
    lost = a.mad(s, parts.r, base - total) + ((s - base) - 2.0**-down)
    beyond = a.mad(a.horner(parts.r, CUBIC[a.dtype]) * parts.r, square, parts.rest)              # r³ / 6 + …
    return total + a.mad(s, a.mad(square, a.at(0.5), beyond), lost)


def expm1(a: Arithmetic, x: Expr) -> Expr:
    """e^x - 1; x itself where the next term does not count"""
    value = scaled_expm1(a, a.clamp(x, *{"f32": (-20.0, 89.0), "f64": (-40.0, 710.0)}[a.dtype]), 1) * 2.0
    return a.where(a.magnitude(x) < {"f32": 2.0**-26, "f64": 2.0**-54}[a.dtype], x, value)


def sinh(a: Arithmetic, x: Expr) -> Expr:
    """(t + t / (t + 1)) / 2 with t = e^|x| - 1"""
    m = a.magnitude(x)
    t = scaled_expm1(a, a.clamp(m, None, MOST[a.dtype]), 2)
    value = (t + t / (t * 4.0 + 1.0)) * 2.0
    return a.with_sign(a.where(m < 2.0**-13, m, value) if a.dtype == "f32" else value, x)


def cosh(a: Arithmetic, x: Expr) -> Expr:
    """2e + 1 / 8e with e = e^|x| / 4, which does not overflow where cosh does not."""
    parts = reduced(a, a.clamp(a.magnitude(x), None, MOST[a.dtype]), a.bias - 2)
    e = one_plus(a, parts.r) * a.power_of_two(a.bits(parts.shifted))
    return e * 2.0 + a.at(0.125) / e


def tanh(a: Arithmetic, x: Expr) -> Expr:
    """t / (t + 1) with t = (e^2|x| - 1) / 2"""
    m = a.clamp(a.magnitude(x), None, {"f32": 9.5, "f64": 20.0}[a.dtype])
    t = scaled_expm1(a, m + m, 1, rough=True)
    below = t + 1.0
    value = t / below
    if a.dtype == "f64" and not a.fast:  # what rounding took from the denominator (Knuth); 1 - value is its inverse
        one = below - t
        lost = (t - (below - one)) + (a.at(1.0) - one)
        value = a.mad(value * (value - 1.0), lost, value)
    return a.with_sign(value, x)


def sigmoid(a: Arithmetic, x: Expr) -> Expr:
    """e = e^-|x| ≤ 1 never overflows: 1 / (1 + e) for x ≥ 0, e / (1 + e) below."""
    if a.fast:
        return a.at(1.0) / (exp(a, a.minus(x)) + 1.0)
    e = exp_of_nonpositive(a, a.real(Op("or", (a.bits(x), a.word(a.sign)))))
    return a.where(x < 0, e, 1.0) / (e + 1.0)

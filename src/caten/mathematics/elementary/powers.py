"""Powers and roots: pow, cbrt, hypot. `a` is the arithmetic."""
from __future__ import annotations

import math

from ...core.expr import TRUE, Expr, Op
from ..double_double import fast_two_sum
from .arithmetic import Arithmetic
from .exponential import one_plus, reduced
from .logarithm import LN2, split

# log2 m = s P(s²), s = (m - 1) / (m + 1), in float64 for a result in float32
LOG2 = (2.885390081790213, 0.9617966731706747, 0.577083619733961, 0.4116705190833865, 0.3407727354865278)
# (log m - 2s - ⅔ s³) / s⁵ in s²
LOG_TAIL = (0.4000000000000229, 0.28571428570082646, 0.22222222523085766, 0.18181784079061553, 0.15386771080434536,
            0.1325648724317862,
            0.13199485516701123)
THIRD, THIRD_REST = 2 / 3, 3.700743415417188e-17
# ∛m for √½ ≤ m ≤ √2, to 2^-19
CBRT = (0.42168975989620144, 1.0560151890756455, -0.8360700622816256, 0.5109662285660542, -0.17955707382710048,
        0.026954971832740107)


def power(a: Arithmetic, x: Expr, y: Expr) -> Expr:
    """|x|^y with signs and special values as IEEE 754-2019, 9.2.1, has them."""
    zero, m = a.at(0.0), a.magnitude(x)
    size = _short_power(a, m, y) if a.short else _long_power(a, m, y)
    nothing = Op("eq", (m, zero))
    size = a.where(Op("or", (nothing, Op("eq", (m, a.at(math.inf))))),
                   a.where(Op("xor", (nothing, y < 0)), 0.0, math.inf), size)
    # a magnitude plus 2^52 shows in its last bit whether it is odd
    most = a.clamp(a.magnitude(y), None, 2.0**53)
    large = Op("le", (a.at(2.0**52), most))
    units = a.where(large, most, most + 2.0**52)
    whole = Op("or", (large, Op("eq", (units - 2.0**52, most))))
    odd = Op("and", (whole, Op("eq", (Op("and", (a.bits(units), a.word(1))), a.word(1)))))
    value = a.with_sign(size, a.where(odd, x, 0.0))
    undefined = Op("and", (Op("and", (x < 0, m < math.inf)), Op("xor", (whole, TRUE))))
    value = a.where(undefined, math.nan, value)
    value = a.where(Op("and", (Op("eq", (x, x)), Op("eq", (y, y)))), value, x + y)
    return a.where(Op("or", (Op("eq", (y, zero)), Op("eq", (x, a.at(1.0))))), 1.0, value)


def _short_power(a: Arithmetic, m: Expr, y: Expr) -> Expr:
    """2^(y log2 m) in float64 for a result in float32."""
    f, e = split(a, m)
    s = f / (f + 2.0)
    logarithm = a.mad(s, a.horner(s * s, LOG2), e)
    product = a.clamp(a.where(Op("eq", (logarithm, a.at(0.0))), 0.0, y * logarithm), -200.0, 200.0)
    start = a.rounder + a.bias
    shifted = product + start
    r = (product - (shifted - start)) * math.log(2)
    return one_plus(a, r) * a.power_of_two(a.bits(shifted))


def _long_power(a: Arithmetic, m: Expr, y: Expr) -> Expr:
    """e^(y log m) with the logarithm and the product in two parts."""
    high, low = _log_pair(a, m)
    p, rest = a.two_product(y, high)
    inside = a.magnitude(p) < 1000.0
    p = a.where(Op("eq", (high, a.at(0.0))), 0.0, p)                  # 1 to an infinite power
    rest = a.where(inside, a.mad(y, low, rest), 0.0)
    parts = reduced(a, a.clamp(p, -746.0, 710.0), 2 * a.bias)
    return a.scaled(one_plus(a, parts.r + (parts.rest + rest)), parts.n, parts.shifted)


def _log_pair(a: Arithmetic, m: Expr) -> tuple[Expr, Expr]:
    """log m to some 66 bits, as a sum of two, for finite m > 0: 2 artanh s = 2s + ⅔ s³ + s⁵ P(s²).

    functions.log_pair is the same series for any machine; a fitted polynomial, one division and sums of ordered parts
    make this one quick."""
    f, e = split(a, m)
    g, g_low = fast_two_sum(a.at(2.0), f)
    inverse = a.at(1.0) / g
    s = f * inverse
    s_low = (a.mad(s, a.minus(g), f) - s * g_low) * inverse
    q, q_low = a.two_product(s, s)
    q_low = a.mad(s + s, s_low, q_low)
    w, w_low = a.two_product(s, q)
    w_low = a.mad(s_low, q, a.mad(s, q_low, w_low))
    t, t_low = a.two_product(w, a.at(THIRD))
    t_low = a.mad(w, a.at(THIRD_REST), a.mad(w_low, a.at(THIRD), t_low))
    top, low = fast_two_sum(s + s, t)
    low = low + (s_low + s_low + a.mad(w * q, a.horner(q, LOG_TAIL), t_low))
    ln2, ln2_low = LN2["f64"]
    high, rest = fast_two_sum(e * ln2, top)
    return fast_two_sum(high, rest + a.mad(e, a.at(ln2_low), low))


def cbrt(a: Arithmetic, x: Expr) -> Expr:
    """∛m · 2^k · 2^⅓ᵈ with the exponent 3k + d; a polynomial, one step of Newton's method, and in float64 another with
    the residual exact."""
    size = a.magnitude(x)
    f, e = split(a, size)
    m = f + 1.0
    start = a.rounder + a.bias
    shifted = a.mad(e, a.at(1 / 3), a.at(start))
    d = a.mad(shifted - start, a.at(-3.0), e)
    less, more = d < 0, Op("lt", (a.at(0.0), d))
    cube = m * a.where(less, 0.5, a.where(more, 2.0, 1.0))
    t = a.horner(m, CBRT) * a.where(less, 2.0**(-1 / 3), a.where(more, 2.0**(1 / 3), 1.0))
    inverse = a.at(1.0) / (t * t)
    t = t - a.mad(cube, a.minus(inverse), t) * (1 / 3)
    if not a.short and a.dtype == "f64":
        square, square_low = a.two_product(t, t)
        third, third_low = a.two_product(square, t)
        left = (cube - third) - a.mad(square_low, t, third_low)
        t = t + left / (square * 3.0)
    value = a.with_sign(t * a.power_of_two(a.bits(shifted)), x)
    return a.where(Op("and", (Op("lt", (a.at(0.0), size)), size < math.inf)), value, x)


def hypot(a: Arithmetic, x: Expr, y: Expr) -> Expr:
    """√(x² + y²), by a power of two where a square would overflow or lose its digits, which it cannot in short. An
    infinity outweighs a NaN."""
    ax, ay = a.magnitude(x), a.magnitude(y)
    infinite = Op("or", (Op("eq", (ax, a.at(math.inf))), Op("eq", (ay, a.at(math.inf)))))
    if a.short:
        return a.where(infinite, math.inf, Op("sqrt", (a.mad(x, x, y * y),)))
    swapped = ay > ax
    top, low = a.where(swapped, ay, ax), a.where(swapped, ax, ay)
    great, little = top > 2.0**60, top < 2.0**-40
    by = a.where(great, 2.0**-80, a.where(little, 2.0**100, 1.0))
    back = a.where(great, 2.0**80, a.where(little, 2.0**-100, 1.0))
    top, low = top * by, low * by
    return a.where(infinite, math.inf, Op("sqrt", (a.mad(top, top, low * low),)) * back)

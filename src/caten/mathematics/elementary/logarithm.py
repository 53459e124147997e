"""Logarithms: log, log2, log10, log1p, and those of hyperbolic functions: asinh, acosh, atanh.

x = m · 2^e with √½ ≤ m < √2. In float32 log m is a polynomial of m - 1 (Cephes, S. Moshier); in float64 it is 2 artanh
s = 2s + s³ R(s²) with s = (m - 1) / (m + 1), as in FDLIBM (Sun Microsystems), with coefficients of our own (Remez). `a`
is the arithmetic.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from ...core.expr import Expr, Op
from ..double_double import fast_two_sum
from .arithmetic import Arithmetic

LN2 = {"f32": (0.693359375, -2.12194440e-4), "f64": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
HALF_ROOT = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}             # the bits of √½
LEAST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}

POLYNOMIAL = (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1,
              1.1676998740e-1,
              -1.1514610310e-1, 7.0376836292e-2)
POLYNOMIAL_FAST = (0.333339125, -0.25001356, 0.199630022, -0.165768653, 0.1491469, -0.142738551, 0.0870947316)
# R / s² in s²; SHORT: in float64 for a result in float32
ARTANH = (0.6666666666666735, 0.3999999999940858, 0.28571428744049837, 0.2222219837361929, 0.18183576397117923,
          0.15313691821733377,
          0.14800091085566253)
ARTANH_SHORT = (0.6666666563661824, 0.400003373761307, 0.28537159269261375, 0.2358516505139065)


class Split(NamedTuple):
    """f = m - 1 and e of x = m · 2^e, x positive and finite."""

    f: Expr
    e: Expr


def split(a: Arithmetic, x: Expr, normal: bool = False) -> Split:
    """The mantissa around 1 and the exponent. Denormal numbers are scaled first, unless x is `normal`, as float32 is in
    float64."""
    bias = 2.0**a.mantissa + a.bias
    offset: Expr = a.at(bias)
    if not (normal or a.short):
        small = x < LEAST_NORMAL[a.dtype]
        x = a.where(small, x * 2.0**a.mantissa, x)
        offset = a.where(small, bias + a.mantissa, bias)
    root, one = HALF_ROOT[a.dtype], a.bias << a.mantissa
    moved = a.bits(x) + (one - root)                                    # its exponent counts from √½ on
    m = a.real(Op("and", (moved, a.word((1 << a.mantissa) - 1))) + root)
    return Split(m - 1.0, a.whole(a.shr(moved, a.mantissa), offset))


def edges(a: Arithmetic, x: Expr, finite: Expr) -> Expr:
    """What a logarithm is at 0, below it, at infinity and NaN."""
    upper = a.where(x < math.inf, finite, x)
    return a.where(x <= 0, a.where(Op("eq", (x, a.at(0.0))), -math.inf, math.nan), upper)


def series(a: Arithmetic, f: Expr) -> tuple[Expr, Expr]:
    """f²/2 and s · (f²/2 + R): log(1 + f) = f - (the first - the second)"""
    s = f / (f + 2.0)
    z = s * s
    half = f * 0.5 * f
    return half, s * a.mad(a.horner(z, ARTANH_SHORT if a.short else ARTANH), z, half)


def log(a: Arithmetic, x: Expr) -> Expr:
    """e ln 2 + log m"""
    f, e = split(a, x)
    high, low = LN2[a.dtype]
    if a.dtype == "f64":
        half, rest = series(a, f)
        return edges(a, x, a.mad(e, a.at(high), f - (half - a.mad(e, a.at(low), rest))))
    z = f * f
    y = a.horner(f, POLYNOMIAL_FAST if a.fast else POLYNOMIAL) * (f * z)
    if a.fast:
        return edges(a, x, a.mad(e, a.at(high + low), a.mad(z, a.at(-0.5), y) + f))
    return edges(a, x, a.mad(e, a.at(high), f + a.mad(z, a.at(-0.5), a.mad(e, a.at(low), y))))


def short_log(a: Arithmetic, x: Expr) -> Expr:
    """log x for a result in float32, x positive and finite; to another base by the factors of e and of log m"""
    return _short_to_base(a, x, math.log(2), 1.0)


def _short_to_base(a: Arithmetic, x: Expr, of_two: float, of_e: float) -> Expr:
    f, e = split(a, x)
    half, rest = series(a, f)
    m = f - (half - rest)
    return a.mad(e, a.at(of_two), m if of_e == 1.0 else m * of_e)


def _to_base(a: Arithmetic, x: Expr, of_e: tuple[float, float], of_two: tuple[float, float]) -> Expr:
    """e · log 2 + log m to another base; `of_e`, `of_two`: the logarithms of e and 2 to it, in two parts."""
    if a.short:
        return edges(a, x, _short_to_base(a, x, of_two[0] + of_two[1], of_e[0]))
    f, e = split(a, x)
    half, more = series(a, f)
    top, lost = fast_two_sum(f, a.minus(half))
    product, error = a.two_product(top, a.at(of_e[0]))
    error = error + a.mad(top, a.at(of_e[1]), (lost + more) * of_e[0])
    total, left = fast_two_sum(e * of_two[0], product)
    return edges(a, x, total + (left + (a.mad(e, a.at(of_two[1]), error) if of_two[1] else error)))


def log2(a: Arithmetic, x: Expr) -> Expr:
    """Exact for powers of two."""
    return _to_base(a, x, (1.4426950408889634, 2.0355273740931033e-17), (1.0, 0.0))


def log10(a: Arithmetic, x: Expr) -> Expr:
    """The upper part of log10 2 has 33 bits."""
    return _to_base(a, x, (0.4342944819032518, 1.098319650216765e-17),
                    (3.01029995663611771306e-01, 3.69423907715893078616e-13))


def log1p(a: Arithmetic, x: Expr) -> Expr:
    """log u with u = 1 + x, and what rounding took from u; where u is near 1 its logarithm begins with x itself."""
    u = x + 1.0
    if a.short:
        return a.where(a.magnitude(x) < 2.0**-28, x, edges(a, u, short_log(a, u)))
    f, e = split(a, u, normal=True)
    near = Op("eq", (e, a.at(0.0)))
    f = a.where(near, x, f)
    lost = a.where(near, 0.0, (x - (u - 1.0)) / u)
    if a.dtype == "f32":
        (high, low), z = LN2["f32"], f * f
        y = a.horner(f, POLYNOMIAL) * (f * z) + lost
        value = a.mad(e, a.at(high), f + a.mad(z, a.at(-0.5), a.mad(e, a.at(low), y)))
        return a.where(a.magnitude(x) < 2.0**-26, x, edges(a, u, value))
    half, rest = series(a, f)
    high, low = LN2["f64"]
    value = a.mad(e, a.at(high), f - (half - (rest + a.mad(e, a.at(low), lost))))
    return a.where(a.magnitude(x) < 2.0**-54, x, edges(a, u, value))


def _log1p_positive(a: Arithmetic, y: Expr) -> Expr:
    """log(1 + y) for y ≥ 0 or NaN; in short y - y²/2 where 1 + y loses too much of y"""
    if not a.short:
        return Op("log1p", (y,))
    return a.where(y < 2.0**-16, a.mad(y, y * -0.5, y), a.where(y < math.inf, short_log(a, y + 1.0), y))


def asinh(a: Arithmetic, x: Expr) -> Expr:
    """log(|x| + √(x² + 1)) = log1p(|x| + x² / (1 + √(x² + 1)))"""
    m = a.magnitude(x)
    value = _log1p_positive(a, m + m * m / (Op("sqrt", (m * m + 1.0,)) + 1.0))
    far = m if a.short else Op("log", (m,)) + math.log(2)
    return a.with_sign(a.where(m > (2.0**200 if a.short else 2.0**28), far, value), x)


def acosh(a: Arithmetic, x: Expr) -> Expr:
    """log(x + √(x² - 1)) = log1p(t + √(2t + t²)) with t = x - 1"""
    t = x - 1.0
    value = _log1p_positive(a, t + Op("sqrt", (t * (t + 2.0),)))
    if not a.short:
        value = a.where(x > 2.0**28, Op("log", (x,)) + math.log(2), value)
    return a.where(x < 1.0, math.nan, value)


def atanh(a: Arithmetic, x: Expr) -> Expr:
    """log1p(2|x| / (1 - |x|)) / 2"""
    m = a.magnitude(x)
    value = _log1p_positive(a, m * 2.0 / (a.at(1.0) - m)) * 0.5
    return a.with_sign(a.where(m > 1.0, math.nan, value), x)

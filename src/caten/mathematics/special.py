"""Special functions on float64 expressions: erf, erfc, lgamma, by published approximations. `a` is |x| throughout."""
from __future__ import annotations

import math

from ..core.expr import Expr, number
from .float_formulas import INF, exp, horner, is_negative, isolated_sign, least, log, op, signed, sin, where

# W. J. Cody: Rational Chebyshev approximations for the error function, Mathematics of Computation 23 (1969): erf(x)/x
# in x² up to 0.46875; e^(x²) erfc(x) in x up to 4; x² (e^(x²) x erfc(x) - 1/√π) in 1/x² beyond. Lowest power first.
_ERF_P = (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02, 3.16112374387056560e00,
          1.85777706184603153e-1)
_ERF_Q = (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02, 2.36012909523441209e01, 1.0)
_ERFC_P = (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03, 8.81952221241769090e02,
           2.98635138197400131e02,
           6.61191906371416295e01, 8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8)
_ERFC_Q = (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03, 3.29079923573345963e03,
           1.62138957456669019e03,
           5.37181101862009858e02, 1.17693950891312499e02, 1.57449261107098347e01, 1.0)
_TAIL_P = (6.58749161529837803e-4, 1.60837851487422766e-2, 1.25781726111229246e-1, 3.60344899949804439e-1,
           3.05326634961232344e-1,
           1.63153871373020978e-2)
_TAIL_Q = (2.33520497626869185e-3, 6.05183413124413191e-2, 5.27905102951428412e-1, 1.87295284992346725e00,
           2.56852019228982242e00, 1.0)
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
    """Around 2 the Taylor series, (1-γ) z + Σ (-1)^k (ζ(k) - 1) z^k / k with z = a - 2; up to 8 brought there by Γ(a+1)
    = a Γ(a); then Stirling's series."""
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
    large = a * (log(a) - 1) + (number(math.log(2 * math.pi) / 2,
                                       "f64") - log(a) * 0.5 + horner(_STIRLING, inverse) / a)
    near_one = at_two(a - 1) - op("log1p", a - 1)
    near_zero = at_two(a) - op("log1p", a) - log(a)
    return where(a < 0.5, near_zero, where(a < 1.5, near_one, where(a < 8.0, middle, where(a < 1e306, large, a * INF))))


def lgamma(x: Expr) -> Expr:
    """Below 0 by reflection, |Γ(x) Γ(-x)| = π / |x sin πx|; -log |x| close to 0, infinite where the sine is 0"""
    a = isolated_sign(x)
    positive = _lgamma_of_positive(a)
    s = isolated_sign(sin((a - op("round", a)) * math.pi))
    reflected = number(math.log(math.pi), "f64") - log(a) - log(s) - positive
    pole = op("or", op("eq", a, number(INF, "f64")), op("and", is_negative(x), op("eq", s, number(0.0, "f64"))))
    return where(a < 2.0**-60, log(a) * -1, where(pole, INF, where(is_negative(x), reflected, positive)))

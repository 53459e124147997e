"""Inverse trigonometric functions: asin, acos, atan, atan2. `a` is the arithmetic, polynomials are least in their
greatest relative error (Remez)."""
from __future__ import annotations

import math

from ...core.expr import Expr, Op
from ..double_double import fast_two_sum
from .arithmetic import Arithmetic

# π rounded, and what that takes from it
PI = {"f32": (3.1415927410125732, -8.742278012618954e-08), "f64": (math.pi, 1.2246467991473532e-16)}
# √2 - 1 and √2 + 1
EDGES = {"f32": (0.4142135679721832, 2.4142136573791504), "f64": (math.sqrt(2) - 1, math.sqrt(2) + 1)}
# (atan t - t) / t³ in t² for t² ≤ (√2 - 1)²; SHORT: in float64 for a result in float32, t ≤ 1
ATAN_SINGLE = (-0.33333316445350647, 0.19998489320278168, -0.14243847131729126, 0.10595986247062683,
               -0.0608341358602047)
ATAN = (-0.33333333333333326, 0.19999999999997095, -0.14285714285316417, 0.11111111083747574, -0.09090907985899205,
        0.07692279199790057,
        -0.06666174616284361, 0.058765152219061895, -0.05215168868817661, 0.04490494547359219, -0.033172842214559226,
        0.014891137915016154)
ATAN_SHORT = (-0.3333333223500425, 0.1999993218553978, -0.1428425068621502, 0.11095201062221526, -0.08988785805562441,
              0.07269366649105102,
              -0.054704172662442416, 0.03470430692443027, -0.016471224597424585, 0.004999236294073068,
              -0.0007112943192148592)
# (asin t - t) / t³ in t² for t ≤ ½
ASIN_SINGLE = (0.16666753590106964, 0.07495241612195969, 0.04547715187072754, 0.024147329851984978,
               0.04221905767917633)
ASIN = (0.16666666666666763, 0.07499999999970097, 0.04464285717528758, 0.030381942675209883, 0.022372215907913863,
        0.017351595462842026,
        0.013981018992624003, 0.01139728925738382, 0.010789342535738869, 0.003672104257066891, 0.02179084293705884,
        -0.021116993850508806,
        0.03270233141041325)
ASIN_SHORT = (0.16666659853073576, 0.07500512122155747, 0.044515473167742355, 0.031819800668147574,
              0.014393878609069882, 0.03757805075920435)


def atan(a: Arithmetic, x: Expr) -> Expr:
    """atan |x| of t = |x|, 1 / |x| or (|x| - 1) / (|x| + 1), from the multiple of π/4 that this leaves."""
    m, (pi, pi_low), (low_edge, high_edge) = a.magnitude(x), PI[a.dtype], EDGES[a.dtype]
    if a.short:
        steep = m > 1.0
        angle = _short(a, a.where(steep, 1.0, m) / a.where(steep, m, 1.0))
        return a.with_sign(a.where(steep, a.at(pi / 2) - angle, angle), x)
    small, large = m < low_edge, m > high_edge
    above = a.where(small, m, a.where(large, -1.0, m - 1.0))
    below = a.where(small, 1.0, a.where(large, m, m + 1.0))
    edge = Op("or", (small, large))
    above_low = a.where(edge, 0.0, m - (above + 1.0))            # what rounding took from m - 1 and m + 1
    below_low = a.where(edge, 0.0, m - (below - 1.0))
    inverse = a.at(1.0) / below
    t = above * inverse
    left = a.mad(t, a.minus(below), above) + (above_low - t * below_low)
    t_low = a.where(m < math.inf, left * inverse, 0.0)
    z = t * t
    turned = a.where(small, 0.0, a.where(large, 2.0, 1.0))
    total, lost = fast_two_sum(turned * (pi / 4), t)
    series = a.horner(z, ATAN_SINGLE if a.dtype == "f32" else ATAN)
    rest = a.mad(series, z * t, a.mad(turned, a.at(pi_low / 4), t_low))
    return a.with_sign(total + (lost + rest), x)


def _short(a: Arithmetic, t: Expr) -> Expr:
    z = t * t
    return a.mad(a.horner(z, ATAN_SHORT), z * t, t)


def atan2(a: Arithmetic, y: Expr, x: Expr) -> Expr:
    """atan of the smaller over the greater of |y| and |x|, or of their difference over their sum, from the multiple of
    π/4 that this leaves; float32 only."""
    ay, ax = a.magnitude(y), a.magnitude(x)
    pi, pi_low = PI[a.dtype]
    steep, left = ay > ax, Op("eq", (a.sign_of(x), a.word(a.sign)))
    top, low = a.where(steep, ay, ax), a.where(steep, ax, ay)
    ordered = Op("and", (Op("eq", (x, x)), Op("eq", (y, y))))
    if a.short:
        t = a.where(Op("eq", (top, low)), a.where(Op("eq", (top, a.at(0.0))), 0.0, 1.0), low / top)
        angle = _short(a, t)
        angle = a.where(steep, a.at(pi / 2) - angle, angle)
        angle = a.where(left, a.at(pi) - angle, angle)
        return a.where(ordered, a.with_sign(angle, y), math.nan)
    is_zero, equal = Op("eq", (top, a.at(0.0))), Op("eq", (top, low))
    # for the inverse below, and for the rest of a division whose result is no subnormal number
    by = a.where(top > 2.0**100, 2.0**-30, a.where(top < 2.0**20, 2.0**100, 1.0))
    top, low = top * by, low * by
    slight = Op("or", (is_zero, low < top * EDGES["f32"][0]))
    above = a.where(equal, 0.0, a.where(slight, low, low - top))
    below = a.where(equal, 1.0, a.where(slight, top, top + low))
    edge = Op("or", (slight, equal))
    above_low = a.where(edge, 0.0, low - (above + top))          # what rounding took from the difference and the sum
    below_low = a.where(edge, 0.0, low - (below - top))
    inverse = a.at(1.0) / below
    t = above * inverse
    rest = a.mad(t, a.minus(below), above) + (above_low - t * below_low)
    t_low = a.where(below < math.inf, rest * inverse, 0.0)
    z = t * t
    small = a.mad(a.horner(z, ATAN_SINGLE), z * t, t_low)
    # The angle is turned · π/4 ± (t + small).
    turned = a.where(slight, 0.0, 1.0)
    turned = a.where(steep, a.at(2.0) - turned, turned)
    turned = a.where(left, a.at(4.0) - turned, turned)
    mirrored = Op("ne", (steep, left))
    start, start_low = a.two_product(turned, a.at(pi / 4))
    total, lost = fast_two_sum(start, a.where(mirrored, a.minus(t), t))
    rest = a.mad(turned, a.at(pi_low / 4), start_low) + a.where(mirrored, a.minus(small), small)
    return a.where(ordered, a.with_sign(total + (lost + rest), y), math.nan)


def asin(a: Arithmetic, x: Expr) -> Expr:
    """t + t³ P(t²) up to ½, π/2 - 2 asin √((1 - |x|) / 2) beyond."""
    near, t, t_low, series = _halves(a, a.magnitude(x))
    pi, pi_low = PI[a.dtype]
    if t_low is None:
        far = a.at(pi / 2) - (t + series) * 2.0
    else:
        far = (a.at(pi / 2) - t * 2.0) + _lost(a, pi / 2, t * 2.0, pi_low / 2, (series + t_low) * 2.0)
    return a.with_sign(a.where(near, t + series, far), x)


def acos(a: Arithmetic, x: Expr) -> Expr:
    """π/2 - asin x up to ½; beyond, 2 asin √((1 - |x|) / 2), or π less that."""
    near, t, t_low, series = _halves(a, a.magnitude(x))
    pi, pi_low = PI[a.dtype]
    own, own_series = (a.real(Op("or", (a.bits(v), a.sign_of(x)))) for v in (t, series))
    if t_low is None:
        far = (t + series) * 2.0
        middle, mirrored = a.at(pi / 2) - (own + own_series), a.at(pi) - far
    else:
        far = (t + (series + t_low)) * 2.0
        middle = (a.at(pi / 2) - own) + _lost(a, pi / 2, own, pi_low / 2, own_series)
        mirrored = (a.at(pi) - t * 2.0) + _lost(a, pi, t * 2.0, pi_low, (series + t_low) * 2.0)
    return a.where(near, middle, a.where(x < 0, mirrored, far))


def _halves(a: Arithmetic, m: Expr) -> tuple[Expr, Expr, Expr | None, Expr]:
    """Is m below ½? Then t = m, else t = √((1 - m) / 2); what rounding took from the root (None in short); asin t -
    t"""
    near = m < 0.5
    half = (a.at(1.0) - m) * 0.5
    root = Op("sqrt", (half,))
    low = None if a.short else a.where(Op("lt", (a.at(0.0), half)), a.mad(root, a.minus(root), half) / (root + root),
                                       0.0)
    z, t = a.where(near, m * m, half), a.where(near, m, root)
    coefficients = ASIN_SHORT if a.short else ASIN_SINGLE if a.dtype == "f32" else ASIN
    return near, t, low, a.horner(z, coefficients) * (z * t)


def _lost(a: Arithmetic, base: float, part: Expr, base_low: float, part_low: Expr) -> Expr:
    """What is to be added to base - part so that it is (base + base_low) - (part + part_low)."""
    total = a.at(base) - part
    return ((a.at(base) - total) - part) + (a.at(base_low) - part_low)

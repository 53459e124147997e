"""Trigonometric functions: sin, cos, tan.

x = n · π/2 + r, or n · π + r, with multiples of π taken off in several steps (Cody and Waite). That holds for |x| up to
`LIMITS`; beyond, whoever calls asks another implementation. `a` is the arithmetic.
"""
from __future__ import annotations

from typing import NamedTuple

from ...core.expr import Bitcast, Expr, Op
from ..double_double import fast_two_sum
from .arithmetic import Arithmetic

# The greatest |x| for which the reductions hold: of float32, float64, and float32 by way of float64.
LIMITS = {"f32": 32768.0, "f64": 2.0**28}
SHORT_LIMIT = 1e6

# (sin r - r) / r³ and (cos r - 1 + r²/2) / r⁴ in r² for |r| ≤ π/4; COS of float32 is by N. Juffa
SIN = {
    "f32": (-1.6666655e-1, 8.3321773e-3, -1.951717e-4),
    "f64": (-0.16666666666666632, 0.008333333333322418, -0.00019841269829755457, 2.7557313659040157e-06,
            -2.505075114534561e-08,
            1.589630499789438e-10),
}
COS = {
    "f32": (4.16666567e-2, -1.38877297e-3, 2.44677067e-5),
    "f64": (0.041666666666666595, -0.0013888888888873303, 2.4801587288947063e-05, -2.7557314191850896e-07,
            2.0875700724826513e-09,
            -1.1358445269448647e-11),
}
SIN_SHORT = (-0.16666666641225655, 0.0083333293386131, -0.0001983931943169387, 2.7181631364477105e-06)
COS_SHORT = (0.04166664662833067, -0.0013887355361815862, 2.4437007687303017e-05)
# (sin r - r) / r³ for |r| ≤ π/2
SIN_HALF = (-0.16666659521410015, 0.008333065434145913, -0.00019809539223426836, 2.6056316304023765e-06)
SIN_HALF_FAST = (-0.166666597, 0.00833306834, -0.000198095047, 2.60502156e-06)

# π/2 and π in parts. Those that are taken off one after the other are positive, all but the last rounded down: so -0
# stays.
HALF_PI = {
    "f32": ("0x1.921fb4p+0", "0x1.4442d2p-24", "-0x1.ee59dap-50"),
    "f64": ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"),
}
PI_SINGLE = tuple(float.fromhex(c) for c in ("0x1.921fb4p+1", "0x1.4442dp-23", "0x1.846988p-47"))
PI_SHORT = (3.1415926534682512, 1.2154201013012384e-10)  # the first has 32 bits: exact times n
HALF_PI_SHORT = (1.5707963267341256, 6.077100506506192e-11)


def sin(a: Arithmetic, x: Expr) -> Expr:
    """sin x"""
    return _half_turns(a, x, 0) if _is_rough(a) else _quadrants(a, x, 0)


def cos(a: Arithmetic, x: Expr) -> Expr:
    """cos x = sin(x + π/2)"""
    return _half_turns(a, x, 1) if _is_rough(a) else _quadrants(a, x, 1)


def _is_rough(a: Arithmetic) -> bool:
    """May a unit or two in the last place be lost?"""
    return a.short or (a.fast and a.dtype == "f32")


def _half_turns(a: Arithmetic, x: Expr, quarter: int) -> Expr:
    """(-1)^n · sin r with x = n · π + r, and for the cosine x = (n - ½) · π + r. What this loses is one or two units of
    float32."""
    inverse = a.at(0.3183098861837907)
    if quarter:
        shifted = a.mad(x, inverse, a.at(0.5)) + a.rounder
        n = shifted - a.rounder - 0.5
    else:
        shifted = a.mad(x, inverse, a.at(a.rounder))
        n = shifted - a.rounder
    r = x
    for part in PI_SHORT if a.short else PI_SINGLE:
        r = a.mad(n, a.at(-part), r)
    z = r * r
    value = a.mad(a.horner(z, SIN_HALF if a.short else SIN_HALF_FAST), z, a.at(1.0)) * r
    flipped = a.shl(a.bits(shifted), a.mantissa + a.exponent_bits)
    return a.real(Op("xor", (a.bits(value), flipped)))


class Angle(NamedTuple):
    """x = n · π/2 + r - less; the low bits of `shifted` are n."""

    shifted: Expr
    r: Expr
    less: Expr


def _reduced(a: Arithmetic, x: Expr) -> Angle:
    shifted = a.mad(x, a.at(0.6366197723675814), a.at(a.rounder))
    n = shifted - a.rounder
    high, middle, low = [float.fromhex(part) for part in HALF_PI[a.dtype]]
    first = a.mad(n, a.at(-high), x)                              # exact: close multiples of the last bit of π/2
    r = first - n * middle                                        # rounded twice, not fused: so r - first is exact
    less = a.mad(n, a.at(low), a.mad(n, a.at(middle), r - first))
    return Angle(shifted, r, less)


def _quadrants(a: Arithmetic, x: Expr, quarter: int) -> Expr:
    """± sin or ± cos of r - less, by quadrant. The sine subtracts its correction from r, which keeps -0.

    z is (r - less)², so the cosine needs no other correction by `less`. For the sine, r · z contains two thirds of the
    second term of the factor cos r; the remaining error is a tenth of `less`, half a unit in the last place. In the
    cosine, the roundings of z and of its factor cost at most a quarter of a unit each, and that of the sum half."""
    shifted, r, less = _reduced(a, x)
    z = a.mad(r, r, a.minus((r + r) * less))
    s = r - a.mad(a.horner(z, [-c for c in SIN[a.dtype]]), z * r, less)
    c = a.mad(a.horner(z, (-0.5, *COS[a.dtype])), z, a.at(1.0))
    quadrant = a.bits(shifted) + quarter
    value = a.where(_is_odd(a, quadrant), c, s)
    flipped = a.shl(Op("and", (quadrant, a.word(2))), a.mantissa + a.exponent_bits - 1)
    return a.real(Op("xor", (a.bits(value), flipped)))


def _sine_and_cosine(a: Arithmetic, r: Expr, less: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """sin(r - less) as a difference, r and what is taken off (so that -0 stays), cos(r - less) as a sum, 1 - r²/2
    rounded and all else."""
    z = r * r
    half = z * 0.5
    first = a.at(1.0) - half
    s = a.horner(z, [-c for c in SIN[a.dtype]]) * (z * r)
    c = a.horner(z, COS[a.dtype]) * (z * z)
    sine = r, a.mad(first + c, less, s)                           # sin r - less · cos r
    return sine, (first, ((a.at(1.0) - first) - half) + a.mad(r - s, less, c))


def _is_odd(a: Arithmetic, n: Expr) -> Expr:
    """Is the last bit set? It becomes the sign."""
    return Bitcast(a.integer.replace("u", "i"), a.shl(n, a.mantissa + a.exponent_bits)) < 0


def tan(a: Arithmetic, x: Expr) -> Expr:
    """sin r / cos r, in odd quadrants -cos r / sin r."""
    return a.where(Op("eq", (x, a.at(0.0))), x, _tan_short(a, x) if a.short else _tan(a, x))


def _tan_short(a: Arithmetic, x: Expr) -> Expr:
    shifted = a.mad(x, a.at(0.6366197723675814), a.at(a.rounder))
    n = shifted - a.rounder
    r = x
    for part in HALF_PI_SHORT:
        r = a.mad(n, a.at(-part), r)
    z = r * r
    s = a.mad(a.horner(z, SIN_SHORT), z * r, r)
    c = a.mad(a.horner(z, COS_SHORT), z * z, a.mad(z, a.at(-0.5), a.at(1.0)))
    odd = _is_odd(a, a.bits(shifted))
    return a.where(odd, a.minus(c), s) / a.where(odd, s, c)


def _tan(a: Arithmetic, x: Expr) -> Expr:
    """The quotient, corrected by what the parts of both hold beside their rounded sums."""
    angle = _reduced(a, x)
    (r, less), cosine = _sine_and_cosine(a, angle.r, angle.less)
    s, s_low = fast_two_sum(r, a.minus(less))
    c, c_low = fast_two_sum(*cosine)
    odd = _is_odd(a, a.bits(angle.shifted))
    above, above_low = a.where(odd, a.minus(c), s), a.where(odd, a.minus(c_low), s_low)
    below, below_low = a.where(odd, s, c), a.where(odd, s_low, c_low)
    inverse = a.at(1.0) / below
    quotient = above * inverse
    left = a.mad(quotient, a.minus(below), above) + (above_low - quotient * below_low)
    return a.mad(left, inverse, quotient)

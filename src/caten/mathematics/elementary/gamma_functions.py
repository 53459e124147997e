"""The logarithm of the gamma function. `a` is the arithmetic."""
from __future__ import annotations

import math
from dataclasses import replace

from ...core.expr import Expr, Op
from .arithmetic import Arithmetic
from .logarithm import log

SHIFTS = 8                     # steps up to where Stirling's series is exact enough
# Stirling's series: B₂ₙ / (2n (2n - 1)) in 1 / z², times 1 / z
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
SINE = tuple([(-1)**n * math.pi**(2 * n + 1) / math.factorial(2 * n + 1) for n in range(10)])       # sin πr / r in r²
HALF_LOG_2_PI = 0.91893853320467274178
INTEGERS = 2.0**25             # from there on every float32 is an even integer


def lgamma(a: Arithmetic, x: Expr) -> Expr:
    """log |Γ(x)| in float64 for a result in float32: Stirling's series for z = y + 8 (y itself from 8 on), less the log
    of y (y + 1) … (y + 7) by which Γ(z) is greater; y = 1 - x for negative x, by Γ(x) Γ(1 - x) = π / sin πx (Abramowitz
    and Stegun 6.1.15, 6.1.17, 6.1.40)."""
    a = replace(a, short=False)                            # near 1 and 2 almost nothing is left of both logs
    negative = x < 0
    y = a.where(negative, a.at(1.0) - x, x)
    few = y < float(SHIFTS)
    steps = y
    for n in range(1, SHIFTS):
        steps = steps * (y + float(n))
    z, product = a.where(few, y + float(SHIFTS), y), a.where(few, steps, 1.0)
    inverse = a.at(1.0) / z
    tail = a.horner(inverse * inverse, STIRLING) * inverse
    stirling = a.mad(z - 0.5, log(a, z), a.minus(z)) + (tail + HALF_LOG_2_PI)
    # What is left of x beyond its nearest integer.
    within = a.clamp(x, -INTEGERS, None)
    r = within - ((within + a.rounder) - a.rounder)
    sine = a.magnitude(a.horner(r * r, SINE) * r)
    other = log(a, a.where(negative, product * math.pi / sine, product))
    value = a.where(negative, other - stirling, stirling - other)
    value = a.where(Op("or", (Op("eq", (x, a.at(1.0))), Op("eq", (x, a.at(2.0))))), 0.0, value)
    return a.where(Op("eq", (a.magnitude(x), a.at(math.inf))), math.inf, value)

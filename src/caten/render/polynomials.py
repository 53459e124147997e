"""Functions of float32 vectors as polynomials, written once as expressions: what a C library would otherwise compute lane by lane.

`mad(a, b, c)` is a·b + c, fused where the machine can. Everything else is plain arithmetic, choice by lane and bits, so any SIMD unit runs it.
"""
from __future__ import annotations

from collections.abc import Callable

from ..core.decompose import Definition
from ..core.expr import Bitcast, Expr, Op, Var, number

Mad = Callable[[Expr, Expr, Expr], Expr]


def f32(value: float) -> Expr:
    """A float32 constant."""
    return number(value, "f32")


def i32(value: int) -> Expr:
    """An int32 constant."""
    return number(value, "i32")


def horner(mad: Mad, x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """The polynomial with these coefficients, highest power first."""
    total = f32(coefficients[0])
    for c in coefficients[1:]:
        total = mad(total, x, f32(c))
    return total


def where(cond: Expr, yes: Expr, no: Expr) -> Expr:
    """yes if cond else no, lane by lane."""
    return Op("where", (cond, yes, no))


def exp(x: Expr, mad: Mad) -> Expr:
    """e^x = 2^n · e^r with n = round(x / ln 2), |r| <= ln 2 / 2. Adding 1.5 · 2^23 rounds, and leaves n in the low bits. 2^n is applied in two
    factors, so that denormal results are right. The polynomial is that of Cephes' expf (S. Moshier)."""
    clamped = where(x < -104.0, f32(-104.0), where(x > 89.0, f32(89.0), x))
    shifted = mad(clamped, f32(1.44269504088896341), f32(12582912.0))
    n = shifted - 12582912.0
    r = mad(n, f32(2.12194440e-4), mad(n, f32(-0.693359375), clamped))
    tail = horner(mad, r, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1))
    power = mad(tail, r * r, r) + 1.0
    whole = Bitcast("i32", shifted) - 0x4B400000
    half = Op("shr", (whole, i32(1)))
    return power * _power_of_two(half) * _power_of_two(whole - half)


def _power_of_two(n: Expr) -> Expr:
    """2^n for an int32 in the range of exponents."""
    return Bitcast("f32", Op("shl", (n + 127, i32(23))))


def log(x: Expr, mad: Mad) -> Expr:
    """ln x = e · ln 2 + ln m with m in [√½, √2). Denormals are scaled first. The polynomial is that of Cephes' logf."""
    small = x < 1.17549435e-38
    scaled = where(small, x * 8388608.0, x)
    bits = Bitcast("i32", scaled) - 0x3F3504F3                                        # the bits of √½
    exponent = Op("shr", (bits, i32(23)))
    m = Bitcast("f32", bits - Op("shl", (exponent, i32(23))) + 0x3F3504F3) - 1.0
    e = _to_float(exponent) - where(small, f32(23.0), f32(0.0))
    z = m * m
    y = horner(mad, m, (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
                        -2.4999993993e-1, 3.3333331174e-1)) * m * z
    y = mad(e, f32(-2.12194440e-4), y)
    y = mad(z, f32(-0.5), y)
    finite = mad(e, f32(0.693359375), m + y)
    edge = where(Op("eq", (x, f32(0.0))), f32(float("-inf")), where(x < 0.0, f32(float("nan")), x))     # 0, negative, infinity and NaN
    return where(Op("and", (f32(0.0) < x, x < float("inf"))), finite, edge)


def _to_float(n: Expr) -> Expr:
    """A small int32 as float32."""
    from_bits = Bitcast("f32", n + 0x4B400000)
    return from_bits - 12582912.0


def tanh(x: Expr, mad: Mad) -> Expr:
    """Near 0 the odd polynomial of Cephes' tanhf, elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x."""
    a, z = _magnitude(x), x * x
    near = mad(horner(mad, z, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)) * z, a, a)
    far = f32(1.0) - f32(2.0) / (exp(a + a, mad) + 1.0)
    return _with_sign(where(a < 0.625, near, far), x)


def erf(x: Expr, mad: Mad) -> Expr:
    """Two polynomials, for |x| up to 475/512 and 1 - e^p(|x|) beyond (N. Juffa)."""
    t, s = _magnitude(x), x * x
    high = mad(horner(mad, t, (-1.72853470e-5, 3.83197126e-4)), s, horner(mad, t, (-3.88396438e-3, 2.42546219e-2)))
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        high = mad(high, t, f32(c))
    far = f32(1.0) - exp(mad(high, t, f32(0.0) - t), mad)
    near = mad(horner(mad, s, (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)), x, x)
    return where(t > 0.927734375, _with_sign(far, x), near)


def sin(x: Expr, mad: Mad) -> Expr:
    """sin x for |x| up to `LIMITS`: x - n · π/2 in three steps (Cody and Waite) with what each loses kept beside it, then the polynomial of the
    quadrant n mod 4 (N. Juffa)."""
    return _trigonometric(x, mad, 0)


def cos(x: Expr, mad: Mad) -> Expr:
    """cos x = sin of one quadrant further."""
    return _trigonometric(x, mad, 1)


def _trigonometric(x: Expr, mad: Mad, quadrants: int) -> Expr:
    shifted = mad(x, f32(0.636619747), f32(12582912.0))
    n, quadrant = shifted - 12582912.0, Bitcast("i32", shifted) + quadrants
    high, middle, low = [f32(float.fromhex(c)) for c in ("-0x1.921fb0p+00", "-0x1.5110b4p-22", "-0x1.846988p-48")]
    first, second = mad(n, high, x), n * middle                   # first is exact: x and n · high are close multiples of 2^-20
    r = first + second
    back = r - first
    rest = (first - (r - back)) + (second - back)                 # what rounding took from r (Knuth's two-sum) …
    rest = rest + mad(n, low, mad(n, middle, f32(0.0) - second))  # … and from the second product
    s = r * r
    odd = r + mad(horner(mad, s, (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)), r * s, rest)
    even = mad(horner(mad, s, (2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -0.5)), s, f32(0.0) - r * rest) + 1.0
    value = where(Op("eq", (Op("and", (quadrant, i32(1))), i32(0))), odd, even)
    flipped = Op("shl", (Op("and", (quadrant, i32(2))), i32(30)))
    return Bitcast("f32", Op("xor", (Bitcast("i32", value), flipped)))


def _magnitude(x: Expr) -> Expr:
    return Bitcast("f32", Op("and", (Bitcast("i32", x), i32(0x7FFFFFFF))))


def _with_sign(magnitude: Expr, x: Expr) -> Expr:
    return Bitcast("f32", Op("or", (Bitcast("i32", magnitude), Op("and", (Bitcast("i32", x), i32(-0x80000000))))))


FORMS: dict[tuple[str, str], Callable[[Expr, Mad], Expr]] = {("exp", "f32"): exp, ("log", "f32"): log, ("tanh", "f32"): tanh, ("erf", "f32"): erf,
                                                            ("sin", "f32"): sin, ("cos", "f32"): cos}
LIMITS = {"sin": 32768.0, "cos": 32768.0}      # arguments beyond which a polynomial does not hold: there the C library is asked, lane by lane
NEED_FMA = frozenset(LIMITS)                   # those whose reduction is only exact with a fused multiply-add


def polynomial(fn: str, dtype: str, fused: bool) -> Definition | None:
    """The function of a vector operator, or None where there is none."""
    form = FORMS.get((fn, dtype))
    if form is None or (fn in NEED_FMA and not fused):
        return None
    x = Var("x", dtype)
    return Definition.of((x,), form(x, _fused if fused else _separate))


def _fused(a: Expr, b: Expr, c: Expr) -> Expr:
    return Op("fma", (a, b, c))


def _separate(a: Expr, b: Expr, c: Expr) -> Expr:
    return a * b + c

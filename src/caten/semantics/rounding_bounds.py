"""Rounding bounds: the first-order error of one operator, computed in a declared float type instead of exactly.

    bound(f(x, y)) = Σ |∂f/∂xᵢ| · bound(xᵢ) + 2 · ulp(f) · u · |f(x, y)| + η

u is the unit roundoff of the declared type, η its smallest number; ulp(f) and the derivatives come from the operator
table. Near a jump, at a kink, or with an infinite slope, the operator is evaluated at the ends of its argument's
interval instead.

A bound is finite if the value is, or infinite: the value may be anything. A value that is certainly an infinity or NaN
is exact: exp(-∞) = 0 and -∞ + x = -∞ for every rounding of x. No bound is NaN.
"""
from __future__ import annotations

from ..core.derivatives import at
from ..core.dtypes import DTYPES, FORMATS, part
from ..core.expr import FALSE, TRUE, Expr, Op, number
from ..core.scalars import OPERATORS
from ..mathematics.elementary.elementary_table import FORMS

EXACT = number(0.0, "f64")                        # the bound of an exact value
INFINITE = number(float("inf"), "f64")            # that of a value that may be anything
GREATEST = number(FORMATS["f64"][2], "f64")
LIMITS = {d: (greatest, 2.0**last) for d, (_, last, greatest) in FORMATS.items()}   # greatest, smallest

# Functions with slope at most 1: the bound is the greatest of their arguments'.
CONTRACTIONS = frozenset(("max", "min", "fmax", "fmin", "clip", "relu", "abs", "neg", "real", "imag", "conj"))
# Step functions and those without a derivative in the table; all of one operand, and monotone.
STEPS = frozenset(("floor", "ceil", "trunc", "round", "sign", "lgamma"))
# Functions that underflow in float64 only far below the least number of every narrower type.
VANISHING = frozenset(("exp", "exp2", "sigmoid"))
# The distance of the arguments x, y from the edge of the domain (NaN, infinity) or from a jump.
EDGES: dict[str, str] = {
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "pow"), "x"),
    **dict.fromkeys(("div", "floordiv", "mod", "truncdiv", "truncmod"), "y"),
    "log1p": "(+ 1 x)", "atan2": "(where (< y 0) x (hypot x y))", "lgamma": "(where (< x 0.5) (- x (round x)) x)",
    **dict.fromkeys(("asin", "acos", "atanh"), "(- 1 (abs x))"), "acosh": "(- x 1)",
}
# Functions whose first-order bound holds for errors of any size, and those that turn back within a short interval.
LINEAR, WAVES = frozenset(("mul", "fma")), frozenset(("sin", "cos"))
# An operand whose error exceeds this depends on a comparison that is undecided, and may be far from its value.
CLOSE = number(2.0**-6, "f64")


def plus(x: Expr, y: Expr) -> Expr:
    """x + y of bounds."""
    return y if x is EXACT else x if y is EXACT else x + y


def greater(x: Expr, y: Expr) -> Expr:
    """max(x, y) of bounds."""
    return y if x is EXACT or x is y else x if y is EXACT else Op("max", (x, y))


def either(x: Expr, y: Expr) -> Expr:
    """x or y."""
    return TRUE if TRUE in (x, y) else y if x is FALSE or x is y else x if y is FALSE else Op("or", (x, y))


def both(x: Expr, y: Expr) -> Expr:
    """x and y."""
    return FALSE if FALSE in (x, y) else y if x is TRUE or x is y else x if y is TRUE else Op("and", (x, y))


def negated(x: Expr) -> Expr:
    """not x"""
    return FALSE if x is TRUE else TRUE if x is FALSE else Op("not", (x,))


def choose(cond: Expr, x: Expr, y: Expr) -> Expr:
    """x if cond else y."""
    return x if cond is TRUE or x is y else y if cond is FALSE else Op("where", (cond, x, y))


def size(x: Expr) -> Expr:
    """|x|, a float64 for complex numbers too."""
    return Op("abs", (x,))


def is_finite(x: Expr) -> Expr:
    """True if x is neither an infinity nor NaN."""
    return Op("le", (size(x), GREATEST))


def unlimited(bound: Expr) -> Expr:
    """True if the value may be anything."""
    return FALSE if bound is EXACT else negated(is_finite(bound))


def finite_part_size(x: Expr) -> Expr:
    """|x|, 0 if not finite. Of a complex number: the magnitude of its finite parts."""
    if DTYPES[x.dtype].kind != "complex":
        return choose(is_finite(x), size(x), EXACT)
    real, imaginary = (choose(is_finite(p), p, EXACT) for p in parts(x))
    return Op("hypot", (real, imaginary))


def parts(x: Expr) -> tuple[Expr, Expr]:
    """The real and the imaginary part of a complex number."""
    return Op("real", (x,)), Op("imag", (x,))


def distance(x: Expr, y: Expr) -> Expr:
    """x - y; for complex numbers its magnitude, in which equal infinities do not differ."""
    if DTYPES[x.dtype].kind != "complex":
        return x - y
    real, imaginary = (choose(Op("eq", (a, b)), EXACT, a - b) for a, b in zip(parts(x), parts(y), strict=True))
    return Op("hypot", (real, imaginary))


def apart(x: Expr, y: Expr) -> Expr:
    """|x - y|; 0 for equal infinities and two NaN, infinite if only one is a number. Complex: part by part."""
    same: Expr = Op("eq", (x, y))
    if DTYPES[x.dtype].kind != "complex":
        same = either(same, both(Op("ne", (x, x)), Op("ne", (y, y))))
    moved = distance(x, y)
    return choose(same, EXACT, choose(is_finite(moved), size(moved), INFINITE))


def reaches(distance: Expr, bound: Expr) -> Expr:
    """True if an error within `bound` may bridge this distance. False if there is no error."""
    return FALSE if bound is EXACT else both(bound > EXACT, either(size(distance) <= bound, unlimited(bound)))


def rounding(fn: str, values: tuple[Expr, ...], result: Expr, dtype: str, fast: bool = False) -> Expr:
    """The operator's own error in the declared type; finite also where the result is not. `fast`: by a form that may
    flush values below twice the least normal number to 0."""
    ulp = OPERATORS[fn].ulp
    factor = 1.0
    is_complex = DTYPES[dtype].kind == "complex"
    if is_complex:
        ulp, factor = max(ulp, 0.5), 4.0                       # complex * and / round several times
    if ulp == 0:
        return EXACT
    least = 2 * least_normal(dtype) if fast and fn in FORMS else max(ulp, 1.0) * smallest(dtype)
    error = finite_size(result) * (2 * ulp * factor * DTYPES[dtype].unit_roundoff) + least
    return error if is_complex else choose(_is_exact_zero(fn, values, result, dtype), EXACT, error)


def _is_exact_zero(fn: str, values: tuple[Expr, ...], result: Expr, dtype: str) -> Expr:
    """True if the result is 0 in every type: correctly rounded operators, e^x underflowing in float64, limits."""
    zero = Op("eq", (result, EXACT))
    if OPERATORS[fn].ulp <= 0.5 or (fn in VANISHING and dtype != "f64"):
        return zero
    beyond: Expr = FALSE
    for x in values:
        beyond = either(beyond, negated(is_finite(x)))
    return choose(zero, beyond, FALSE)


def finite_size(x: Expr) -> Expr:
    """|x|, at most the greatest number; of a complex number, of its finite parts."""
    if DTYPES[x.dtype].kind == "complex":
        return finite_part_size(x)
    return Op("fmin", (size(x), GREATEST))


def smallest(dtype: str) -> float:
    """The smallest number above 0."""
    return LIMITS[part(dtype)][1]


def least_normal(dtype: str) -> float:
    """The least positive normal number of the type in which functions of this type are computed."""
    precision, last, _ = FORMATS["f32" if part(dtype) in ("f16", "bf16") else part(dtype)]
    return 2.0 ** (last + precision - 1)


def propagated(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], result: Expr) -> Expr:
    """The propagated errors of the operands."""
    if all(b is EXACT for b in bounds):
        return EXACT
    if fn == "complex":
        return plus(*bounds)
    if fn in CONTRACTIONS:
        total: Expr = EXACT
        for b in bounds:
            total = greater(total, b)
        return total
    if fn in STEPS:
        return _where_inexact(bounds[0], _at_the_ends(fn, values, bounds, 0, result))
    if fn in ("floordiv", "truncdiv", "mod", "truncmod"):
        return _where_inexact(plus(*bounds), _quotient(fn, values, bounds))
    terms: Expr = EXACT
    for n, (text, b) in enumerate(zip(OPERATORS[fn].derivative, bounds, strict=True)):
        if b is not EXACT:
            terms = plus(terms, b if text in ("1", "-1") else _where_inexact(b, _term(fn, values, bounds, n, result)))
    return terms


def _where_inexact(bound: Expr, moved: Expr) -> Expr:
    """The propagated error of an operand; 0 if the operand is exact, whatever the slope (0 · ∞ is not 0)."""
    return choose(Op("eq", (bound, EXACT)), EXACT, moved)


def _term(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], n: int, result: Expr) -> Expr:
    """The propagated error of operand `n`: |∂f/∂x| · bound(x), or if that is NaN the change up to its interval's
    ends; the greater of both for a large error, unless the function is linear in the operand."""
    bound = bounds[n]
    linear = size(at(OPERATORS[fn].derivative[n], values, values[0].dtype)) * bound
    if fn == "sqrt":
        return Op("fmin", (linear, Op("sqrt", (bound,))))              # |√(x+b) - √x| ≤ √b
    if DTYPES[values[0].dtype].kind == "complex":
        return linear
    ends = _at_the_ends(fn, values, bounds, n, result)
    if fn not in LINEAR:
        linear = choose(bound <= CLOSE, linear, greater(linear, bound if fn in WAVES else ends))
    return choose(is_finite(linear), linear, ends)


def _at_the_ends(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], n: int, result: Expr) -> Expr:
    """The distance of the result from those at the ends of the interval of operand `n`; infinite if unlimited."""
    def moved(x: Expr) -> Expr:
        return apart(Op(fn, (*values[:n], x, *values[n + 1:])), result)
    return choose(is_finite(bounds[n]), greater(moved(values[n] + bounds[n]), moved(values[n] - bounds[n])), INFINITE)


def _quotient(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...]) -> Expr:
    """Error of integer division and remainder: the quotient may jump by integers, the remainder by as many divisors."""
    (x, y), (bx, by) = values, bounds
    exact = x / y
    error = (bx + size(exact) * by) / size(y)
    rounded = "floor" if fn in ("floordiv", "mod") else "trunc"
    jump = Op(rounded, (exact + error,)) - Op(rounded, (exact - error,))
    if fn in ("floordiv", "truncdiv"):
        return jump
    return plus(bx, size(Op(rounded, (exact,))) * by) + jump * size(y)


def leaves_domain(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...]) -> Expr:
    """True if the errors of the operands may carry them out of the domain."""
    text = EDGES.get(fn)
    if text is None or DTYPES[values[0].dtype].kind == "complex":
        return FALSE
    distance = at(text, values, values[0].dtype)
    if fn == "atan2":   # at the origin, or across the negative axis
        return either(reaches(distance, bounds[0]), reaches(Op("hypot", values), bounds[1]))
    return reaches(distance, bounds[1] if text == "y" else bounds[0])


def settled(magnitude: Expr, bound: Expr, greatest: Expr) -> Expr:
    """The bound of a value in a type with a greatest number: infinite if it may lie on both sides of it, 0 if beyond,
    or NaN."""
    beyond = both(is_finite(bound), negated(magnitude - bound <= greatest))
    return choose(magnitude + bound <= greatest, bound, choose(beyond, EXACT, INFINITE))

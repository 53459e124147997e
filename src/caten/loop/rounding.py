"""First-order rounding error of one operator: how far a result computed in a declared float type may be from the one computed exactly.

    bound(f(x, y)) = Σ |∂f/∂xᵢ| · bound(xᵢ) + 2 · ulp(f) · u · |f(x, y)| + η

with u the unit roundoff of the declared type, η its smallest number, ulp(f) and the derivatives from the operator table. Where that is no bound,
near a jump, at a kink, or where a slope is infinite, the operator is evaluated at the ends of its argument's interval instead.

A bound is finite where the value is, or infinite: the value may be anything. A value that surely is an infinity, or no number, is exact: exp(-∞) = 0
and -∞ + x = -∞ whatever rounding did to x. No bound is NaN.
"""
from __future__ import annotations

from functools import cache

from ..core.dtypes import DTYPES, FORMATS, part
from ..core.elementary.table import FORMS
from ..core.expr import FALSE, TRUE, Const, Expr, Op, Var, number
from ..core.node import substitute
from ..core.scalars import OPERATORS
from ..core.text import read

EXACT = number(0.0, "f64")                        # the bound of a value without rounding error
INFINITE = number(float("inf"), "f64")            # that of a value that may be anything
GREATEST = number(FORMATS["f64"][2], "f64")
LIMITS = {d: (greatest, 2.0**last) for d, (_, last, greatest) in FORMATS.items()}                         # greatest and smallest number

# Functions that move by no more than their arguments: the bound is the greatest of theirs.
CONTRACTIONS = frozenset(("max", "min", "fmax", "fmin", "clip", "relu", "abs", "neg", "real", "imag", "conj"))
# Step functions and those without a derivative in the table; all of one operand, and monotone.
STEPS = frozenset(("floor", "ceil", "trunc", "round", "sign", "lgamma"))
# Functions that are 0 in float64 only where the true value is far below the least number of every narrower type.
VANISHING = frozenset(("exp", "exp2", "sigmoid"))
# The distance of the arguments x, y to the edge of the domain, where a number may turn into NaN or infinity, or to a jump.
EDGES: dict[str, str] = {
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "pow"), "x"),
    **dict.fromkeys(("div", "floordiv", "mod", "truncdiv", "truncmod"), "y"),
    "log1p": "(+ 1 x)", "atan2": "(where (< y 0) x (hypot x y))", "lgamma": "(where (< x 0.5) (- x (round x)) x)",
    **dict.fromkeys(("asin", "acos", "atanh"), "(- 1 (abs x))"), "acosh": "(- x 1)",
}
X, Y, Z = Var("x"), Var("y"), Var("z")


@cache
def formula(text: str, dtype: str) -> Expr:
    """An expression of the table over x y z, its numbers typed."""
    parsed: Expr = read(text)[0]

    def typed(node: Expr) -> Expr:
        return number(node.value, dtype) if isinstance(node, Const) and node.dtype != "bool" else node.map(typed)
    return typed(parsed)


def at(text: str, values: tuple[Expr, ...], dtype: str) -> Expr:
    """A formula of the table at given arguments."""
    filled: Expr = substitute(formula(text, dtype), dict(zip((X, Y, Z), values, strict=False)))
    return filled


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
    """Is x neither an infinity nor NaN?"""
    return Op("le", (size(x), GREATEST))


def unlimited(bound: Expr) -> Expr:
    """May the value be anything?"""
    return FALSE if bound is EXACT else negated(is_finite(bound))


def finite_part_size(x: Expr) -> Expr:
    """|x| of a number, and of what is finite of a complex one: an infinity in one part does not hide the other. 0 for what is not finite."""
    if DTYPES[x.dtype].kind != "complex":
        return choose(is_finite(x), size(x), EXACT)
    real, imaginary = (choose(is_finite(p), p, EXACT) for p in parts(x))
    return Op("hypot", (real, imaginary))


def parts(x: Expr) -> tuple[Expr, Expr]:
    """The real and the imaginary part of a complex number."""
    return Op("real", (x,)), Op("imag", (x,))


def distance(x: Expr, y: Expr) -> Expr:
    """x - y; of complex numbers the length of it, in which equal infinities do not differ."""
    if DTYPES[x.dtype].kind != "complex":
        return x - y
    real, imaginary = (choose(Op("eq", (a, b)), EXACT, a - b) for a, b in zip(parts(x), parts(y), strict=True))
    return Op("hypot", (real, imaginary))


def apart(x: Expr, y: Expr) -> Expr:
    """|x - y|; 0 for equal infinities and two NaN, infinite where only one of them is a number. Of complex numbers one part may be NaN, and the
    others differ."""
    same: Expr = Op("eq", (x, y))
    if DTYPES[x.dtype].kind != "complex":
        same = either(same, both(Op("ne", (x, x)), Op("ne", (y, y))))
    moved = distance(x, y)
    return choose(same, EXACT, choose(is_finite(moved), size(moved), INFINITE))


def reaches(distance: Expr, bound: Expr) -> Expr:
    """May an error within `bound` bridge this distance? Never where there is no error."""
    return FALSE if bound is EXACT else both(bound > EXACT, either(size(distance) <= bound, unlimited(bound)))


def rounding(fn: str, values: tuple[Expr, ...], result: Expr, dtype: str, fast: bool = False) -> Expr:
    """The error of the operator itself in the declared type; finite, also where the result is not. `fast`: by a form that may give 0 for what is
    below twice the least normal number."""
    ulp = OPERATORS[fn].ulp
    factor = 1.0
    is_complex = DTYPES[dtype].kind == "complex"
    if is_complex:
        ulp, factor = max(ulp, 0.5), 4.0                       # a complex product or quotient is several roundings
    if ulp == 0:
        return EXACT
    least = 2 * least_normal(dtype) if fast and fn in FORMS else max(ulp, 1.0) * smallest(dtype)
    error = finite_size(result) * (2 * ulp * factor * DTYPES[dtype].unit_roundoff) + least
    return error if is_complex else choose(_is_exact_zero(fn, values, result, dtype), EXACT, error)


def _is_exact_zero(fn: str, values: tuple[Expr, ...], result: Expr, dtype: str) -> Expr:
    """Is the result 0 in every type? So it is where an operator is correctly rounded, where e^x is 0 in float64 already, and at infinity."""
    zero = Op("eq", (result, EXACT))
    if OPERATORS[fn].ulp <= 0.5 or (fn in VANISHING and dtype != "f64"):
        return zero
    beyond: Expr = FALSE
    for x in values:
        beyond = either(beyond, negated(is_finite(x)))
    return choose(zero, beyond, FALSE)


def finite_size(x: Expr) -> Expr:
    """|x|, and no more than the greatest number; of a complex number, of what is finite of it."""
    if DTYPES[x.dtype].kind == "complex":
        return finite_part_size(x)
    return Op("fmin", (size(x), GREATEST))


def smallest(dtype: str) -> float:
    """The smallest number above 0."""
    return LIMITS[part(dtype)][1]


def least_normal(dtype: str) -> float:
    """The least number above 0 with all its digits, in the type that functions of this one are computed in."""
    precision, last, _ = FORMATS["f32" if part(dtype) in ("f16", "bf16") else part(dtype)]
    return 2.0 ** (last + precision - 1)


def propagated(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], result: Expr) -> Expr:
    """What the errors of the operands become."""
    if all(b is EXACT for b in bounds):
        return EXACT
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
    """What the error of an operand becomes; nothing where it has none, whatever the slope is (0 · ∞ is not 0)."""
    return choose(Op("eq", (bound, EXACT)), EXACT, moved)


def _term(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], n: int, result: Expr) -> Expr:
    """What the error of operand `n` becomes: |∂f/∂x| · bound(x); the change up to the ends of its interval where that is no number."""
    bound = bounds[n]
    linear = size(at(OPERATORS[fn].derivative[n], values, values[0].dtype)) * bound
    if fn == "sqrt":
        return Op("fmin", (linear, Op("sqrt", (bound,))))              # |√(x+b) - √x| ≤ √b
    if DTYPES[values[0].dtype].kind == "complex":
        return linear
    return choose(is_finite(linear), linear, _at_the_ends(fn, values, bounds, n, result))


def _at_the_ends(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...], n: int, result: Expr) -> Expr:
    """How far the result is from those at the ends of the interval of operand `n`; infinite where that is unlimited."""
    def moved(x: Expr) -> Expr:
        return apart(Op(fn, (*values[:n], x, *values[n + 1:])), result)
    return choose(is_finite(bounds[n]), greater(moved(values[n] + bounds[n]), moved(values[n] - bounds[n])), INFINITE)


def _quotient(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...]) -> Expr:
    """x / y rounded down or towards zero, and its remainder: the quotient may jump by whole numbers, the remainder by as many divisors."""
    (x, y), (bx, by) = values, bounds
    exact = x / y
    error = (bx + size(exact) * by) / size(y)
    rounded = "floor" if fn in ("floordiv", "mod") else "trunc"
    jump = Op(rounded, (exact + error,)) - Op(rounded, (exact - error,))
    if fn in ("floordiv", "truncdiv"):
        return jump
    return plus(bx, size(Op(rounded, (exact,))) * by) + jump * size(y)


def leaves_domain(fn: str, values: tuple[Expr, ...], bounds: tuple[Expr, ...]) -> Expr:
    """May the errors of the operands carry them over the edge of the domain?"""
    text = EDGES.get(fn)
    if text is None or DTYPES[values[0].dtype].kind == "complex":
        return FALSE
    distance = at(text, values, values[0].dtype)
    if fn == "atan2":                                                  # of a point at the origin, or that may cross the negative axis
        return either(reaches(distance, bounds[0]), reaches(Op("hypot", values), bounds[1]))
    return reaches(distance, bounds[1] if text == "y" else bounds[0])


def settled(magnitude: Expr, bound: Expr, greatest: Expr) -> Expr:
    """The bound of a value whose type ends at a greatest number: infinite where the value may lie on both sides of that edge, and 0 for what
    surely lies beyond it, or is NaN."""
    beyond = both(is_finite(bound), negated(magnitude - bound <= greatest))
    return choose(magnitude + bound <= greatest, bound, choose(beyond, EXACT, INFINITE))

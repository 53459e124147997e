"""First-order rounding error of one operator: how far a result computed in a declared float type may be from the one computed exactly.

    bound(f(x, y)) = Σ |∂f/∂xᵢ| · bound(xᵢ) + 2 · ulp(f) · u · |f(x, y)| + η

with u the unit roundoff of the declared type, η its smallest number, ulp(f) and the derivatives from the operator table. Where that is no bound,
near a jump or a kink, the operator is evaluated at the ends of its argument's interval instead.
"""
from __future__ import annotations

from functools import cache

from ..core.dtypes import DTYPES, FORMATS, part
from ..core.expr import FALSE, TRUE, Const, Expr, Op, Var, number
from ..core.node import substitute
from ..core.scalars import OPERATORS
from ..core.text import read

EXACT = number(0.0, "f64")                        # the bound of a value without rounding error
LIMITS = {d: (greatest, 2.0**last) for d, (_, last, greatest) in FORMATS.items()}                         # greatest and smallest number

# Functions that move by no more than their arguments: the bound is the greatest of theirs.
CONTRACTIONS = frozenset(("max", "min", "fmax", "fmin", "clip", "relu", "abs", "neg", "real", "imag", "conj"))
# Step functions and those without a derivative in the table; all of one operand, and monotone.
STEPS = frozenset(("floor", "ceil", "trunc", "round", "sign", "lgamma"))
# The distance of the arguments x, y to the edge of the domain, where a number may turn into NaN or infinity.
EDGES: dict[str, str] = {
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "pow"), "x"),
    **dict.fromkeys(("div", "floordiv", "mod", "truncdiv", "truncmod"), "y"),
    "log1p": "(+ 1 x)", "lgamma": "(where (< x 0.5) (- x (round x)) x)",
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


def apart(x: Expr, y: Expr) -> Expr:
    """|x - y|; 0 for equal infinities."""
    return Op("where", (Op("eq", (x, y)), EXACT, size(x - y)))


def reaches(distance: Expr, bound: Expr) -> Expr:
    """May an error within `bound` bridge this distance? Never where there is no error."""
    return FALSE if bound is EXACT else both(bound > EXACT, size(distance) <= bound)


def rounding(fn: str, result: Expr, dtype: str) -> Expr:
    """The error of the operator itself in the declared type."""
    ulp = OPERATORS[fn].ulp
    factor = 1.0
    if DTYPES[dtype].kind == "complex":
        ulp, factor = max(ulp, 0.5), 4.0                       # a complex product or quotient is several roundings
    if ulp == 0:
        return EXACT
    return size(result) * (2 * ulp * factor * DTYPES[dtype].unit_roundoff) + max(ulp, 1.0) * smallest(dtype)


def smallest(dtype: str) -> float:
    """The smallest number above 0."""
    return LIMITS[part(dtype)][1]


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
        (x,), (b,) = values, bounds
        return greater(apart(Op(fn, (x + b,)), result), apart(result, Op(fn, (x - b,))))
    if fn in ("floordiv", "truncdiv", "mod", "truncmod"):
        return _quotient(fn, values, bounds)
    terms: Expr = EXACT
    for text, b in zip(OPERATORS[fn].derivative, bounds, strict=True):
        if b is not EXACT:
            slope = size(at(text, values, values[0].dtype))
            term = b if text in ("1", "-1") else Op("where", (Op("eq", (b, EXACT)), EXACT, slope * b))     # not 0 · inf
            if fn == "sqrt":
                term = Op("fmin", (term, Op("sqrt", (b,))))            # |√(x+b) - √x| ≤ √b
            terms = plus(terms, term)
    return terms


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
    return reaches(at(text, values, values[0].dtype), bounds[1] if text == "y" else bounds[0])

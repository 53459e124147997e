"""The table of elementary functions: for each operator its expansion into arithmetic, selects and bit operations, with
the supported types, the range and the error.

The expansions are used where a runtime has no function of its own; for vectors that is everywhere. Each is an
expression over the principal operators except exp, log and sin. Long float64 expansions may use other operators of this
table.
"""
from __future__ import annotations

from collections.abc import Callable

from ...core.expr import Cast, Expr, Op, Var
from ...core.rewrite import Rules, holes
from ...core.scalars import OPERATORS
from ...frozen import frozen
from . import error_functions, exponential, gamma_functions, inverse_trigonometric, logarithm, powers, trigonometric
from .arithmetic import Arithmetic


@frozen
class Form:
    """The expansion of one operator. `write`: makes the expression from an Arithmetic and the operands; `wide`: is
    float32 computed in float64 and rounded once? `double`: is float64 supported? `fused`: does float64 need an FMA?"""

    write: Callable[..., Expr]
    wide: bool = True
    double: bool = True
    fused: bool = True

FORMS: dict[str, Form] = {
    "exp": Form(exponential.exp, wide=False, fused=False), "exp2": Form(exponential.exp2, wide=False),
    "expm1": Form(exponential.expm1, fused=False), "sinh": Form(exponential.sinh, fused=False),
                          "cosh": Form(exponential.cosh, fused=False),
    "tanh": Form(exponential.tanh, wide=False, fused=False),
                          "sigmoid": Form(exponential.sigmoid, wide=False, fused=False),
    "log": Form(logarithm.log, wide=False, fused=False), "log2": Form(logarithm.log2), "log10": Form(logarithm.log10),
    "log1p": Form(logarithm.log1p, fused=False), "asinh": Form(logarithm.asinh, fused=False),
                          "acosh": Form(logarithm.acosh, fused=False),
    "atanh": Form(logarithm.atanh, fused=False),
    "sin": Form(trigonometric.sin), "cos": Form(trigonometric.cos), "tan": Form(trigonometric.tan),
    "asin": Form(inverse_trigonometric.asin), "acos": Form(inverse_trigonometric.acos),
    "atan": Form(inverse_trigonometric.atan), "atan2": Form(inverse_trigonometric.atan2, double=False),
    "pow": Form(powers.power), "cbrt": Form(powers.cbrt), "hypot": Form(powers.hypot, double=False),
    "erf": Form(error_functions.erf, wide=False, fused=False), "erfc": Form(error_functions.erfc),
    "lgamma": Form(gamma_functions.lgamma, double=False),
}
# Forms for a part of the numbers alone, which take fewer operations: name -> the operator, and the form. The renderer
# chooses them where it sees that the operands are such numbers, and for the exponential of a minimum with 0.
PARTIAL: dict[str, tuple[str, Form]] = {
    "exp_of_nonpositive": ("exp", Form(exponential.exp_of_nonpositive, wide=False, fused=False)),
    "exp_of_min_0": ("exp", Form(exponential.exp_of_min_0, wide=False, fused=False)),
}
# The greatest errors found on four million points and more, rounded up: float32, float64, and both with `fast`.
ERRORS: dict[str, tuple[float | None, ...]] = {
    "exp": (1.0, 0.9, 2.0, 1.0), "exp2": (0.9, 0.8, 2.1, 1.0), "expm1": (0.9, 1.0, 2.5, 2.0),
                                               "sinh": (2.3, 2.3, 2.4, 2.4),
    "cosh": (1.5, 1.4, 1.5, 1.4), "tanh": (2.5, 2.3, 2.5, 2.5), "sigmoid": (2.3, 1.6, 3.3, 2.6),
                                               "log": (0.9, 0.9, 1.2, 0.9),
    "log2": (0.6, 0.8, 0.6, 0.8), "log10": (0.6, 0.7, 0.6, 0.7), "log1p": (0.9, 0.9, 0.9, 0.9),
                                               "asinh": (1.8, 1.7, 1.8, 1.7),
    "acosh": (2.3, 2.2, 2.3, 2.2), "atanh": (2.0, 1.9, 2.0, 1.9), "sin": (0.9, 0.9, 2.4, 0.9),
                                               "cos": (0.9, 0.9, 2.5, 0.9),
    "tan": (1.0, 1.0, 1.0, 1.0), "asin": (0.7, 0.7, 0.7, 0.7), "acos": (0.8, 0.7, 0.8, 0.7),
                                               "atan": (0.9, 0.9, 0.9, 0.9),
    "atan2": (0.8, None, 0.8, None), "pow": (0.6, 1.1, 0.6, 1.1), "cbrt": (1.0, 0.6, 1.0, 0.6),
                                               "hypot": (1.1, None, 1.1, None),
    "erf": (1.0, 1.0, 1.0, 1.0), "erfc": (0.6, 4.0, 0.6, 4.0),
    "lgamma": (0.6, None, 0.6, None),
}
# What the fast forms promise: the error in units in the last place, where the operator's row has no greater one.
# Results below twice the least normal number may be 0.
FAST_ULP = 3.5
# Wide only where the machine has no fused multiply-add.
NARROW_IF_FUSED = ("sin", "cos", "tan", "expm1", "log1p", "sinh", "cosh", "asinh", "acosh", "atanh", "asin", "acos",
                   "atan", "atan2", "cbrt", "hypot")


def has_form(fn: str, a: Arithmetic) -> bool:
    """Is there an expansion of this operator for this arithmetic?"""
    form = PARTIAL[fn][1] if fn in PARTIAL else FORMS.get(fn)
    return form is not None and (a.dtype == "f32" or (a.dtype == "f64" and form.double and (a.fused or not form.fused)))


def is_wide(fn: str, a: Arithmetic) -> bool:
    """Is float32 computed in float64?"""
    return a.dtype == "f32" and _form(fn).wide and not (a.fused and fn in NARROW_IF_FUSED)


def limit(fn: str, a: Arithmetic) -> float | None:
    """The largest |x| for which an expansion is valid; None if there is no limit."""
    if fn not in ("sin", "cos", "tan"):
        return None
    return trigonometric.SHORT_LIMIT if is_wide(fn, a) else trigonometric.LIMITS[a.dtype]


def expand(fn: str, operands: tuple[Expr, ...], a: Arithmetic) -> Expr | None:
    """The expansion of an operator on these operands; None if there is none."""
    if not has_form(fn, a):
        return None
    if is_wide(fn, a):
        return Cast("f32", written(fn, a.wide(), *[Cast("f64", x) for x in operands]))
    return written(fn, a, *operands)


def written(fn: str, a: Arithmetic, *operands: Expr) -> Expr:
    """The form of an operator, in the arithmetic `a` itself."""
    return _form(fn).write(a, *operands)


def _form(fn: str) -> Form:
    return PARTIAL[fn][1] if fn in PARTIAL else FORMS[fn]


def measured(fn: str, dtype: str, fast: bool) -> float | None:
    """The largest known error in ulps (units in the last place); None without an expansion. The nightly tests search
    for a larger one."""
    found = ERRORS.get(fn)
    return found[("f32", "f64").index(dtype) + 2 * fast] if found else None


def parameters(fn: str, a: Arithmetic) -> tuple[Var, ...]:
    """The operands x, y, z as variables, for a function definition."""
    operator = PARTIAL[fn][0] if fn in PARTIAL else fn
    return tuple([Var(name, a.dtype) for name in "xyz"[:OPERATORS[operator].arity]])


def rules(fused: bool = True, fast: bool = False) -> Rules:
    """Every expansion as a rewrite rule."""
    def rule(fn: str) -> Callable[..., Expr | None]:
        return lambda **found: expand(fn, tuple(found.values()),
                                      Arithmetic(next(iter(found.values())).dtype, fused, fast))
    x, y = holes("x y")
    return Rules(*[(Op(fn, (x, y)[:OPERATORS[fn].arity]), rule(fn)) for fn, form in FORMS.items()])

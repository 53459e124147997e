"""Every operator that is not principal in terms of the 27 that are: lists of rules, one per operator with its equation.

A runtime spells an operator natively or has it decomposed here. Of the principal ones only `fma` has a rule; the other
twenty of the table (add sub mul div floordiv mod max min, and or xor shl shr, lt eq where, sqrt exp log sin), the
conversions and the structural ones must be native, and with complex elements `real imag conj complex` too; a runtime
for C may lack exp and log, and has those of mathematics.elementary then. Functions of float32 are computed in float64
and rounded once (mathematics.float64_functions), which keeps them within the bound of their row; in float64 they are
within twice that bound plus one unit in the last place. On vectors most functions have a form of their own in
mathematics.elementary."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.dtypes import DTYPES, is_complex, is_float
from ..core.expr import TRUE, Cast, Const, Expr, Op, Var, number
from ..core.rewrite import Rules, holes, rewrite
from ..core.scalars import OPERATORS
from ..frozen import frozen
from .float64_functions import FUNCTIONS
from .float_formulas import FMA, isolated_sign, op, where

x, y, z = holes("x y z")
NEVER = ("real", "imag", "conj", "complex")  # no decomposition: a runtime with complex elements must have them


def _kind(e: Expr) -> str:
    return DTYPES[e.dtype].kind


def _neg(x: Expr) -> Expr:
    return x * -1 if is_float(x.dtype) else number(0, x.dtype) - x            # -x = -1 · x keeps the sign of zero


def _abs(x: Expr) -> Expr:
    match _kind(x):
        case "complex":
            return op("hypot", op("real", x), op("imag", x))                  # |x| = √(Re² + Im²)
        case "float":
            return isolated_sign(x)                                           # clear the sign bit
        case "uint":
            return x
    return where(x < 0, number(0, x.dtype) - x, x)


def _sign(x: Expr) -> Expr:
    one = number(1, x.dtype)
    if _kind(x) == "uint":
        return where(number(0, x.dtype) < x, one, x)
    return where(x < 0, number(-1, x.dtype), where(number(0, x.dtype) < x, one, x))      # x itself: 0, or NaN


def _not(x: Expr) -> Expr:
    ones = TRUE if x.dtype == "bool" else number(-1 if _kind(x) == "int" else DTYPES[x.dtype].greatest, x.dtype)
    return op("xor", x, ones)


def _differ_in_sign(x: Expr, y: Expr) -> Expr:
    return op("xor", x < 0, y < 0)


def _truncdiv(x: Expr, y: Expr) -> Expr:
    if is_float(x.dtype):
        return op("trunc", x / y)
    quotient = op("floordiv", x, y)
    if _kind(x) == "uint":
        return quotient
    inexact = op("ne", op("mod", x, y), number(0, x.dtype))
    return where(op("and", inexact, _differ_in_sign(x, y)), quotient + 1, quotient)


def _truncmod(x: Expr, y: Expr) -> Expr:
    if is_float(x.dtype):
        remainder = op("mod", isolated_sign(x), isolated_sign(y))             # exact for operands of one sign
        return where(x < 0, _neg(remainder), remainder)
    remainder = op("mod", x, y)
    if _kind(x) == "uint":
        return remainder
    return where(op("and", op("ne", remainder, number(0, x.dtype)), _differ_in_sign(x, y)), remainder - y, remainder)


def _ignoring_nan(choice: str) -> Callable[..., Expr]:
    def rule(x: Expr, y: Expr) -> Expr:
        if not is_float(x.dtype):
            return op(choice, x, y)
        return where(op("eq", x, x), where(op("eq", y, y), op(choice, x, y), x), y)
    return rule


def _isnan(x: Expr) -> Expr:
    if is_complex(x.dtype):
        return op("or", op("isnan", op("real", x)), op("isnan", op("imag", x)))
    return op("ne", x, x)


def _isinf(x: Expr) -> Expr:
    if is_complex(x.dtype):
        return op("or", op("isinf", op("real", x)), op("isinf", op("imag", x)))
    return op("eq", isolated_sign(x), number(float("inf"), x.dtype))


def _fma(x: Expr, y: Expr, z: Expr) -> Expr:
    return FMA[x.dtype](x, y, z) if x.dtype in FMA else x * y + z


# Sign, order, logic; exact.
ALGEBRA = Rules(
    (Op("neg", (x,)), _neg),                                                   # -x = 0 - x
    (Op("abs", (x,)), _abs),                                                   # |x| = x < 0 ? -x : x
    (Op("sign", (x,)), _sign),
    (Op("gt", (x, y)), Op("lt", (y, x))),                                      # x > y  =  y < x
    (Op("le", (x, y)), lambda x, y: op("or", x < y, op("eq", x, y))),          # x ≤ y  =  x < y or x = y
    (Op("ge", (x, y)), lambda x, y: op("or", y < x, op("eq", x, y))),          # x ≥ y  =  y < x or x = y
    (Op("ne", (x, y)), lambda x, y: op("xor", op("eq", x, y), TRUE)),          # x ≠ y  =  not x = y
    (Op("not", (x,)), _not),                                                   # not x  =  x xor 1…1
    (Op("truncdiv", (x, y)), _truncdiv),  # ⌊x/y⌋, one more where it is negative and inexact
    (Op("truncmod", (x, y)), _truncmod),                                       # sign(x) · (|x| mod |y|)
    (Op("fmax", (x, y)), _ignoring_nan("max")),
    (Op("fmin", (x, y)), _ignoring_nan("min")),
    (Op("clip", (x, y, z)), lambda x, y, z: op("min", op("max", x, y), z)),    # clip = min(max(x, y), z)
    (Op("relu", (x,)), lambda x: op("max", x, number(0, x.dtype))),            # relu = max(x, 0)
    (Op("isnan", (x,)), _isnan),                                               # x ≠ x
    (Op("isinf", (x,)), _isinf),                                               # |x| = ∞
    (Op("fma", (x, y, z)), _fma),
)


def _in_float64(form: Callable[..., Expr]) -> Callable[..., Expr | None]:
    """A rule from a formula on float64: float32 goes through it and is rounded once."""
    def rule(**operands: Expr) -> Expr | None:
        values = tuple(operands.values())
        if values[0].dtype == "f64":
            return form(*values)
        return Cast("f32", form(*[Cast("f64", v) for v in values])) if values[0].dtype == "f32" else None
    return rule


def _direct(form: Callable[..., Expr]) -> Callable[..., Expr | None]:
    """A rule from a formula that is as good in float32 as in float64."""
    def rule(**operands: Expr) -> Expr | None:
        values = tuple(operands.values())
        return form(*values) if is_float(values[0].dtype) else None
    return rule


ANALYSIS = Rules(*[(Op(fn, (x, y, z)[:arity]), (_direct if direct else _in_float64)(form)) for fn,
                   (arity, direct, form) in FUNCTIONS.items()])

RULES = ALGEBRA + ANALYSIS


@cache
def rules_without(native: frozenset[str]) -> Rules:
    """The rules for the operators that a runtime does not spell."""
    return Rules(*[(pattern, template) for pattern,
                   template in RULES.rules if isinstance(pattern, Op) and pattern.fn not in native])


def decompose(node: Any, native: frozenset[str]) -> Any:
    """An expression or statement (or a tuple of them) with every operator that is not `native` in terms of those that
    are. The principal operators but `fma` count as native. Shared parts of an expression stay shared: who prints it
    should name them (`definition`)."""
    return rewrite(node, rules_without(frozenset(native)))


@frozen
class Definition:
    """An operator as a function: its parameters, names for the values that are used more than once, in order, and the
    result."""

    params: tuple[Var, ...]
    lets: tuple[tuple[Var, Expr], ...]
    result: Expr

    @classmethod
    def of(cls, params: tuple[Var, ...], result: Expr) -> Definition:
        """A function that returns `result`, with a name for every part that is used more than once."""
        uses: dict[Any, int] = {}
        for node in result.unique():
            for child in node.children:
                uses[child] = uses.get(child, 0) + 1
        lets: list[tuple[Var, Expr]] = []
        named: dict[Expr, Expr] = {}

        def go(node: Expr) -> Expr:
            if node not in named:
                new: Expr = node.map(go)
                if uses.get(node, 0) > 1 and not isinstance(node, (Const, Var)):
                    var = Var(f"t{len(lets) + 1}", new.dtype)
                    lets.append((var, new))
                    new = var
                named[node] = new
            return named[node]
        body = go(result)
        return cls(params, tuple(lets), body)


def definition(fn: str, dtype: str, native: frozenset[str]) -> Definition | None:
    """The body of a helper function for an operator on operands of an element type; None where it has no rule (so that
    it must be native).

    `native` should not hold `fn`; other operators in it stay as they are.
    """
    params = tuple(Var(name, dtype) for name in ("x", "y", "z")[:OPERATORS[fn].arity])
    whole = Op(fn, params)
    result = decompose(whole, frozenset(native) - {fn})
    if result is whole:
        return None
    return Definition.of(params, result)

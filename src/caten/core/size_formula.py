"""Integer formulas over sizes, as text in a manifest: reading, evaluating, solving.

The text is the prefix arithmetic of the tensor notation, `(* 2 M)`, with two operands to an operator; every binding
language can read it."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from ..errors import error
from .expr import Cast, Const, Expr, Op, Var, index
from .integer_arithmetic import exact, function
from .node import substitute
from .scalars import COMPARISONS
from .text import parse, read_forms, show

# The operators of formulas.
ALLOWED = ("add", "sub", "mul", "neg", "abs", "floordiv", "mod", "truncdiv", "max", "min", *COMPARISONS,
           "and", "or", "not", "where")


@cache
def _function(fn: str) -> Callable[..., Any]:
    """An operator as a function of Python numbers. `and`, `or` and `not` combine conditions."""
    compute = function(fn, "bool") if fn in ("and", "or", "not") else exact(fn)
    assert compute is not None
    return compute


@lru_cache(1024)
def formula(text: str | int) -> Expr:
    """The expression that a formula of a manifest spells."""
    if isinstance(text, int):
        return index(text)
    forms = read_forms(text)
    if len(forms) != 1:
        raise error("E212", f"expected one formula, not {text!r}")
    expr: Expr = parse(forms[0])
    return expr


def spell(expr: Expr) -> str | int:
    """The formula as a manifest holds it: a number where it is one, else its text on one line."""
    return expr.value if isinstance(expr, Const) and isinstance(expr.value, int) else show(expr, 1 << 30)


def renamed(text: str | int | None, names: Mapping[str, str]) -> str | int | None:
    """A formula over sizes with other names; None, which says that there is none, stays."""
    if not isinstance(text, str):
        return text
    if text in names:
        return names[text]
    expr = formula(text)
    new = {n: n.replace(name=names[n.name]) for n in expr.unique() if isinstance(n, Var) and n.name in names}
    return show(substitute(expr, new), 1 << 30)


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> Any:
    """The value of a formula, exactly; KeyError names a size that is not given."""
    match expr:
        case Const(value=value):
            return value
        case Var(name=name):
            return sizes[name]
        case Cast(arg=arg):
            return evaluate(arg, sizes)
        case Op(fn=fn, args=args) if fn in ALLOWED:
            return _function(fn)(*[evaluate(a, sizes) for a in args])
    raise error("E212", f"{show(expr)} is not a formula over sizes")


def names(expr: Expr) -> tuple[str, ...]:
    """The sizes that a formula reads, in order of appearance."""
    return tuple(dict.fromkeys([n.name for n in expr.walk() if isinstance(n, Var)]))


def conjuncts(expr: Expr) -> list[Expr]:
    """The conditions that a conjunction joins; a condition itself where it is none."""
    return [c for a in expr.args for c in conjuncts(a)] if isinstance(expr, Op) and expr.fn == "and" else [expr]


def solve(expr: Expr, value: int, known: Mapping[str, int]) -> tuple[str, int | None] | None:
    """The one unknown size of `expr` and what makes the formula equal `value`: `(* 2 M)` = 8 gives ("M", 4), and = 7
    gives ("M", None), no integer does. None where nothing follows: no unknown or several, or an operator that has no
    inverse."""
    unknown = [n.name for n in expr.walk() if isinstance(n, Var) and n.name not in known]
    if len(unknown) != 1:
        return None
    while not isinstance(expr, Var):
        if not isinstance(expr, Op) or len(expr.args) != 2:
            return None
        left, right = expr.args
        on_the_left = unknown[0] in names(left)
        other = evaluate(right if on_the_left else left, known)
        match expr.fn:
            case "add":                       # x + c = v  <=>  x = v - c
                value = value - other
            case "sub":                       # x - c = v  <=>  x = v + c;   c - x = v  <=>  x = c - v
                value = value + other if on_the_left else other - value
            case "mul":                       # x * c = v  <=>  x = v / c, if c divides v
                if other == 0:
                    return None
                if value % other:
                    return unknown[0], None
                value //= other
            case _:
                return None
        expr = left if on_the_left else right
    return unknown[0], value

"""Variadic functions of the Lisp body language: chains, reciprocals, and the lazy `and` and `or`."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations, pairwise

from ..core.expr import FALSE, TRUE, Expr, Op
from ..core.scalars import COMPARISONS
from ..loop.statements import Aref
from .typing import WEAK_INT, Literal, Term, Typing, Value
from .vocabulary import VARIADIC


def apply_function(typing: Typing, fn: str, args: Sequence[Term], pos: int) -> Term:
    """Apply an operator to any number of operands."""
    if fn in COMPARISONS:
        return _compare(typing, fn, args, pos)
    if fn in ("and", "or") and args[0].kind == "bool":
        return reduce(lambda a, b: _logic(typing, fn, a, b, pos), args)
    if fn in VARIADIC:
        return (reduce(lambda a, b: typing.apply(fn, [a, b], pos), args) if len(args) > 1
                else _single(typing, fn, args[0], pos))
    return typing.apply(fn, args, pos)


def _single(typing: Typing, fn: str, arg: Term, pos: int) -> Term:
    """`(- x)` negates, `(/ x)` is the reciprocal. Other functions return their operand if its type suits them."""
    if fn == "sub":
        return typing.apply("neg", [arg], pos)
    if fn == "div":
        return typing.apply("div", [Literal(WEAK_INT, pos, value=1), arg], pos)
    typing.apply(fn, [arg, arg], pos)
    return arg


def _compare(typing: Typing, fn: str, args: Sequence[Term], pos: int) -> Term:
    """`(< a b c)` is a < b and b < c. `(/= a b c)`: all differ."""
    pairs = combinations(args, 2) if fn == "ne" else pairwise(args)
    return reduce(lambda a, b: typing.apply("and", [a, b], pos), [typing.apply(fn, pair, pos) for pair in pairs])


def _logic(typing: Typing, fn: str, a: Term, b: Term, pos: int) -> Term:
    """Lazy (short-circuit) `and` and `or`. An operand that reads memory is evaluated only if needed, as in `(and (< i
    N) (< 0 (aref A i)))`."""
    joined = typing.apply(fn, [a, b], pos)
    typing.check_extent(joined.depth, joined.size, pos)
    match a, b:
        case Value(expr=Expr() as first), Value(expr=Expr() as second) if reads_memory(second):
            arms = (second, FALSE) if fn == "and" else (TRUE, second)
            return Value("bool", pos, joined.depth, joined.size, Op("where", (first, *arms)))
    return joined


def reads_memory(expr: Expr) -> bool:
    """True if the expression reads an element of a tensor."""
    return any(isinstance(n, Aref) and n.index for n in expr.unique())

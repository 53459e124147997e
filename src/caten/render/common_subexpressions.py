"""Common subexpressions: the vectors that the text of a statement would repeat, each of which gets a name before it.

Expressions share their parts; texts of them repeat these. A C compiler finds what is equal, but not in time if every
repetition is a masked gather, which is a branch for each lane: a product with the bits of a dropout as its epilogue
took clang longer than two minutes.
"""
from __future__ import annotations

from collections import Counter

from ..core.expr import Const, Expr, Op, Var
from ..loop.statements import Ramp, Splat, Vref
from .addresses import Memory

LONG = 256                     # nodes of a text that a C compiler may be left with


def repeated_vectors(value: Expr, scope: Memory) -> list[Expr]:
    """The vectors that occur more than once in a long value, inner ones first. What a scalar condition chooses is
    computed only if it is chosen, so nothing is taken out of it."""
    if value.written_out < LONG or scope.lanes(value) == 1:
        return []
    found, stack = Counter[Expr](), [value]
    while stack:
        for part in _operands(stack.pop(), scope):
            found[part] += 1
            if found[part] == 1:
                stack.append(part)
    return sorted([part for part, times in found.items() if times > 1 and _is_worth_a_name(part, scope)],
                  key=lambda part: part.depth)


def _operands(value: Expr, scope: Memory) -> list[Expr]:
    match value:
        case Splat() | Ramp() | Vref():
            return []
        case Op(fn="where", args=(cond, *_)) if scope.lanes(cond) == 1:
            return []
    return [c for c in value.children if isinstance(c, Expr)]


def _is_worth_a_name(value: Expr, scope: Memory) -> bool:
    match value:
        case Const() | Var() | Splat() | Ramp():
            return False
        case Vref() if scope.register(value) is not None:
            return False
    return scope.lanes(value) > 1 and value.dtype != "bool"

"""Common subexpressions: what the text of a statement would repeat, and gets a name before it.

Expressions share their parts; texts of them repeat these. A C compiler finds what is equal, but not in time if every
repetition is a masked gather, which is a branch for each lane: a product with the bits of a dropout as its epilogue
took clang longer than two minutes.
"""
from __future__ import annotations

from collections import Counter

from ..core.dtypes import is_complex
from ..core.expr import Const, Expr, Op, Var
from ..loop.statements import Ramp, Ref, Splat, Vref
from .addresses import Memory

LONG = 256                     # nodes of a text that a C compiler may be left with


def repeated_parts(value: Expr, scope: Memory) -> list[Expr]:
    """The parts that occur more than once in a long value, inner ones first. What a condition chooses is computed only
    if it is chosen, so nothing is taken out of it."""
    if value.written_out < LONG:
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
    """The operands that are computed whenever the value is."""
    match value:
        case Splat() | Ramp() | Ref():
            return []
        case Op(fn="where", args=(first, *_)) if scope.lanes(first) == 1:
            return [first]
        case Op(fn="and" | "or", args=(first, _)) if first.dtype == "bool" and scope.lanes(value) == 1:
            return [first]
    return [c for c in value.children if isinstance(c, Expr)]


def _is_worth_a_name(value: Expr, scope: Memory) -> bool:
    match value:
        case Const() | Var() | Splat() | Ramp():
            return False
        case Vref() if scope.register(value) is not None:
            return False
    if scope.lanes(value) > 1:
        return value.dtype != "bool" and not is_complex(value.dtype)       # they are masks, and read by their parts
    return value.dtype != "bool" and not isinstance(value, Ref)

"""Divisions that only some iterations of a loop make."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Const, Op
from ..core.node import Node
from ..loop.statements import For, If

# What a loop contains that clang is not to make vectors of. Where the operands of a division are the same in all iterations, it divides once for all
# lanes of a vector, but under the condition of the first lane alone (at least up to clang 22): the other lanes then use a quotient that was never
# computed, as an index for instance. An empty statement of assembly, which costs nothing, keeps the loop scalar.
SCALAR = '__asm__ volatile ("");'
DIVISIONS = frozenset(("floordiv", "mod", "truncdiv", "truncmod"))


def is_division(node: Node) -> bool:
    """Is it a division of integers by what is no number?"""
    if not isinstance(node, Op) or node.fn not in DIVISIONS:
        return False
    by = node.args[1]
    return DTYPES[by.dtype].kind in ("int", "uint") and not isinstance(by, Const)


def under_a_condition(loop: For) -> bool:
    """Is there a division in the body of a loop, under a condition that is in the body too? One under a condition inside a loop in there is that
    loop's own."""
    if not any(is_division(n) for n in loop.unique()):
        return False
    seen: set[tuple[Node, bool]] = set()

    def divides(node: Node, chosen: bool) -> bool:
        if (node, chosen) in seen:
            return False
        seen.add((node, chosen))
        match node:
            case For():
                return chosen and any(is_division(n) for n in node.unique())
            case If(cond, then, otherwise):
                return divides(cond, chosen) or any(divides(s, True) for s in (*then, *otherwise))
            case Op("where" | "and" | "or", (first, *rest)):
                return divides(first, chosen) or any(divides(a, True) for a in rest)
        return (chosen and is_division(node)) or any(divides(c, chosen) for c in node.children if isinstance(c, Node))
    return any(divides(s, False) for s in loop.body)

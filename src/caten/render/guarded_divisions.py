"""Find integer divisions that a loop executes conditionally."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Const, Op
from ..core.node import Node
from ..loop.statements import For, If

# An empty asm statement, which costs nothing, keeps compilers from vectorising a loop. Where the operands of a division
# are loop-invariant, clang (at least up to 22) divides once for all lanes, but under the mask of the first lane alone:
# other lanes then use a quotient that was never computed, for instance as an index.
KEEP_SCALAR = '__asm__ volatile ("");'
DIVISIONS = frozenset(("floordiv", "mod", "truncdiv", "truncmod"))


def is_division(node: Node) -> bool:
    """Is it an integer division whose divisor is not constant?"""
    if not isinstance(node, Op) or node.fn not in DIVISIONS:
        return False
    by = node.args[1]
    return DTYPES[by.dtype].kind in ("int", "uint") and not isinstance(by, Const)


def has_conditional_division(loop: For) -> bool:
    """Does the body of a loop contain a division under a condition in the same body? A conditional division inside an
    inner loop counts for that loop."""
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

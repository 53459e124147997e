"""Find elements of which a loop loads several side by side, and under a condition."""
from __future__ import annotations

from collections import Counter

from ..core.expr import Const, Op
from ..core.node import Node
from ..loop.statements import Aref, For, If

# gcc (12 at least) loads such elements at once, with a mask, and then permutes them wrongly: lanes get elements of
# others. It finds them side by side where the statements have them (`X[3 * i]`, `X[3 * i + 1]`), and in an inner loop
# that it has unrolled.
MOST_UNROLLED = 16                  # iterations of a loop that gcc unrolls as a whole


def are_side_by_side(loop: For) -> bool:
    """Does the body of a loop access several elements of one array under a condition, or one in each of a few
    iterations? What it accesses in any case does not count, and what inner loops access counts for those."""
    always, chosen = set[Node](), set[Node]()
    seen: set[tuple[Node, bool]] = set()

    def visit(node: Node, is_chosen: bool) -> None:
        if (node, is_chosen) in seen or (isinstance(node, For) and iterations(node) != 1):
            return
        seen.add((node, is_chosen))
        if isinstance(node, Aref) and node.index:
            (chosen if is_chosen else always).add(node)
        match node:
            case If(cond, then, otherwise):
                visit(cond, is_chosen)
                for s in (*then, *otherwise):
                    visit(s, True)
            case Op("where" | "and" | "or", (first, *rest)):
                visit(first, is_chosen)
                for a in rest:
                    visit(a, True)
            case _:
                for c in node.children:
                    if isinstance(c, Node):
                        visit(c, is_chosen)
    for s in loop.body:
        visit(s, False)
    found = Counter([n.buffer for n in chosen - always if isinstance(n, Aref)])
    return bool(found) and (1 < iterations(loop) <= MOST_UNROLLED or max(found.values()) > 1)


def iterations(loop: For) -> int:
    """How many iterations a loop has; 0 if that is not a number."""
    lo, hi, step = loop.lo, loop.hi, loop.step
    if isinstance(lo, Const) and isinstance(hi, Const) and isinstance(step, Const) and step.value != 0:
        return len(range(lo.value, hi.value, step.value))
    return 0

"""hoist: move a loop-invariant condition out of a loop (loop unswitching)."""
from __future__ import annotations

from ...core.expr import Expr
from ...loop.accesses import conjuncts
from ...loop.statements import For, If, LoopProgram, Stmt
from ..analysis.guards import wrapped
from ..analysis.loop_queries import find, mentions, reads_memory, refusal, replaced
from ..step_results import NOTHING, Made


def hoist(program: LoopProgram, loop: str) -> tuple[LoopProgram, Made]:
    """Move the loop-invariant parts of a condition from the body of LOOP to before it, where they are tested once.
    Further loops may lie between LOOP and the condition.

        (hoist p)
        (for p 0 K 1 serial                             (if (< i L)
          (if (and (< i L) (< p i))               ->      ((for p 0 K 1 serial
            ((incf (aref A i) (aref B p)))))                 (if (< p i) ((incf (aref A i) (aref B p)))))))
    """
    step = f"hoist {loop}"
    found = find(program, loop, step)
    nest, body = [found], found.body
    while len(body) == 1 and isinstance(body[0], For):
        nest.append(body[0])
        body = body[0].body
    conds: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].otherwise:
        conds += conjuncts(body[0].cond)
        body = body[0].then
    if not conds:
        raise refusal("E521", step, f"the body of '{nest[-1].name}' is not under a condition")
    fixed = tuple([c for c in conds if not mentions(c, [inner.name for inner in nest]) and not reads_memory(c)])
    if not fixed:
        raise refusal("E521", step, f"every condition in it changes with its iterations, or reads memory: {conds[0]}")
    rest = tuple([c for c in conds if c not in fixed])
    inside: tuple[Stmt, ...] = (wrapped(body, rest),) if rest else body
    for inner in reversed(nest):
        inside = (inner.replace(body=inside),)
    return replaced(program, found, wrapped(inside, fixed)), NOTHING

"""reorder: interchange the loops of a perfect nest."""
from __future__ import annotations

from ...core.expr import Expr
from ...loop.dependence import obstacle_to_permutation
from ...loop.statements import For, If, LoopProgram, Stmt
from ..analysis.guards import wrapped
from ..analysis.loop_queries import context_at, find, loops_in, reads_memory, refusal, replaced
from ..step_results import NOTHING, Made


def reorder(program: LoopProgram, *order: str) -> tuple[LoopProgram, Made]:
    """Put the named loops of a perfect nest into this order, outermost first. Conditions between them move to the
    innermost body.

        (reorder p i j)
        (for i 0 M 1 serial                          (for p 0 K 1 serial
          (for j 0 N 1 serial                          (for i 0 M 1 serial
            (for p 0 K 1 serial …)))         ->          (for j 0 N 1 serial …)))
    """
    step = f"reorder {' '.join(order)}"
    if len(set(order)) != len(order) or len(order) < 2:
        raise refusal("E511", step, "name two or more different loops")
    found = [find(program, name, step) for name in order]
    top = next((f for f in found if set(order) <= {inner.name for inner in loops_in(f)}), None)
    if top is None:
        raise refusal("E511", step, "the loops are not nested in each other",
                      "name loops of one nest; caten schedule -O0 shows them")
    nest, conds, body = _peel(top, set(order), step)
    names = [loop.name for loop in nest]
    between = [name for name in names if name not in order]
    if between:
        raise refusal("E511", step, f"'{between[0]}' lies between them; name it too")
    perfect = _build(nest, conds, body)
    reason = obstacle_to_permutation(perfect, context_at(program, top), names, list(order))
    if reason is not None:
        raise refusal("E511", step, reason)
    return replaced(program, top, _build([nest[names.index(name)] for name in order], conds, body)), NOTHING


def _peel(top: For, names: set[str], step: str) -> tuple[list[For], tuple[Expr, ...], tuple[Stmt, ...]]:
    """The loops of a perfect nest down to the last named one, the conditions between them, and the body."""
    nest: list[For] = []
    conds: list[Expr] = []
    body: tuple[Stmt, ...] = (top,)
    while not names <= {loop.name for loop in nest}:
        match body:
            case (For() as loop,):
                if nest and any(reads_memory(e) for e in (loop.lo, loop.hi, loop.step)):
                    raise refusal("E511", step, f"the range of '{loop.name}' reads memory")
                nest.append(loop)
                body = loop.body
            case (If(cond=cond, then=then, otherwise=()),):
                if reads_memory(cond):
                    raise refusal("E511", step, f"the condition {cond} between the loops reads memory")
                conds.append(cond)
                body = then
            case _:
                raise refusal("E511", step,
                              f"'{nest[-1].name}' holds more than one statement, so the nest is not perfect",
                              "give each statement loops of its own in the body")
    return nest, tuple(conds), body


def _build(nest: list[For], conds: tuple[Expr, ...], body: tuple[Stmt, ...]) -> For:
    stmts = (wrapped(body, conds),) if conds else body
    *outer, last = nest
    built = last.replace(body=stmts)
    for loop in reversed(outer):
        built = loop.replace(body=(built,))
    return built

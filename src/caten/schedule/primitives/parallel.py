"""parallel: run the iterations of a loop on several threads."""
from __future__ import annotations

from ...loop.dependence import obstacle_to_parallel
from ...loop.statements import For, LoopProgram
from ..analysis.loop_queries import enclosing, find, loops_in, mentions, reads_memory, refusal, replaced
from ..step_results import NOTHING, Made


def parallel(program: LoopProgram, loop: str) -> tuple[LoopProgram, Made]:
    """Run the iterations of a loop on several threads. Refused where one iteration depends on another.

        (parallel i)
        (for i 0 M 1 serial …)    ->    (for i 0 M 1 parallel …)
    If one loop is too short for all threads, the loop nested directly in it may be parallel, too, provided its range
    does not depend on the outer one: threads then share the iterations of both (OpenMP's `collapse`).
        (parallel j)
        (for i 0 M 1 parallel           (for i 0 M 1 parallel
          (for j 0 N 1 serial …))  ->     (for j 0 N 1 parallel …))
    """
    step = f"parallel {loop}"
    found = find(program, loop, step)
    if found.mark == "parallel":
        raise refusal("E514", step, "it is parallel already")
    around, inner = list(enclosing(program, found)), found
    while (around and around[-1].mark == "parallel" and around[-1].body == (inner,)
           and _has_the_same_range(found, around[-1])):
        inner = around.pop()
    others = [other.name for other in (*around, *loops_in(found.body)) if other.mark == "parallel"]
    if others:
        raise refusal("E514", step, f"'{others[0]}' is parallel already, and one level is all there is",
                      "make the outermost loop parallel alone, or two of which one is alone in the other")
    reason = obstacle_to_parallel(program, loop)
    if reason is not None:
        raise refusal("E514", step, reason)
    return replaced(program, found, found.replace(mark="parallel")), NOTHING


def _has_the_same_range(loop: For, outer: For) -> bool:
    """Is the range of a loop the same in all iterations of an outer loop?"""
    return not mentions((loop.lo, loop.hi), (outer.name,)) and not reads_memory(loop.lo) and not reads_memory(loop.hi)

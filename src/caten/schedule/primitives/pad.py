"""pad: round the number of iterations of a loop up to a multiple."""
from __future__ import annotations

from ...core.expr import Op, Var
from ...loop.affine import canonical
from ...loop.statements import ZERO, LoopProgram, is_const
from ..analysis.guards import below, guarded
from ..analysis.loop_queries import context_at, find, reads_memory, refusal, replaced
from ..normalize import normal, tidied
from ..step_results import NOTHING, Made


def pad(program: LoopProgram, loop: str, multiple: int) -> tuple[LoopProgram, Made]:
    """Round the number of iterations up to a multiple of COUNT; a condition around each store keeps it in bounds. A
    later split by COUNT then has no tail.

        (pad i 8)
        (for i 0 M 1 serial              (for i 0 (* 8 (floordiv (+ M 7) 8)) 1 serial
          (setf (aref A i) x))     ->      (if (< i M) ((setf (aref A i) x))))
    """
    step = f"pad {loop} {multiple}"
    found = find(program, loop, step)
    if multiple < 2:
        raise refusal("E527", step, f"{multiple} divides every number of iterations", "a multiple of 2 or more")
    if not is_const(found.step, 1):
        raise refusal("E527", step, f"its step is {found.step}, not 1",
                      "write the loop with step 1, and its index as a multiple")
    if reads_memory(found.lo) or reads_memory(found.hi):
        raise refusal("E527", step, "its range reads memory, which the conditions would read again")
    context = context_at(program, found)
    extent = canonical(found.hi - found.lo)
    if not context.is_nonnegative(context.linear(extent)):
        extent = Op("max", (extent, ZERO))
    if context.proves(Op("eq", (extent % multiple, ZERO))):
        raise refusal("E527", step, f"its number of iterations, {extent}, is a multiple already")
    longer = found.replace(hi=normal(found.lo + (extent + (multiple - 1)) // multiple * multiple))
    conds = below(Var(found.name, "i64"), found.hi, context.inside(longer))
    return replaced(program, found, *tidied((longer.replace(body=guarded(found.body, conds)),))), NOTHING

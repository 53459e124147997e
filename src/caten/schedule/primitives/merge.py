"""merge: loop fusion of two neighbouring loops over the same range."""
from __future__ import annotations

from ...core.expr import Var
from ...loop.dependence import obstacle_to_merge, obstacle_to_parallel
from ...loop.statements import For, LoopProgram
from ..analysis.loop_queries import find, refusal, replaced, trail
from ..loop_names import with_value
from ..step_results import NOTHING, Made


def merge(program: LoopProgram, first: str, second: str) -> tuple[LoopProgram, Made]:
    """Fuse two loops over the same range, one right after the other, into one loop that runs both bodies. It keeps the
    name of the first.

        (merge i j)
        (for i 0 N 1 serial (setf (aref A i) x))              (for i 0 N 1 serial
        (for j 0 N 1 serial (incf (aref B j) (aref A j)))   ->    (setf (aref A i) x)
                                                                  (incf (aref B i) (aref A i)))
    """
    step = f"merge {first} {second}"
    one, two = find(program, first, step), find(program, second, step)
    before, _ = trail(program, two)[-1]
    if not before or before[-1] is not one:
        raise refusal("E523", step, f"'{second}' is not the statement after '{first}'")
    reason = obstacle_to_merge(program, first, second)
    if reason is not None:
        raise refusal("E523", step, reason)
    marks = {loop.mark for loop in (one, two)}
    mark = "parallel" if "parallel" in marks else one.mark if len(marks) == 1 else "serial"
    merged: For = one.replace(mark=mark, body=(*one.body, *with_value(two.body, two, Var(one.name, "i64"))))
    program = replaced(replaced(program, two), one, merged)
    reason = obstacle_to_parallel(program, first) if mark == "parallel" else None
    if reason is not None:
        raise refusal("E523", step, f"one of them is parallel, and both together may not be: {reason}")
    return program, NOTHING

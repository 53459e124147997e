"""merge: two neighbouring loops as one."""
from __future__ import annotations

from ...core.expr import Var
from ...loop.dependence import obstacle_to_merge, obstacle_to_parallel
from ...loop.statements import For, LoopProgram
from ..analysis.nests import find, refusal, replaced, trail
from ..made import NOTHING, Nothing
from ..names import with_value


def merge(program: LoopProgram, first: str, second: str) -> tuple[LoopProgram, Nothing]:
    """A loop and the next statement, a loop over the same range, become one loop with the name of the first, whose body is both bodies.

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

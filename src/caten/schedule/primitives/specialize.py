"""specialize: a copy of a nest for calls that satisfy a condition (loop versioning)."""
from __future__ import annotations

from typing import Any

from ...core.expr import Const, Op
from ...core.node import substitute
from ...core.text import flat
from ...core.unique_names import Names
from ...loop.accesses import conjuncts, equalities
from ...loop.simplify import simplify, simplify_statements
from ...loop.statements import If, LoopProgram
from ..analysis.loop_queries import context_at, find, refusal, replaced
from ..analysis.step_conditions import condition
from ..loop_names import copied
from ..normalize import tidied
from ..step_results import Specialized, arrays_of, loops_of


def specialize(program: LoopProgram, loop: str, cond: Any, ending: str = "s") -> tuple[LoopProgram, Specialized]:
    """Make a copy of a loop that runs instead of it where CONDITION holds. Later steps schedule the copy and the
    original separately, and the compiler knows in each whether the condition holds. The condition may use sizes, scalar
    arguments and outer loops; its parts that are known there are left out. A size that it fixes (`(= K 3)`) becomes a
    constant in the copy. Names in the copy end in `s`, or in the NAME given. The original is left out if it has no
    iteration where the condition does not hold.

        (specialize i (< M 8))
        (for i 0 M 1 serial                         (if (< M 8)
          (for j 0 N 1 serial                         ((for is 0 M 1 serial
            (setf (aref A i j) 0.0)))         ->         (for js 0 N 1 serial (setf (aref A is js) 0.0))))
                                                      ((for i 0 M 1 serial
                                                         (for j 0 N 1 serial (setf (aref A i j) 0.0)))))
    """
    step = f"specialize {loop} {flat(cond)}"
    found = find(program, loop, step)
    try:
        test = condition(program, found, cond)
    except ValueError as problem:
        raise refusal("E520", step, str(problem)) from None
    known = context_at(program, found)
    for holds, shown in ((known.proves, "always"), (known.refutes, "never")):
        if holds(test):
            raise refusal("E520", step, f"the condition {shown} holds there")
    parts = set(conjuncts(test))
    test = simplify(test, known)
    copy, new = copied((found,), ending, Names.of(program))
    special = tidied(substitute(copy, dict(equalities(test))))
    if any(n in parts for stmt in special for n in stmt.unique()):          # what it tests again is known
        special = simplify_statements(special, known.given(test))
    is_rest_empty = isinstance(found.step, Const) and known.given(Op("not", (test,))).proves(
        Op("le", (found.hi, found.lo) if found.step.value > 0 else (found.lo, found.hi)))
    made = replaced(program, found, If(test, special, () if is_rest_empty else (found,)))
    return made, Specialized(loops_of(new, special), arrays_of(new.values(), made))


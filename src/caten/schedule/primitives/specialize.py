"""specialize: a nest of its own for the calls of which something is known."""
from __future__ import annotations

from typing import Any

from ...core.naming import Names
from ...core.node import substitute
from ...core.text import flat
from ...loop.accesses import equalities
from ...loop.statements import If, LoopProgram
from ..analysis.conditions import condition
from ..analysis.nests import context_at, find, refusal, replaced
from ..made import Specialized, arrays_of, loops_of
from ..names import copied
from ..tidy import tidied


def specialize(program: LoopProgram, loop: str, cond: Any, ending: str = "s") -> tuple[LoopProgram, Specialized]:
    """Where a condition holds, a copy of the loop runs instead of it. What the copy declares has the old names with `s` behind them (or
    another ending); steps on the copy and on the loop differ from here on, and in each it is known whether the condition holds. It speaks of
    sizes, scalars, and loops outside; a size that equals a number is that number in the copy.

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
    copy, new = copied((found,), ending, Names.of(program))
    special = tidied(substitute(copy, dict(equalities(test))))
    made = replaced(program, found, If(test, special, (found,)))
    return made, Specialized(loops_of(new, special), arrays_of(new.values(), made))


"""Loops with checks of indices that grow by the same number in each iteration: a copy without them is made first."""
from __future__ import annotations

from functools import partial

from ..loop.statements import Fail, For, If, LoopProgram
from .analysis.loop_queries import loops_in
from .draft import Draft


def free_of_checks(draft: Draft) -> None:
    """Make a copy without checks of each innermost loop that holds some, where it can be made."""
    for name in [loop.name for loop in _checked(draft.program)]:
        draft.attempt(partial(_freed, loop=name), f"the step 'unchecked {name}'")


def _freed(draft: Draft, loop: str) -> None:
    draft.take("unchecked", loop)


def _checked(program: LoopProgram) -> list[For]:
    return [loop for kernel in program.kernels for loop in loops_in(kernel) if len(loops_in(loop)) == 1
            and any(isinstance(s, If) and any(isinstance(t, Fail) for t in s.then) for s in loop.body)]

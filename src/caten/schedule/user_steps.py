"""Steps of a user's schedule: if the program is no longer proven right, the step that broke it is refused."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.text import flat
from ..errors import CatenError, Diagnostic
from ..loop.statements import LoopProgram
from ..loop.verifier import verify as verify_program
from .script import Step, StepRefused, apply, plain, written


def apply_asked(program: LoopProgram, steps: Iterable[Any], verify: bool = False) -> LoopProgram:
    """Apply the steps of a spec or file, and verify at the end, or after every step if `verify`. Raises CatenError E50x
    for a malformed step, E51x to E537, E540 and E541 for one that its primitive refuses, and E538 for the first after
    which the verifier fails. Faults before the first step are left to the verifier of the level."""
    steps = tuple(steps)
    made = None if verify else apply(program, steps)
    if made is None or _fault(made) is not None:
        if _fault(program) is not None:
            return made or apply(program, steps)
        made = program if steps else apply(program, steps)
        for step in steps:
            made = taken(made, step)
    return made


def taken(program: LoopProgram, step: Any) -> LoopProgram:
    """Apply one step to a verified program, and verify. Raises CatenError as `apply_asked` does."""
    made = apply(program, [step])
    fault = _fault(made)
    if fault is None:
        return made
    words: Step = tuple([plain(word) for word in step])
    raise StepRefused(words, [_refusal(words, d).at(written(program, words)) for d in fault.diagnostics])


def _fault(program: LoopProgram) -> CatenError | None:
    try:
        verify_program(program)
    except CatenError as fault:
        return fault
    return None


def _refusal(step: Step, fault: Diagnostic) -> Diagnostic:
    return Diagnostic("E538", f"{flat(step)}: the program after it is not shown to be right: {fault.message}",
                      hint="take the step at another point of the schedule, or leave it out; "
                           "a condition in the signature may show what is missing")

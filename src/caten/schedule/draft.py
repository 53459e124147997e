"""A schedule while it is being written: the program so far, the steps that led to it, and what each step made."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy

from ..core.expr import Var
from ..errors import CatenError, error
from ..loop import work
from ..loop.level import verify as verify_program
from ..loop.statements import For, LoopProgram
from .choices import DEFAULTS, HOLES, Choices
from .nests import enclosing, loops_in
from .planning import Planning
from .script import Step, apply, recorded


class Draft:
    """Takes steps through `script.apply`, so that they end up in the program's Schedule fact."""

    def __init__(self, program: LoopProgram, verify: bool = False, careful: bool = False, choices: Choices = DEFAULTS,
                 likely: Mapping[str, int] | None = None, planning: Planning | None = None) -> None:
        """`verify`: the program is verified after every step. `careful`: after every recipe, and one after which it is not shown to be right counts
        as refused. `choices`: the values of holes that are not to have their defaults. `likely`: sizes that many calls are known to have. `planning`:
        what becomes of nests beyond the budget, and of a recipe's faults."""
        self.program, self.verify, self.careful = program, verify, careful
        self.refusals = ("E5", "E48") if careful else ("E5",)
        self.choices, self.likely = choices, dict(likely or {})
        self.planning = planning or Planning()
        self.asked: dict[str, int] = {}                  # the holes that recipes asked for, with their defaults

    def on(self, program: LoopProgram) -> Draft:
        """The same draft of another program: what it asks for, and what it meets, is heard here."""
        other = copy(self)
        other.program = program
        return other

    def choice(self, hole: str, default: int) -> int:
        """The value of a hole, one of `choices.HOLES`."""
        assert hole in HOLES, hole
        self.asked.setdefault(hole, default)
        return self.choices.of(hole, default)

    def take(self, *words: object) -> tuple[str, ...]:
        """Take one step; the names of the loops it made, in text order. Raises CatenError E5xx where it is refused, OutOfBudget where the program's
        steps have cost what they may."""
        before = {loop.name for loop in loops_in(self.program)}
        step: Step = tuple([word if isinstance(word, tuple) else str(word) for word in words])
        meter = work.current()
        with meter.bounded():
            meter.charge(work.LOOP * len(before))
            self.program = apply(self.program, [step], self.verify)
        return tuple([loop.name for loop in loops_in(self.program) if loop.name not in before])

    def special(self, names: tuple[str, ...], cond: tuple[object, ...], *ending: str) -> dict[str, str]:
        """A copy of the nest of these loops for calls of which `cond` holds: the loops of the copy by the names of the originals."""
        return dict(zip(names, self.take("specialize", names[0], cond, *ending), strict=True))

    def tries(self, *steps: tuple[object, ...]) -> bool:
        """Take all of `steps`, or none where one of them is refused."""
        return self.attempts(lambda draft: [draft.take(*step) for step in steps])

    def attempts(self, recipe: Callable[[Draft], object]) -> bool:
        """Run a recipe; where one of its steps is refused, the program stays as it was. So it does where the recipe itself fails, unless that is
        raised (see `Planning`)."""
        before = self.program
        try:
            recipe(self)
            if self.careful and self.program is not before:
                verify_program(recorded(self.program, ()))
        except work.OutOfBudget:
            raise
        except Exception as problem:
            self.program = before
            if not self._is_refusal(problem):
                self.planning.failed(problem)
            return False
        return True

    def _is_refusal(self, problem: Exception) -> bool:
        """Was a step refused, as may happen?"""
        return isinstance(problem, CatenError) and all(d.code.startswith(self.refusals) for d in problem.diagnostics)

    def thread(self, *names: str) -> bool:
        """Make the first of these loops that may be parallel so. Asked early, while the body is small, the question is cheap."""
        return any(self.tries(("parallel", name)) for name in names)

    def thread_two(self, *names: str) -> bool:
        """That, and the next of them with it, where it is alone in the first and longer ones may be shared: a batch may be of one."""
        for name, *inner in [names[n:n + 2] for n in range(len(names))]:
            if self.tries(("parallel", name)):
                if inner and isinstance(self.loop(name).hi, Var):
                    self.tries(("parallel", inner[0]))
                return True
        return False

    def loop(self, name: str) -> For:
        """The loop of this name. E511 where there is none."""
        found = next((loop for loop in loops_in(self.program) if loop.name == name), None)
        if found is None:                        # what never runs, such as a condition that is false in a copy, has been simplified away
            raise error("E511", f"there is no loop over '{name}' any more")
        return found

    def halves(self, name: str, count: int) -> tuple[str, str]:
        """Split a loop into two that make `count` steps each time: the outer and the inner one. E511 where iterations would be left over."""
        made = self.take("split", name, count)
        if len(made) != 2:
            raise error("E511", f"the iterations of '{name}' are no multiple of {count}")
        return made[0], made[1]

    def around(self, inner: str, count: int) -> tuple[str, ...]:
        """The names of the `count` innermost loops down to `inner`, whatever else stands between them."""
        loop = self.loop(inner)
        names = [outer.name for outer in (*enclosing(self.program, loop), loop)][-count:]
        if len(names) < count:
            raise error("E511", f"there are no {count} loops around '{inner}'")
        return tuple(names)

"""A schedule while it is being written: the program so far, the steps that led to it, what each step made, and what was tried."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar

from ..core.expr import Var
from ..core.text import flat
from ..errors import CatenError
from ..loop import work
from ..loop.affine import text_of
from ..loop.level import rests_on_checks
from ..loop.statements import For, LoopProgram
from . import script
from .analysis.classify import Chain, stores_in
from .analysis.nests import enclosing, loops_in
from .apart import apart
from .log import Copied, Entry, Planned, StaysScalar, Tried
from .made import Fused, Made, Specialized, Split, Staged
from .planning import Planning
from .plans.parameters import DEFAULTS, Choices, Parameter
from .plans.plan import NotApplicable
from .script import Step, StepRefused

REFUSED = ("E51", "E52", "E53")        # codes of steps that a program does not allow; with others a step is malformed
Result = TypeVar("Result")
Copies = dict[str, str]                # loops of a copy by the names of the originals


class Draft:
    """Takes steps through `script.take`, so that they end up in the program's Schedule fact."""

    def __init__(self, program: LoopProgram, choices: Choices = DEFAULTS, likely: Mapping[str, int] | None = None,
                 planning: Planning | None = None) -> None:
        """`choices`: the values of parameters that are not to have their defaults. `likely`: sizes that many calls are known to have. `planning`: is
        every step verified, and what becomes of nests beyond the budget and of faults in planning."""
        self.program, self.choices, self.likely = program, choices, dict(likely or {})
        self.planning = planning or Planning()
        self.asked: dict[str, int] = {}                  # the parameters that planners asked for, with their defaults
        self.depth = 0                                   # of what is being tried
        self.begun: Collection[str] = ()                 # loops of nests that do nothing but set what products are added to later

    @property
    def log(self) -> list[Entry]:
        """What was tried, in order."""
        return self.planning.log

    def on(self, program: LoopProgram) -> Draft:
        """The same draft of another program: what it asks for, and what it meets, is heard here."""
        other = copy(self)
        other.program = program
        return other

    def ask(self, parameter: Parameter, default: int) -> int:
        """The value of a parameter."""
        self.asked.setdefault(parameter.name, default)
        return self.choices.of(parameter.name, default)

    # steps -----------------------------------------------------------------------------------------------------------------------------------
    def take(self, *words: object) -> Made:
        """Take one step; what it made. Raises CatenError E5xx where it is refused, OutOfBudget where the program's steps have cost what they may."""
        step: Step = tuple([word if isinstance(word, tuple) else str(word) for word in words])
        meter = work.current()
        with meter.bounded():
            meter.charge(work.LOOP * len(loops_in(self.program)))
            try:
                self.program, made = script.take(self.program, step, self.planning.verify)
            except CatenError as fault:
                if isinstance(fault, StepRefused) or not rests_on_checks(fault, self.program):
                    raise
                raise NotApplicable(f"{flat(script.plain(step))}: {reason_of(fault)}") from fault
        return made

    def split(self, loop: str, count: int, *tail: str) -> Split:
        """Split a loop."""
        made = self.take("split", loop, count, *tail)
        assert isinstance(made, Split)
        return made

    def pair(self, loop: str, count: int, tail: str) -> tuple[str, str]:
        """Split a loop so that nothing is left over (`min` or `pad`): the outer and the inner one."""
        made = self.split(loop, count, tail)
        return made.outer, made.inner

    def fuse(self, outer: str, inner: str) -> str:
        """Two nested loops as one."""
        made = self.take("fuse", outer, inner)
        assert isinstance(made, Fused)
        return made.loop

    def stage(self, at: str, buffer: str, how: str, space: str, *axes: str) -> Staged:
        """Keep what a loop uses of a buffer in a tile."""
        made = self.take("stage", at, buffer, how, space, *axes)
        assert isinstance(made, Staged)
        return made

    def special(self, loop: str, cond: object, *ending: str) -> Copies:
        """A copy of a loop for calls of which `cond` holds: the loops of the copy that may run, by the names of the originals."""
        made = self.take("specialize", loop, cond, *ending)
        assert isinstance(made, Specialized)
        self.log.append(Copied(loop, made.copies[loop], flat(script.plain(cond)), self.depth))
        return dict(made.copies)

    def special_nest(self, names: tuple[str, ...], cond: object, *ending: str) -> Copies:
        """That of nested loops, all of which are in the copy."""
        copies = self.special(names[0], cond, *ending)
        if missing := [name for name in names if name not in copies]:
            raise NotApplicable(f"the copy of '{names[0]}' has nothing to do in '{missing[0]}'")
        return {name: copies[name] for name in names}

    @contextmanager
    def focused(self, loop: str) -> Iterator[None]:
        """Work on the nest of a loop by itself: each step then costs what that nest is large."""
        part = apart(self.program, loop, self.begun)
        if part is None:
            yield
            return
        self.program = part.program
        try:
            yield
        except BaseException:
            self.program = part.whole
            raise
        whole = part.back(self.program)
        self.program = part.whole
        if whole is None:
            raise NotApplicable(f"the nest of '{loop}' is no longer where it was")
        self.program = whole

    # attempts --------------------------------------------------------------------------------------------------------------------------------
    def tries(self, *steps: tuple[object, ...]) -> bool:
        """Take all of `steps`, or none where one of them is refused."""
        return self._attempt(lambda draft: [draft.take(*step) for step in steps], " ".join([flat(tuple(map(script.plain, s))) for s in steps]))[0]

    def tried(self, steps: Callable[[Draft], Result], name: str = "") -> Result | None:
        """What a function that takes steps gives; None where it does not apply, as with `attempts`."""
        return self._attempt(steps, name or f"the step '{words(steps)}'")[1]

    def attempts(self, steps: Callable[[Draft], object], name: str = "") -> bool:
        """Run a function that takes steps; where it does not apply, or one of its steps is refused, the program stays as it was. So it does where the
        function itself fails, for which a step that is malformed or names no loop counts, unless that is raised (see `Planning`)."""
        return self._attempt(steps, name or f"the step '{words(steps)}'")[0]

    def _attempt(self, steps: Callable[[Draft], Result], what: str) -> tuple[bool, Result | None]:
        before, at = self.program, len(self.log)
        self.log.append(Tried(what, self.depth))
        self.depth += 1
        try:
            result = steps(self)
        except work.OutOfBudget:
            self.forget(at, Tried(what, self.depth - 1, "the work that a program may take is spent"))
            raise
        except Exception as problem:
            self.program = before
            self.forget(at, Tried(what, self.depth - 1, reason_of(problem)))
            if not self._is_refusal(problem):
                self.planning.failed(problem)
            return False, None
        finally:
            self.depth -= 1
        return True, result

    def left(self, nest: str) -> None:
        """A nest stays as it is written, for it is larger than what is planned."""
        self.planning.left.append(nest)
        self.log.append(Planned(nest, "it is larger than what is planned"))

    def scalar(self, chain: Chain, since: int) -> None:
        """No plan made vectors of a nest: the last of those that were tried since the log had so many entries says why."""
        reasons = [e.why_not for e in self.log[since:] if isinstance(e, Tried) and e.depth == self.depth and e.why_not]
        why = reasons[-1] if reasons else "the machine has no vectors of its elements"
        self.log.append(StaysScalar(chain.names[-1], why, tuple([text_of(s.ref) for s in stores_in(chain.body)])))

    def forget(self, at: int, entry: Entry) -> None:
        """What was done since the log had `at` entries is undone: the copies made are none any more; `entry` says why."""
        self.log[at:] = [entry, *[e for e in self.log[at + 1:] if not isinstance(e, Copied)]]

    def _is_refusal(self, problem: Exception) -> bool:
        """Did a plan not apply, or was a step refused, as may happen?"""
        if isinstance(problem, StepRefused):
            return all(d.code.startswith(REFUSED) for d in problem.diagnostics)
        return isinstance(problem, NotApplicable)

    # what plans have in common -----------------------------------------------------------------------------------------------------------------
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
        """The loop of this name. NotApplicable where there is none."""
        found = next((loop for loop in loops_in(self.program) if loop.name == name), None)
        if found is None:                        # what never runs, such as a condition that is false in a copy, has been simplified away
            raise NotApplicable(f"there is no loop over '{name}' any more")
        return found

    def halves(self, name: str, count: int) -> tuple[str, str]:
        """Split a loop into two that make `count` steps each time: the outer and the inner one. NotApplicable where iterations would be left over."""
        made = self.split(name, count)
        if made.tail:
            raise NotApplicable(f"the iterations of '{name}' are no multiple of {count}")
        return made.outer, made.inner

    def around(self, inner: str, count: int) -> tuple[str, ...]:
        """The names of the `count` innermost loops down to `inner`, whatever else stands between them."""
        loop = self.loop(inner)
        names = [outer.name for outer in (*enclosing(self.program, loop), loop)][-count:]
        if len(names) < count:
            raise NotApplicable(f"there are no {count} loops around '{inner}'")
        return tuple(names)


def words(function: Callable[..., Any]) -> str:
    """What a function is called in the log, with the loops and arrays that it is for."""
    named: Any = function.func if isinstance(function, partial) else function
    given = [v for v in function.keywords.values() if isinstance(v, str)] if isinstance(function, partial) else []
    return " ".join([str(named.__name__).strip("_").replace("_", " "), *given])


def reason_of(problem: Exception) -> str:
    """Why something was not taken, on one line."""
    text = "; ".join([d.message for d in problem.diagnostics]) if isinstance(problem, CatenError) else str(problem)
    return " ".join(text.split()) or type(problem).__name__

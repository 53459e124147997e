"""A schedule under construction: the program so far, the steps taken, their results, and a log of attempts."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar

from ..core.expr import FALSE, Var
from ..core.text import flat
from ..errors import CatenError
from ..loop import operation_count
from ..loop.affine import text_of
from ..loop.statements import For, LoopProgram
from ..loop.verifier import rests_on_checks
from . import script
from .analysis.classify import Chain, stores_in
from .analysis.loop_queries import context_at, enclosing, loops_in
from .analysis.step_conditions import condition
from .planning import Planning
from .planning_log import Copied, Entry, Planned, StaysScalar, Tried
from .plans.parameters import DEFAULTS, Choices, Parameter
from .plans.plan import NotApplicable
from .script import Step, StepRefused
from .single_nest import Apart, apart
from .staging import Shared
from .step_results import Jammed, Made, OneLoop, Partitioned, Specialized, Split, Staged

# Codes of steps that a program does not allow; with others a step is malformed.
REFUSED = ("E51", "E52", "E53", "E54")
Result = TypeVar("Result")
Outcome = TypeVar("Outcome", bound=Made)
Copies = dict[str, str]                # loops of a copy by the names of the originals


class Draft:
    """Takes steps through `script.take`, which records them in the program's Schedule fact."""

    def __init__(self, program: LoopProgram, choices: Choices = DEFAULTS, likely: Mapping[str, int] | None = None,
                 planning: Planning | None = None) -> None:
        """`choices`: parameter values other than the defaults. `likely`: sizes that many calls have. `planning`:
        options of verification, and the record of skipped nests and faults."""
        self.program, self.choices, self.likely = program, choices, dict(likely or {})
        self.planning = planning or Planning()
        self.asked: dict[str, int] = {}                  # parameters that planners used, with their defaults
        self.depth = 0                                   # nesting of attempts
        self.begun: Collection[str] = ()                 # loops that initialise an accumulator, or map the sums
        self.parts: tuple[Apart, ...] = ()               # the program is a nest of another, which may be one, too

    @property
    def log(self) -> list[Entry]:
        """The log of attempts, in order."""
        return self.planning.log

    def on(self, program: LoopProgram) -> Draft:
        """The same draft of another program; parameters used and log entries are shared."""
        other = copy(self)
        other.program = program
        return other

    def ask(self, parameter: Parameter, default: int) -> int:
        """The value of a parameter."""
        self.asked.setdefault(parameter.name, default)
        return self.choices.of(parameter.name, default)

    # steps ----------------------------------------------------------------------------------------------------
    def take(self, *words: object) -> Made:
        """Take one step and return its result. Raises CatenError E5xx if it is refused, OutOfBudget if the budget is
        spent."""
        step: Step = tuple([word if isinstance(word, tuple) else str(word) for word in words])
        meter = operation_count.current()
        with meter.bounded():
            meter.charge(operation_count.LOOP * len(loops_in(self.program)))
            try:
                self.program, made = script.take(self.program, step, self.planning.verify)
            except CatenError as fault:
                if isinstance(fault, StepRefused) or not rests_on_checks(fault, self.program):
                    raise
                raise NotApplicable(f"{flat(script.plain(step))}: {reason_of(fault)}") from fault
        return made

    def split(self, loop: str, count: int, *tail: str) -> Split:
        """Split a loop."""
        return self._made(Split, "split", loop, count, *tail)

    def _made(self, kind: type[Outcome], *words: object) -> Outcome:
        made = self.take(*words)
        assert isinstance(made, kind)
        return made

    def split_whole(self, loop: str, count: int, tail: str) -> tuple[str, str]:
        """Split a loop without a tail loop (`min` or `pad`). Returns the outer and the inner loop."""
        made = self.split(loop, count, tail)
        return made.outer, made.inner

    def fuse(self, outer: str, inner: str) -> str:
        """Fuse two nested loops."""
        return self._made(OneLoop, "fuse", outer, inner).loop

    def flatten_argument(self, array: str, axis: int) -> None:
        """View an axis of an argument and the next one as one, in all nests."""
        self.take("flatten", array, axis)
        found = [part.flattened(array, axis) for part in self.parts]
        self.parts = tuple([part for part in found if part is not None])
        if len(self.parts) < len(found):
            raise NotApplicable(f"the nest is no longer apart when '{array}' is flattened")

    def stage(self, at: str, buffer: str, how: str, space: str, *axes: Shared) -> Staged:
        """Stage the footprint of a loop in a buffer as a local tile."""
        return self._made(Staged, "stage", at, buffer, how, space, *axes)

    def partition(self, loop: str) -> Partitioned:
        """Split a loop where the conditions in it cease to hold."""
        return self._made(Partitioned, "partition", loop)

    def jam(self, loop: str) -> tuple[str, ...]:
        """Move a loop into those inside it. Returns the loops that it became."""
        return loop, *self._made(Jammed, "jam", loop).others

    def specialize(self, loop: str, cond: object, *ending: str) -> Copies:
        """Copy a loop for calls for which `cond` holds. Returns the loops of the copy that may run, by the original
        names."""
        made = self._made(Specialized, "specialize", loop, cond, *ending)
        self.log.append(Copied(loop, made.copies[loop], flat(script.plain(cond)), self.depth))
        return dict(made.copies)

    def is_always(self, loop: str, cond: object) -> bool:
        """Is a condition on the sizes known to hold in every call that reaches the loop? False for one that uses names
        of inner loops, which `specialize` refuses."""
        found = self.loop(loop)
        try:
            test = condition(self.program, found, script.plain(cond))
        except ValueError:
            return False
        return context_at(self.program, found).proves(test)

    def is_unreachable(self, loop: str) -> bool:
        """Do the conditions around a loop contradict each other: does it run in no call?"""
        return context_at(self.program, self.loop(loop)).proves(FALSE)

    def specialize_nest(self, names: tuple[str, ...], cond: object, *ending: str) -> Copies:
        """Copy nested loops; NotApplicable unless all of them are in the copy."""
        copies = self.specialize(names[0], cond, *ending)
        if missing := [name for name in names if name not in copies]:
            raise NotApplicable(f"the copy of '{names[0]}' has nothing to do in '{missing[0]}'")
        return {name: copies[name] for name in names}

    @contextmanager
    def focus(self, loop: str) -> Iterator[None]:
        """Work on the nest of a loop as a program of its own: a step then costs time in the size of the nest."""
        part = apart(self.program, loop, self.begun)
        if part is None:
            yield
            return
        before, self.program, self.parts = self.parts, part.program, (*self.parts, part)
        try:
            yield
        except BaseException:
            self.program, self.parts = part.whole, before
            raise
        *others, part = self.parts
        whole = part.back(self.program)
        self.program, self.parts = part.whole, tuple(others)
        if whole is None:
            raise NotApplicable(f"the nest of '{loop}' is no longer where it was")
        self.program = whole

    # attempts ----------------------------------------------------------------------------------------------------
    def try_steps(self, *steps: tuple[object, ...]) -> bool:
        """Take all of `steps`, or none if one is refused."""
        return self._attempt(lambda draft: [draft.take(*step) for step in steps],
                             " ".join([flat(tuple(map(script.plain, s))) for s in steps]))[0]

    def result_of(self, steps: Callable[[Draft], Result], name: str = "") -> Result | None:
        """The result of a function that takes steps; None if it does not apply (see `attempt`)."""
        return self._attempt(steps, name or f"the step '{words(steps)}'")[1]

    def attempt(self, steps: Callable[[Draft], object], name: str = "") -> bool:
        """Run a function that takes steps. If it does not apply, or a step is refused, the program is restored. So it
        is after an unexpected failure (a malformed step, an unknown loop), unless `Planning` raises that."""
        return self._attempt(steps, name or f"the step '{words(steps)}'")[0]

    def _attempt(self, steps: Callable[[Draft], Result], what: str) -> tuple[bool, Result | None]:
        before, at = (self.program, self.parts), len(self.log)
        self.log.append(Tried(what, self.depth))
        self.depth += 1
        try:
            result = steps(self)
        except operation_count.OutOfBudget:
            self.roll_back_log(at, Tried(what, self.depth - 1, "the work that a nest may take is spent"))
            raise
        except Exception as problem:
            self.program, self.parts = before
            self.roll_back_log(at, Tried(what, self.depth - 1, reason_of(problem)))
            if not self._is_refusal(problem):
                self.planning.failed(problem)
            return False, None
        finally:
            self.depth -= 1
        return True, result

    def skip(self, nest: str) -> None:
        """Leave a nest as written: it exceeds the budget."""
        self.planning.left.append(nest)
        self.log.append(Planned(nest, "it exceeds the compile-time budget"))

    def log_scalar(self, chain: Chain, since: int) -> None:
        """Log that a nest stays scalar, with the reason of the last attempt since entry `since`."""
        reasons = [e.why_not for e in self.log[since:] if isinstance(e, Tried) and e.depth == self.depth and e.why_not]
        why = reasons[-1] if reasons else "the machine has no vectors of its elements"
        self.log.append(StaysScalar(chain.names[-1], why, tuple([text_of(s.ref) for s in stores_in(chain.body)])))

    def roll_back_log(self, at: int, entry: Entry) -> None:
        """Replace entry `at` by `entry` and drop later copies: what was done since is undone."""
        self.log[at:] = [entry, *[e for e in self.log[at + 1:] if not isinstance(e, Copied)]]

    def _is_refusal(self, problem: Exception) -> bool:
        """Is it an expected failure: a plan that does not apply, or a refused step?"""
        if isinstance(problem, StepRefused):
            return all(d.code.startswith(REFUSED) for d in problem.diagnostics)
        return isinstance(problem, NotApplicable)

    # common steps of plans ------------------------------------------------------------------------------------------
    def parallelize(self, *names: str) -> bool:
        """Make the first of these loops parallel that can be. Early on, while the body is small, the check is cheap."""
        return any(self.try_steps(("parallel", name)) for name in names)

    def parallelize_two(self, *names: str) -> bool:
        """Like `parallelize`, and collapse the next loop into it if its extent is a size: a batch may have one
        element."""
        for name, *inner in [names[n:n + 2] for n in range(len(names))]:
            if self.try_steps(("parallel", name)):
                if inner and isinstance(self.loop(name).hi, Var):
                    self.try_steps(("parallel", inner[0]))
                return True
        return False

    def loop(self, name: str) -> For:
        """The loop of this name. NotApplicable if there is none."""
        found = next((loop for loop in loops_in(self.program) if loop.name == name), None)
        if found is None:                        # simplified away, for example under a false condition in a copy
            raise NotApplicable(f"there is no loop over '{name}' any more")
        return found

    def has_loop(self, name: str) -> bool:
        """Is there a loop of this name?"""
        return any(loop.name == name for loop in loops_in(self.program))

    def split_exactly(self, name: str, count: int) -> tuple[str, str]:
        """Split a loop by an exact divisor. Returns the outer and the inner loop. NotApplicable if there would be a
        tail."""
        made = self.split(name, count)
        if made.tail:
            raise NotApplicable(f"the iterations of '{name}' are no multiple of {count}")
        return made.outer, made.inner

    def loops_down_to(self, inner: str, count: int) -> tuple[str, ...]:
        """The names of the `count` innermost loops down to `inner`."""
        loop = self.loop(inner)
        names = [outer.name for outer in (*enclosing(self.program, loop), loop)][-count:]
        if len(names) < count:
            raise NotApplicable(f"there are no {count} loops around '{inner}'")
        return tuple(names)


def words(function: Callable[..., Any]) -> str:
    """The name of a function in the log, with its loops and arrays."""
    named: Any = function.func if isinstance(function, partial) else function
    given = [v for v in function.keywords.values() if isinstance(v, str)] if isinstance(function, partial) else []
    return " ".join([str(named.__name__).strip("_").replace("_", " "), *given])


def reason_of(problem: Exception) -> str:
    """The message of an exception on one line."""
    text = "; ".join([d.message for d in problem.diagnostics]) if isinstance(problem, CatenError) else str(problem)
    return " ".join(text.split()) or type(problem).__name__

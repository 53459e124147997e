"""Build candidate schedules of one kernel, and measure them in child processes, which may crash or hang."""
from __future__ import annotations

import hashlib
import mmap
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import compiler, driver, passes
from ..benchmarking import statistics, timing
from ..benchmarking.sizes import Values
from ..compiler import Built
from ..core.program import Bind, Machine, Schedule, Target
from ..core.text import show
from ..errors import CatenError, Diagnostic, ToolError, error
from ..frontend.op import OpProgram
from ..frozen import frozen
from ..loop import simplify, verifier
from ..loop.operation_count import BUDGET, Work, counted
from ..loop.statements import LoopProgram
from ..options import Options
from ..schedule import autoscheduler, script
from ..schedule.planning import Planning
from ..schedule.plans.parameters import Choices
from ..testing import data, isolate
from ..testing.reference import Expected, caller, expected_of
from . import candidate_check, cost, moves
from .search import Candidate, Ratios

PROOF_SECONDS = 20.0           # time limit of a correctness check
FACTOR = 20                    # time limit of a measurement, as a multiple of its expected time
LEAST_SECONDS = 10.0           # the shortest time limit of a measurement


@frozen
class Effort:
    """The effort of a measurement: the number of rounds, and the plan of each sample."""

    rounds: int
    plan: timing.Plan


SHORT = Effort(5, timing.Plan(0.01, retakes=0))
LONG = Effort(15, timing.Plan(0.03, retakes=1))


def _said(ratios: Ratios | None) -> str:
    return "not measured: it does not compile, crashes, hangs or is wrong" if ratios is None else \
           ", ".join([f"x{r.value:.3f} ({r.low:.3f} … {r.high:.3f})" for r in ratios])


def at_pages(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Page-aligned copies of the contiguous arrays; other arguments as they are."""
    moved = dict(arguments)
    for name, array in arguments.items():
        if isinstance(array, np.ndarray) and array.flags.forc and array.size:
            memory = np.empty(array.nbytes + mmap.PAGESIZE, np.uint8)
            moved[name] = np.ndarray(array.shape, array.dtype, memory, -memory.ctypes.data % mmap.PAGESIZE,
                                     array.strides)
            moved[name][...] = array
    return moved


@dataclass
class Shop:
    """One operator, the sizes to measure, and the compiler options (at -O2). Implements `search.Workshop`."""

    op: OpProgram
    sizes: Sequence[Values]
    options: Options
    threads: int
    short: Effort = SHORT
    long: Effort = LONG
    # (schedule, index of the sizes) -> the last median
    seconds: dict[tuple[str, int], float] = field(default_factory=dict)
    _programs: dict[str, LoopProgram] = field(default_factory=dict)

    @cached_property
    def before(self) -> LoopProgram:
        """The unscheduled kernel."""
        return driver.unscheduled(self.op, self.options)

    @cached_property
    def present(self) -> Candidate:
        """The candidate with the schedule of -O2."""
        program = driver.advance(self.op, "loop", self.options)
        assert isinstance(program, LoopProgram)
        return self._kept(Choices(), program)

    @property
    def machine(self) -> Machine:
        target = self.op.first(Target)
        assert target is not None
        return target.machine

    def defaults(self) -> dict[str, int]:
        with counted(Work(BUDGET)):
            return autoscheduler.drafted(self.before, likely=self._likely,
                                         planning=Planning(tolerant=not self.options.strict)).asked

    def make(self, choices: Choices) -> Candidate | None:
        planning = Planning(tolerant=not self.options.strict)
        with counted(Work(BUDGET)):
            program = script.recorded(autoscheduler.drafted(self.before, choices=choices, likely=self._likely,
                                                            planning=planning).program, ())
        if planning.faults or not cost.fits(program, self.machine):
            return None
        return self._kept(choices, program)

    def moves(self) -> Iterator[Candidate]:
        """The nests as written and legal moves alone; the cost model does not rule them out."""
        made = moves.moved(self.before, self.machine, lambda: Planning(tolerant=not self.options.strict))
        while True:
            with counted(Work(BUDGET)):
                program = next(made, None)
            if program is None:
                return
            if cost.fits(program, self.machine):
                yield self._kept(Choices(), script.recorded(program, ()))

    def replayed(self, schedule: str, choices: Choices) -> Candidate | None:
        """The candidate of an earlier record; None if its schedule no longer applies."""
        try:
            program = script.apply(self.before, script.parse_schedule(schedule).steps)
        except CatenError:
            return None
        return self._kept(choices, program)

    def ratios(self, candidates: Sequence[Candidate], thorough: bool) -> list[Ratios | None]:
        effort = self.long if thorough else self.short
        right = [c for c in candidates if not thorough or self._is_verified(c)]
        builts = {c.schedule: built for c in right if (built := self._proven(c)) is not None}
        found: dict[str, list[statistics.Estimate]] = {schedule: [] for schedule in builts}
        for number in range(len(self.sizes)):
            going = {s: builts[s] for s, ratios in found.items() if len(ratios) == number}
            for schedule, ratio in (self._worse(going, number) if thorough
                                    else self._compared(going, number, effort)).items():
                found[schedule].append(ratio)
        complete: list[Ratios | None] = [
            found[c.schedule] if len(found.get(c.schedule, ())) == len(self.sizes) else None for c in candidates]
        if self.options.debug >= 1:
            for candidate, ratios in zip(candidates, complete, strict=True):
                print(f"caten: {self.op.name}: {candidate.said}: {_said(ratios)}", file=sys.stderr)
        return complete

    def check(self) -> None:
        """Check that the -O2 kernel runs at these sizes and is correct; CatenError E842 otherwise."""
        present = self.present.schedule
        for number, values in enumerate(self.sizes):
            taken = self._sampled({present: self._built(present)}, number, self.short)
            if taken is not None:
                self.seconds[present, number] = float(np.median(taken[present]))
            else:
                said = ",".join([f"{n}={v}" for n, v in values.items()])
                raise error("E842", f"the kernel of {self.op.name} cannot be measured at {said}",
                            hint="caten test checks the kernel")
        _ = self._proof

    # ---- inside

    @property
    def _likely(self) -> dict[str, int]:
        """The sizes, if there is only one set."""
        return {n: int(self.sizes[0][n]) for n in self.op.sizes} if len(self.sizes) == 1 else {}

    def _kept(self, choices: Choices, program: LoopProgram) -> Candidate:
        fact = program.first(Schedule)
        text = show(Schedule(tuple([s for s in fact.steps if s != script.APPLIED]) if fact else ()))
        self._programs[text] = program
        return Candidate(choices, text, self._at_sizes(program), cost.cycles(program, self.machine))

    def _at_sizes(self, program: LoopProgram) -> str:
        """A hash of the program specialised to the measured sizes: equal hashes mean equal code at these sizes."""
        texts = []
        for values in self.sizes:
            bound = program.adding(*[Bind(n, int(values[n])) for n in self.op.sizes])
            assert isinstance(bound, LoopProgram)
            texts += [show(k) for k in simplify.simplify_program(passes.bind_sizes(bound)).kernels]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def _is_verified(self, candidate: Candidate) -> bool:
        """Does the verifier accept the program? It takes as long as scheduling, so only finalists are verified."""
        try:
            verifier.verify(self._programs[candidate.schedule])
        except CatenError:
            return False
        return True

    def _proven(self, candidate: Candidate) -> Built | None:
        """Compile a candidate; None if that fails or the results are wrong at moderate sizes."""
        try:
            built = self._built(candidate.schedule)
        except CatenError:
            return None
        return built if self._is_right(built, *self._proof) else None

    def _is_right(self, built: Built, arguments: Mapping[str, Any], expected: Expected) -> bool:
        outcome = isolate.run(lambda: ({}, candidate_check.results(self.op, built, arguments)), PROOF_SECONDS)
        return outcome.status == "ok" and candidate_check.agree(self.op, outcome.arrays, expected)

    def _built(self, schedule: str) -> Built:
        return compiler.Compilation((self._programs[schedule],), replace(self.options, debug=0),
                                    ops=(self.op,)).artifact()

    @cached_property
    def _proof(self) -> tuple[dict[str, Any], Expected]:
        """Arguments of moderate size with the expected results. If the present schedule gives wrong results there
        (sizes may be related without a stated condition), the tuned sizes are used."""
        problems: list[Diagnostic] = []
        for values in (candidate_check.moderate(self.op, self.sizes[0]), self.sizes[0]):
            try:
                arguments = data.arguments(self.op, values, self.options.seed)
                expected = expected_of(self.op, arguments, replace(self.options, debug=0), None)
            except CatenError as problem:
                problems += problem.diagnostics
                continue
            if self._is_right(self._built(self.present.schedule), arguments, expected):
                return arguments, expected
        raise error("E842",
                    f"the kernel of {self.op.name} is not tuned: its results differ from the reference, or cannot be "
                    "compared",
                    notes=tuple([(p.message, None) for p in problems]), hint="caten test checks the kernel")

    @cached_property
    def _arguments(self) -> list[dict[str, Any]]:
        return [data.arguments(self.op, values, self.options.seed) for values in self.sizes]

    def _worse(self, builts: Mapping[str, Built], number: int) -> dict[str, statistics.Estimate]:
        """Measure thoroughly, and if a candidate is faster, again with page-aligned arrays: alignment changes the time
        of loads and stores. The lower ratio counts."""
        there = self._compared(builts, number, self.long)
        elsewhere = self._compared({s: builts[s] for s, ratio in there.items() if ratio.value > 1}, number, self.long,
                                   pages=True)
        return {s: min(ratio, elsewhere.get(s, ratio), key=lambda r: r.value)
                for s, ratio in there.items() if ratio.value <= 1 or s in elsewhere}

    def _compared(self, builts: Mapping[str, Built], number: int, effort: Effort,
                  pages: bool = False) -> dict[str, statistics.Estimate]:
        """The speed-up of each candidate over the present schedule at one size. Candidates that crash or hang are
        missing: after a crash of the common child process, each candidate gets its own."""
        if not builts:
            return {}
        present = self.present.schedule
        taken = self._sampled({present: self._built(present), **builts}, number, effort, pages)
        if taken is None and len(builts) > 1:
            return {s: r for schedule, built in builts.items()
                    for s, r in self._compared({schedule: built}, number, effort, pages).items()}
        if taken is None:
            return {}
        for schedule, samples in taken.items():
            self.seconds[schedule, number] = float(np.median(samples))
        return {s: statistics.paired_ratio([taken[present]], [taken[s]]) for s in builts if s in taken}

    def _sampled(self, builts: Mapping[str, Built], number: int, effort: Effort,
                 pages: bool = False) -> dict[str, list[float]] | None:
        """Schedule -> seconds of each call, without schedules whose results differ from the first. None if the child
        process crashed or hung."""
        known = self.seconds.get((self.present.schedule, number), 1.0)
        limit = max(LEAST_SECONDS, FACTOR * effort.rounds * len(builts) * max(effort.plan.batch, known))
        arguments = self._arguments[number]
        outcome = isolate.run(lambda: (self._times(builts, at_pages(arguments) if pages else arguments, effort), {}),
                              limit)
        if outcome.kind is ToolError:                       # no schedule runs without the tool
            raise outcome.error()
        return outcome.facts if outcome.status == "ok" else None

    def _times(self, builts: Mapping[str, Built], arguments: Mapping[str, Any], effort: Effort) -> dict[str, Any]:
        """Run in the child. All schedules use the same arrays, because their addresses affect the time."""
        if self.threads == 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        first: dict[str, np.ndarray] | None = None
        calls = {}
        for schedule, built in builts.items():
            given = candidate_check.results(self.op, built, arguments)
            first = given if first is None else first
            if all(candidate_check.are_near(given[n], first[n]) for n in first):
                function = built.runtime.load(built.artifact, built.manifest)
                calls[schedule] = caller(self.op, getattr(function, self.op.name, function), arguments)
        plan = replace(effort.plan, cpu_time=self.threads == 1)        # CPU time depends less on other processes
        return {schedule: [s.seconds for s in samples]
                for schedule, samples in timing.rounds(calls, effort.rounds, plan).items()}

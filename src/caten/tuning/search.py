"""Beam search over plan parameters. It starts from the defaults, changes one parameter at a time and keeps to its
time budget. After each parameter alone, it tries the nests as written and single legal moves instead of a plan.

A candidate is compiled only if its schedule is new and the cost model does not rule it out. A short measurement,
interleaved with the present schedule, rejects most candidates; a long one decides about the others. A candidate counts
as faster if the whole confidence interval of the speed-up is above 1 and it is slower at none of the sizes. The best
candidates are measured again, because the best of many measurements is partly luck; if time remains, twice more after
a pause.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from ..benchmarking import statistics
from ..benchmarking.statistics import Estimate
from ..frozen import frozen
from ..runtime.tuning_records import WITHOUT_CHOICES
from ..schedule.plans.parameters import DEFAULTS, Choices
from ..schedule.plans.versions import PARAMETERS

WIDTH = 3                      # width of the beam
GROUP = 3                      # candidates measured together
# candidates that the cost model sorts at a time (GROUP before the first measurement)
MADE = 9
HOPEFUL = 1.005                # least speed-up in a short measurement that justifies a long one
HOPELESS = 0.97                # a value that alone was slower than this is not combined with others
ENOUGH = 2                     # a parameter is skipped if so many of its values left the code unchanged
LEAST = 1.01                   # least speed-up that counts
FINALISTS = 3                  # candidates measured again, until one is confirmed
# pauses in seconds before the confirming measurements, within the budget: memory traffic of others lasts for seconds
RESTS = (0.0, 4.0, 8.0)

Ratios = Sequence[Estimate]    # speed-up over the present schedule, one per set of sizes


@frozen
class Candidate:
    """A schedule to measure. `code`: equal for schedules with equal code at the measured sizes; `cost`: by the cost
    model, lower is better."""

    choices: Choices
    schedule: str
    code: str
    cost: float = 0.0

    @property
    def said(self) -> str:
        """The choices in words. Candidates of moves have none."""
        return str(self.choices) if self.choices.values else WITHOUT_CHOICES


class Workshop(Protocol):
    """Makes and measures candidates."""

    def defaults(self) -> dict[str, int]:
        """The parameters that the planners read for this kernel, with their defaults."""

    def make(self, choices: Choices) -> Candidate | None:
        """The schedule of these choices; None if a step is refused or the cost model rules it out."""

    def moves(self) -> Iterator[Candidate]:
        """The nests as written, and with legal moves instead of a plan."""

    def ratios(self, candidates: Sequence[Candidate], thorough: bool) -> list[Ratios | None]:
        """Measure each candidate against the present schedule; None if it does not compile, crashes, hangs or gives
        wrong results."""


@frozen
class Scored:
    """A measured candidate."""

    candidate: Candidate
    ratios: Ratios

    @property
    def gain(self) -> Estimate:
        """The geometric mean of the speed-ups over all sizes."""
        return statistics.geometric_mean(self.ratios)

    @property
    def is_faster(self) -> bool:
        """Is the whole interval of the gain above 1, and no size slower?"""
        return self.gain.low > 1 and self.gain.value >= LEAST and all(r.high >= 1 for r in self.ratios)


@dataclass
class Search:
    """A search in progress. `found`: candidates that were faster in a long measurement, the best first; `winner`: the
    confirmed one. An interrupted search keeps both."""

    shop: Workshop
    budget: float
    clock: Callable[[], float] = time.monotonic
    rest: Callable[[float], None] = time.sleep
    progress: Callable[[float, float, str], None] = lambda spent, budget, text: None
    found: list[Scored] = field(default_factory=list)
    winner: Scored | None = None
    measured: int = 0
    _start: float = 0.0
    _seen: set[str] = field(default_factory=set)
    _tried: set[Choices] = field(default_factory=set)
    _alone: dict[tuple[str, int], float] = field(default_factory=dict)
    _present: str = ""
    # parameter -> for each value tried alone, did it leave the code unchanged?
    _same: dict[str, list[bool]] = field(default_factory=dict)

    def run(self, present: Candidate, first: Iterable[Candidate] = ()) -> Scored | None:
        """The best schedule that is confirmed to be faster than `present`, or None. `first`: initial candidates, for
        example an earlier record."""
        self._start = self.clock()
        self._present = present.code
        self._seen.add(present.code)
        self._measure([c for c in first if self._is_new(c)])
        beam, expanded = [DEFAULTS], set[Choices]()
        while beam and not self._over():
            expanded.update(beam)
            self._sweep(beam)
            if len(expanded) == 1:                # after the defaults
                self._try_moves()
            beam = [s.candidate.choices for s in self.found[:WIDTH] if s.candidate.choices not in expanded]
        return self.confirm()

    def confirm(self) -> Scored | None:
        """Measure the best candidates again; the first that is faster every time wins."""
        for scored in self.found[:FINALISTS]:
            again: Scored | None = scored
            for seconds in RESTS:
                if again is None or (seconds and self.clock() + seconds - self._start >= self.budget):
                    break
                if seconds:
                    self.rest(seconds)
                again = self._again(scored.candidate)
            if again is not None:
                self.winner = again
                break
        return self.winner

    def _again(self, candidate: Candidate) -> Scored | None:
        """Measure a candidate again; None if it is not faster."""
        (ratios,) = self.shop.ratios([candidate], True)
        return scored if ratios is not None and (scored := Scored(candidate, ratios)).is_faster else None

    def _sweep(self, beam: Sequence[Choices]) -> None:
        """Try every change of one parameter in the beam: first values that were fast alone, then values near the
        default; in each group of candidates, in the order of the cost model."""
        changes = iter(self._changes(beam))
        while not self._over():
            made = list(islice(self._candidates(changes), MADE if self.measured else GROUP))
            if not made:
                return
            made.sort(key=lambda c: c.cost)
            for start in range(0, len(made), GROUP):
                if not self._over():
                    self._measure(made[start:start + GROUP])

    def _try_moves(self) -> None:
        """Measure schedules without a plan, in their order: the cost model compares schedules of one plan."""
        candidates = (c for c in self.shop.moves() if self._is_new(c))
        while not self._over() and (group := list(islice(candidates, GROUP))):
            self._measure(group)

    def _changes(self, beam: Sequence[Choices]) -> list[Choices]:
        changes: list[tuple[float, int, Choices]] = []
        for choices in beam:
            for name, default in self.shop.defaults().items():
                values = [v for v in PARAMETERS[name].values if v != choices.of(name, default)
                          and self._alone.get((name, v), 1.0) > HOPELESS]
                values.sort(key=lambda v: abs(v - default))
                changes += [(-self._alone.get((name, v), 1.0), rank, choices.with_(name, v))
                            for rank, v in enumerate(values)]
        return [choices for _, _, choices in sorted(changes, key=lambda change: change[:2])]

    def _candidates(self, changes: Iterable[Choices]) -> Iterator[Candidate]:
        """Yield new candidates that the cost model does not rule out."""
        for choices in changes:
            if self._over():
                return
            if choices in self._tried or any(self._is_idle(name) for name, _ in choices.values):
                continue
            self._tried.add(choices)
            candidate = self.shop.make(choices)
            if candidate is not None and len(choices.values) == 1:
                self._same.setdefault(choices.values[0][0], []).append(candidate.code == self._present)
            if candidate is not None and self._is_new(candidate):
                yield candidate

    def _is_idle(self, name: str) -> bool:
        """Did every value of the parameter tried so far, ENOUGH of them, leave the code unchanged?"""
        same = self._same.get(name, [])
        return len(same) >= ENOUGH and all(same)

    def _measure(self, group: Sequence[Candidate]) -> None:
        """Measure all candidates briefly, then the promising ones thoroughly."""
        if not group:
            return
        self.progress(self.clock() - self._start, self.budget, self._said())
        short = self.shop.ratios(group, False)
        self.measured += len(group)
        hopeful = []
        for candidate, ratios in zip(group, short, strict=True):
            if ratios is None:
                continue
            scored = Scored(candidate, ratios)
            if len(candidate.choices.values) == 1:
                self._alone[candidate.choices.values[0]] = scored.gain.value
            if scored.gain.value > HOPEFUL and all(r.high >= 1 for r in ratios):
                hopeful.append(candidate)
        if hopeful:
            long = self.shop.ratios(hopeful, True)
            self.found += [s for c, ratios in zip(hopeful, long, strict=True) if ratios is not None
                           and (s := Scored(c, ratios)).is_faster]
            self.found.sort(key=lambda s: -s.gain.value)

    def _is_new(self, candidate: Candidate) -> bool:
        """Is it the first candidate with this code?"""
        new = candidate.code not in self._seen
        self._seen.add(candidate.code)
        return new

    def _over(self) -> bool:
        return self.clock() - self._start >= self.budget

    def _said(self) -> str:
        best = f", x{self.found[0].gain.value:.2f} with {self.found[0].candidate.said}" if self.found else ""
        return f"{self.measured} schedules{best}"

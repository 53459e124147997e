"""The search over choices: a beam from the defaults, one parameter changed at a time, that never spends more than its
budget.

A candidate is compiled only where its schedule is a new one and the model of its cost does not rule it out. A short
measurement beside the present schedule, taking turns, sorts out most; a long one decides. What decides is the interval
of the ratio, not the ratio: only what is faster beyond it is kept, and only where it is slower at none of the sizes.
The winner is measured once more, because the best of many measurements is partly luck; and, where there is time left,
twice more after a rest.
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
from ..schedule.plans.parameters import DEFAULTS, Choices
from ..schedule.plans.versions import PARAMETERS

WIDTH = 3                      # of the beam
GROUP = 3                      # candidates that are measured beside each other
# candidates that are made before the model says which come first; of the first ones, as many as are measured at once
MADE = 9
HOPEFUL = 1.005                # in a short measurement: then a long one pays
HOPELESS = 0.97                # a change that alone made it slower than this is not tried together with others
ENOUGH = 2                     # values of a parameter that are the same code, until the others are taken to be
LEAST = 1.01                   # a gain that is less is none
FINALISTS = 3                  # that are measured once more, until one is confirmed
# seconds before each of these measurements, as far as the budget goes: what others do to memory lasts for seconds
RESTS = (0.0, 4.0, 8.0)

Ratios = Sequence[Estimate]    # time of the present schedule by that of the candidate, at each of the sizes


@frozen
class Candidate:
    """A schedule that can be measured. `code` is equal where two schedules are the same at the sizes that are measured;
    `cost`: by the model, the less the better."""

    choices: Choices
    schedule: str
    code: str
    cost: float = 0.0


class Workshop(Protocol):
    """What makes candidates and measures them."""

    def defaults(self) -> dict[str, int]:
        """The parameters that planners ask for in this kernel, with their defaults."""

    def make(self, choices: Choices) -> Candidate | None:
        """The schedule of these choices; None where a step is refused or the machine table rules it out."""

    def ratios(self, candidates: Sequence[Candidate], thorough: bool) -> list[Ratios | None]:
        """Each candidate measured beside the present schedule; None where it does not compile, crashes, hangs or gives
        wrong results."""


@frozen
class Scored:
    """A candidate with its measurement."""

    candidate: Candidate
    ratios: Ratios

    @property
    def gain(self) -> Estimate:
        """The geometric mean over the sizes; above 1 it is faster."""
        return statistics.geometric_mean(self.ratios)

    @property
    def is_faster(self) -> bool:
        """Beyond the interval, and slower at no size?"""
        return self.gain.low > 1 and self.gain.value >= LEAST and all(r.high >= 1 for r in self.ratios)


@dataclass
class Search:
    """A search in progress. `found` are the candidates that a long measurement showed to be faster, the best first;
    `winner` the one that was confirmed. An interrupted search keeps both."""

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
    # by parameter: are other values the same code at these sizes?
    _same: dict[str, list[bool]] = field(default_factory=dict)

    def run(self, present: Candidate, first: Iterable[Candidate] = ()) -> Scored | None:
        """The best schedule confirmed to be faster than `present`, or None. `first`: initial candidates, such as a
        record."""
        self._start = self.clock()
        self._present = present.code
        self._seen.add(present.code)
        self._measure([c for c in first if self._is_new(c)])
        beam, expanded = [DEFAULTS], set[Choices]()
        while beam and not self._over():
            expanded.update(beam)
            self._sweep(beam)
            beam = [s.candidate.choices for s in self.found[:WIDTH] if s.candidate.choices not in expanded]
        return self.confirm()

    def confirm(self) -> Scored | None:
        """Measure the best candidates again; the first that is always faster wins."""
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
        """Try every change of one parameter of the beam: first values that were good alone, then those near the
        default; in each group, in the order of the cost model."""
        changes = iter(self._changes(beam))
        while not self._over():
            made = list(islice(self._candidates(changes), MADE if self.measured else GROUP))
            if not made:
                return
            made.sort(key=lambda c: c.cost)
            for start in range(0, len(made), GROUP):
                if not self._over():
                    self._measure(made[start:start + GROUP])

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
        """Yield the candidates that are new and not ruled out."""
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
        """Did several values of a parameter, and no other, leave the code unchanged?"""
        same = self._same.get(name, [])
        return len(same) >= ENOUGH and all(same)

    def _measure(self, group: Sequence[Candidate]) -> None:
        """Measure briefly, then thoroughly what is not sorted out."""
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
        best = f", x{self.found[0].gain.value:.2f} with {self.found[0].candidate.choices}" if self.found else ""
        return f"{self.measured} schedules{best}"

"""The search, with times that are made up: what is faster is found within the budget, and luck is not."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import ClassVar

import pytest

from caten.benchmarking.statistics import Estimate
from caten.schedule.plans.parameters import DEFAULTS, Choices
from caten.tuning import search
from caten.tuning.search import Candidate, Ratios, Search

HOLES = {"gemm.rows": 6, "gemm.depth": 256, "maps.stream": 0}
GAINS = {("gemm.rows", 8): 1.2, ("gemm.depth", 512): 1.1, ("gemm.rows", 4): 0.8, ("maps.stream", 1): 0.5}
PRESENT = Candidate(DEFAULTS, "present", "present")


class Fake:
    """A workshop whose candidates gain the product of what their choices gain; a measurement takes a second."""

    def __init__(self, gains: dict[tuple[str, int], float] = GAINS, spread: float = 0.01):
        self.gains, self.spread, self.time = gains, spread, 0.0
        self.measured: list[Candidate] = []

    def rest(self, seconds: float) -> None:
        self.time += seconds

    def defaults(self) -> dict[str, int]:
        return HOLES

    def make(self, choices: Choices) -> Candidate | None:
        return Candidate(choices, str(choices), str(choices))

    def moves(self) -> Iterator[Candidate]:
        return iter(())

    def ratios(self, candidates: Sequence[Candidate], thorough: bool) -> list[Ratios | None]:
        self.time += len(candidates)
        self.measured += candidates
        return [self.ratio(c, thorough) for c in candidates]

    def ratio(self, candidate: Candidate, thorough: bool) -> Ratios | None:
        return [self.estimate(prod([self.gains.get(value, 1.0) for value in candidate.choices.values]))]

    def estimate(self, value: float) -> Estimate:
        return Estimate(value, value * (1 - self.spread), value * (1 + self.spread))


def searched(shop: Fake, budget: float = 1000.0, present: Candidate = PRESENT) -> Search:
    found = Search(shop, budget, clock=lambda: shop.time, rest=shop.rest)
    found.run(present)
    return found


def test_good_changes_are_found_and_combined() -> None:
    winner = searched(Fake()).winner
    assert winner is not None
    assert dict(winner.candidate.choices.values) == {"gemm.depth": 512, "gemm.rows": 8}
    assert winner.gain.value == pytest.approx(1.32)


def test_nothing_is_measured_twice_but_to_make_sure() -> None:
    shop = Fake({})
    searched(shop)
    assert len(shop.measured) == len({c.code for c in shop.measured})


def test_what_made_it_slower_alone_is_not_combined() -> None:
    shop = Fake()
    searched(shop)
    assert not [c for c in shop.measured if dict(c.choices.values).keys() > {"maps.stream"}]


@pytest.mark.parametrize("gains", [{}, {("gemm.rows", 8): 1.005}, {("gemm.rows", 8): 0.9}])
def test_where_nothing_is_faster_nothing_wins(gains: dict[tuple[str, int], float]) -> None:
    assert searched(Fake(gains)).winner is None


def test_a_gain_within_the_interval_is_none() -> None:
    assert searched(Fake(GAINS, spread=0.5)).winner is None


def test_the_budget_is_kept() -> None:
    shop = Fake()
    search_ = searched(shop, budget=5.0)
    assert shop.time <= 5.0 + 2 * search.GROUP + search.FINALISTS
    assert search_.measured < 10


class Other(Fake):
    """A workshop with one difference."""

    def __init__(self, ratio: Callable[[Fake, Candidate, bool], Ratios | None]):
        super().__init__()
        self.own = ratio

    def ratio(self, candidate: Candidate, thorough: bool) -> Ratios | None:
        return self.own(self, candidate, thorough)


def test_what_crashes_is_passed_over() -> None:
    def ratio(shop: Fake, c: Candidate, thorough: bool) -> Ratios | None:
        return None if ("gemm.rows", 8) in c.choices.values else Fake.ratio(shop, c, thorough)
    winner = searched(Other(ratio)).winner
    assert winner is not None
    assert dict(winner.candidate.choices.values) == {"gemm.depth": 512}


def test_what_is_slower_at_one_size_is_not_taken() -> None:
    def ratio(shop: Fake, c: Candidate, thorough: bool) -> Ratios | None:
        return [shop.estimate(2.0), shop.estimate(0.9)] if c.choices.values else None
    assert searched(Other(ratio)).winner is None


def test_luck_does_not_win() -> None:
    """Every candidate is fast once in a long measurement, and never again."""
    lucky: set[str] = set()

    def ratio(shop: Fake, c: Candidate, thorough: bool) -> Ratios | None:
        first = c.code not in lucky
        if thorough:
            lucky.add(c.code)
        return [shop.estimate(1.5 if first else 1.0)]
    found = searched(Other(ratio))
    assert found.found
    assert found.winner is None


def test_schedules_that_are_the_same_code_are_measured_once() -> None:
    class Same(Fake):
        def make(self, choices: Choices) -> Candidate | None:
            return Candidate(choices, str(choices), "present" if "gemm.rows" in dict(choices.values) else "other")
    shop = Same()
    searched(shop)
    assert len(shop.measured) == 1


def test_a_hole_of_which_some_values_change_nothing_is_left_alone() -> None:
    class Idle(Fake):
        asked: ClassVar[list[Choices]] = []

        def make(self, choices: Choices) -> Candidate | None:
            self.asked.append(choices)
            return Candidate(choices, str(choices), "present" if "gemm.rows" in dict(choices.values) else str(choices))
    shop = Idle()
    searched(shop)
    assert len([c for c in shop.asked if "gemm.rows" in dict(c.values)]) == search.ENOUGH


def test_what_is_refused_costs_nothing() -> None:
    class Refusing(Fake):
        def make(self, choices: Choices) -> Candidate | None:
            return None
    shop = Refusing()
    assert searched(shop).winner is None
    assert shop.time == 0


def test_an_interrupted_search_has_what_it_found() -> None:
    def ratio(shop: Fake, c: Candidate, thorough: bool) -> Ratios | None:
        if shop.time > 20:
            raise KeyboardInterrupt
        return Fake.ratio(shop, c, thorough)
    shop = Other(ratio)
    found = Search(shop, 1000.0, clock=lambda: shop.time, rest=shop.rest)
    with pytest.raises(KeyboardInterrupt):
        found.run(PRESENT)
    assert found.found[0].gain.value > 1.05


def test_an_earlier_record_comes_first() -> None:
    shop = Fake({("gemm.rows", 14): 1.5})
    found = Search(shop, 0.5, clock=lambda: shop.time, rest=shop.rest)
    found.run(PRESENT, [Candidate(DEFAULTS.with_("gemm.rows", 14), "earlier", "earlier")])
    assert found.winner is not None
    assert found.winner.candidate.schedule == "earlier"


@pytest.mark.parametrize(("until", "budget", "wins"), [(22.0, 1000.0, False), (22.0, 24.0, True), (1000.0, 1000.0, True)])
def test_what_is_faster_for_a_while_only_does_not_win(until: float, budget: float, wins: bool) -> None:
    def ratio(shop: Fake, c: Candidate, thorough: bool) -> Ratios | None:
        return [shop.estimate(1.5 if ("gemm.rows", 8) in c.choices.values and shop.time < until else 0.9)]
    assert (searched(Other(ratio), budget).winner is not None) == wins


def test_the_model_decides_what_comes_first() -> None:
    class Costly(Fake):
        def make(self, choices: Choices) -> Candidate | None:
            return Candidate(choices, str(choices), str(choices), cost=-dict(choices.values).get("gemm.rows", 0))
    shop = Costly({})
    searched(shop, budget=1.5)
    assert [dict(c.choices.values).get("gemm.rows", 0) for c in shop.measured] == sorted(
        [dict(c.choices.values).get("gemm.rows", 0) for c in shop.measured], reverse=True)


def test_moves_without_a_plan_are_tried_after_the_parameters() -> None:
    """The nest as written, and legal moves: one that is faster wins, and the parameters are combined as before."""
    class Moving(Fake):
        def moves(self) -> Iterator[Candidate]:
            return (Candidate(DEFAULTS, schedule, schedule) for schedule in ("written", "present", "outer vectors"))

        def ratio(self, candidate: Candidate, thorough: bool) -> Ratios | None:
            known = {"written": 0.2, "outer vectors": 4.0}
            return [self.estimate(known[candidate.schedule])] if candidate.schedule in known else super().ratio(candidate, thorough)
    shop = Moving()
    found = searched(shop)
    assert found.winner is not None
    assert (found.winner.candidate.schedule, found.winner.candidate.said) == ("outer vectors", "moves without a plan")
    first = list(dict.fromkeys([c.schedule for c in shop.measured]))
    assert first.index("written") == first.index("outer vectors") - 1 > first.index("maps.stream = 1")
    assert "gemm.depth = 512, gemm.rows = 8" in first
    assert "present" not in first
    assert searched(Moving(), 2.0).winner is None                # the parameters take the time

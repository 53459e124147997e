"""Medians, ratios and their intervals, on fixed numbers."""
from __future__ import annotations

import pytest

from caten.benchmarking import statistics
from caten.benchmarking.statistics import Estimate

STEADY, SPREAD = [2.0] * 9, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8]


def test_the_median_of_equal_samples_has_no_interval() -> None:
    assert statistics.median(STEADY) == Estimate(2.0, 2.0, 2.0)


def test_the_interval_holds_the_median_and_lies_within_the_samples() -> None:
    found = statistics.median(SPREAD)
    assert found.value == pytest.approx(1.4)
    assert 1.0 <= found.low < found.value < found.high <= 1.8


def test_one_outlier_moves_neither_median_nor_interval_to_it() -> None:
    found = statistics.median([*STEADY, 100.0])
    assert (found.value, found.high) == (2.0, 2.0)


def test_the_same_samples_give_the_same_interval() -> None:
    assert statistics.median(SPREAD) == statistics.median(SPREAD)


def test_a_ratio_is_the_median_of_the_ratios_of_the_runs() -> None:
    found = statistics.ratio([STEADY, STEADY, [8.0] * 9], [[1.0] * 9] * 3)
    assert found == Estimate(2.0, 2.0, 2.0)


def test_pairs_cancel_what_slowed_a_whole_round() -> None:
    double = [2 * x for x in SPREAD]
    paired, apart = statistics.paired_ratio([double], [SPREAD]), statistics.ratio([double], [SPREAD])
    assert (paired.low, paired.high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert apart.low < 1.9
    assert apart.high > 2.1


def test_a_geometric_mean() -> None:
    found = statistics.geometric_mean([Estimate(2.0, 2.0, 2.0), Estimate(8.0, 4.0, 16.0)])
    assert found.value == pytest.approx(4.0)
    assert (found.low, found.high) == (pytest.approx(4.0 / 2 ** 0.5), pytest.approx(4.0 * 2 ** 0.5))


def test_an_estimate_reads_back() -> None:
    assert statistics.estimate_from(Estimate(2.0, 1.0, 3.0).as_json()) == Estimate(2.0, 1.0, 3.0)

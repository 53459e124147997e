"""Rounds and retakes, with calls that only count and a clock that only the test moves."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.benchmarking import timing
from caten.benchmarking.timing import Plan, Sample

TINY = Plan(batch=1e-4, retakes=2)


def test_every_round_visits_every_call_and_begins_with_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(timing, "count_for", lambda call, plan: 1)
    monkeypatch.setattr(timing, "sample", lambda call, count, plan: (call(), Sample(1e-6, 0.0))[1])
    taken = timing.rounds({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3, TINY)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert {name: len(samples) for name, samples in taken.items()} == {"a": 3, "b": 3}


def test_a_slow_call_has_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "count_for", lambda call, plan: 1)
    monkeypatch.setattr(timing, "sample", lambda call, count, plan: Sample(1.0, 0.0))
    assert len(timing.rounds({"slow": lambda: None}, 9, TINY)["slow"]) == timing.FEW


def test_a_machine_that_is_never_quiet_is_not_waited_for_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    retakes: list[int] = []
    foreign = iter([0.9] * 4 + [0.0] + [0.9])
    monkeypatch.setattr(timing, "count_for", lambda call, plan: 1)
    monkeypatch.setattr(timing, "sample", lambda call, count, plan: (retakes.append(plan.retakes), Sample(1e-6, next(foreign)))[1])
    timing.rounds({"a": lambda: None}, 6, TINY)
    assert retakes == [2, 2, 2, 0, 0, 2]


@pytest.mark.parametrize(("foreign", "expected", "batches"), [([0.0], 0.0, 1), ([0.9, 0.0], 0.0, 2), ([0.9, 0.5, 0.7], 0.5, 3)])
def test_a_disturbed_batch_is_taken_again(monkeypatch: pytest.MonkeyPatch, foreign: list[float], expected: float, batches: int) -> None:
    waiting = iter(foreign)
    seen: list[float] = []
    monkeypatch.setattr(timing.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(timing, "batch", lambda call, count, plan: (seen.append(f := next(waiting)), Sample(1.0, f))[1])
    assert timing.sample(lambda: None, 1, TINY).foreign == expected
    assert len(seen) == batches


@pytest.mark.parametrize(("everyone", "mine", "foreign"), [([0.0, 1.0], [0.0, 1.0], 0.0), ([0.0, 1.5], [0.0, 1.0], 0.489)])
def test_what_others_used_is_the_machine_without_this_process(monkeypatch: pytest.MonkeyPatch, everyone: list[float], mine: list[float],
                                                             foreign: float) -> None:
    ticks = iter([0.0, 1.0])
    monkeypatch.setattr(timing, "busy", lambda: everyone.pop(0))
    monkeypatch.setattr(timing, "own", lambda: mine.pop(0))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    found = timing.batch(lambda: None, 4, Plan())
    assert found.seconds == 0.25
    assert found.foreign == pytest.approx(foreign)


def test_busy_time_is_all_but_idling_and_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 10 20 9999 8888 3 2 5 0 0\ncpu0 1 1 1 1 1 1 1 1\n")
    monkeypatch.setattr(timing, "STAT", tmp_path / "stat")
    monkeypatch.setattr(timing.os, "sysconf", lambda name: 100)
    assert timing.busy() == pytest.approx(1.4)


def test_a_system_that_does_not_tell_has_clean_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(timing, "STAT", tmp_path / "none")
    assert timing.batch(lambda: None, 1, Plan()).clean


def test_only_clean_samples_count_unless_none_is() -> None:
    clean, dirty = Sample(1.0, 0.0), Sample(2.0, 0.9)
    assert timing.accepted([dirty, clean]) == [1.0]
    assert timing.accepted([dirty, dirty]) == [2.0, 2.0]

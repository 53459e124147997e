"""Timing on a shared machine: interleaved rounds of batches. A batch that other processes disturbed is repeated."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..frozen import frozen

Call = Callable[[], Any]

STAT = Path("/proc/stat")
# seconds of a batch: several ticks of /proc/stat, which counts hundredths of a second
BATCH = 0.06
FOREIGN = 0.12                 # CPUs that other processes may use during a clean batch
TICK = 0.011                   # seconds by which the CPU time in /proc/stat may lag
RETAKES = 7
PAUSE = 0.15                   # seconds before the first retake; the pause grows with each retake
SLOW = 0.4                     # seconds: a longer call is measured in only FEW rounds
FEW = 3
# after so many disturbed samples in a row, retakes are suspended until a sample is clean
HOPELESS = 3


@frozen
class Plan:
    """How samples are taken. `batch`: seconds per sample; `retakes`: how often a disturbed sample is repeated;
    `cpu_time`: measure the CPU time of the process instead of wall-clock time, for single-threaded code on a busy
    machine; then no sample counts as disturbed."""

    batch: float = BATCH
    retakes: int = RETAKES
    cpu_time: bool = False

    @property
    def clock(self) -> Callable[[], float]:
        return time.process_time if self.cpu_time else time.perf_counter


@frozen
class Sample:
    """The mean time of a call in one batch, in seconds, and the number of CPUs that other processes used meanwhile."""

    seconds: float
    foreign: float

    @property
    def clean(self) -> bool:
        return self.foreign <= FOREIGN


def busy() -> float | None:
    """The CPU time of all processes since boot, in seconds; None without /proc/stat."""
    try:
        words = STAT.read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = [int(w) for w in words]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own() -> float:
    """The CPU time of this process, all threads together, in seconds."""
    spent = os.times()
    return spent.user + spent.system


def batch(call: Call, count: int, plan: Plan) -> Sample:
    """Time one batch of `count` calls, after a warm-up call."""
    clock = plan.clock
    call()
    everyone, mine, start = busy(), own(), clock()
    for _ in range(count):
        call()
    spent = clock() - start
    after, mine = busy(), own() - mine
    if plan.cpu_time or everyone is None or after is None:
        return Sample(spent / count, 0.0)
    return Sample(spent / count, max(0.0, after - everyone - mine - TICK) / spent)


def sample(call: Call, count: int, plan: Plan) -> Sample:
    """The first clean batch, or the least disturbed one if all retakes were disturbed."""
    best = batch(call, count, plan)
    for retake in range(plan.retakes):
        if best.clean:
            break
        time.sleep(PAUSE * (retake + 1))
        best = min(best, batch(call, count, plan), key=lambda s: s.foreign)
    return best


def count_for(call: Call, plan: Plan) -> int:
    """The number of calls per batch, from the fastest of a few calls."""
    clock = plan.clock
    fastest, stop = float("inf"), clock() + plan.batch / 2
    while True:
        start = clock()
        call()
        now = clock()
        fastest = min(fastest, now - start)
        if now >= stop:
            return max(1, int(plan.batch / max(fastest, 1e-9)))


def rounds(calls: Mapping[str, Call], number: int, plan: Plan) -> dict[str, list[Sample]]:
    """Take `number` samples of each call. A round samples every call once; each round starts with another call, so that
    drift affects all calls equally."""
    counts = {name: count_for(call, plan) for name, call in calls.items()}
    names = list(calls)
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    disturbed = 0
    for turn in range(number):
        shift = turn % len(names) if names else 0
        for name in names[shift:] + names[:shift]:
            if turn < FEW or samples[name][0].seconds < SLOW:
                found = sample(calls[name], counts[name], plan if disturbed < HOPELESS else replace(plan, retakes=0))
                disturbed = 0 if found.clean else disturbed + 1
                samples[name].append(found)
    return samples


def accepted(samples: list[Sample]) -> list[float]:
    """The times of the clean samples, or of all samples if none is clean."""
    return [s.seconds for s in samples if s.clean] or [s.seconds for s in samples]

"""Timing on a shared machine: interleaved rounds of batches; batches that other processes disturbed are repeated."""
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
# seconds of a batch: several ticks of the system's clock, which counts in hundredths of a second
BATCH = 0.06
FOREIGN = 0.12                 # CPUs that others may use during a batch
TICK = 0.011                   # seconds of CPU time that the system's counters may be late
RETAKES = 7
PAUSE = 0.15                   # seconds before the first retake; each later one waits longer
SLOW = 0.4                     # seconds: of a call that is longer, FEW rounds are enough
FEW = 3
# samples in a row that no retake made clean: then the next ones are taken once, until one is clean
HOPELESS = 3


@frozen
class Plan:
    """How samples are taken: the seconds of a batch, how often a disturbed one is taken again. `cpu_time`: the CPU time
    of the process instead of the clock's, for one thread on a machine that is never quiet; then no sample counts as
    disturbed."""

    batch: float = BATCH
    retakes: int = RETAKES
    cpu_time: bool = False

    @property
    def clock(self) -> Callable[[], float]:
        return time.process_time if self.cpu_time else time.perf_counter


@frozen
class Sample:
    """The time of one call, as the mean over a batch, in seconds; and how many CPUs others used meanwhile."""

    seconds: float
    foreign: float

    @property
    def clean(self) -> bool:
        return self.foreign <= FOREIGN


def busy() -> float | None:
    """Seconds of CPU time that the whole machine has spent at work; None where the system does not tell."""
    try:
        words = STAT.read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = [int(w) for w in words]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own() -> float:
    """Seconds of CPU time that this process has spent, on all of its threads."""
    spent = os.times()
    return spent.user + spent.system


def batch(call: Call, count: int, plan: Plan) -> Sample:
    """One batch, after a call that is not counted."""
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
    """A clean batch; the one that was disturbed least where none of them is clean."""
    best = batch(call, count, plan)
    for retake in range(plan.retakes):
        if best.clean:
            break
        time.sleep(PAUSE * (retake + 1))
        best = min(best, batch(call, count, plan), key=lambda s: s.foreign)
    return best


def count_for(call: Call, plan: Plan) -> int:
    """The number of calls per batch, by the fastest of a few calls after warming up."""
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
    """So many rounds, each of which visits every call once, beginning with another one each time: what drifts meets all
    of them alike."""
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
    """The seconds of the clean samples; of all, where none is clean."""
    return [s.seconds for s in samples if s.clean] or [s.seconds for s in samples]

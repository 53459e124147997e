"""How fast this machine is, for limits on seconds: they are meant for a machine that is not slowed down by its neighbours."""
from __future__ import annotations

import time

NOMINAL = 0.0033                # seconds of `_work` on a quiet core of 2023


def _work() -> float:
    start = time.process_time()
    table: dict[int, tuple[int, int]] = {}
    for n in range(60_000):
        table[n % 997] = (n, n * n)
    return time.process_time() - start


def slowness() -> float:
    """By how much more processor time Python takes here, now; at least 1."""
    return max(1.0, min(_work() for _ in range(5)) / NOMINAL)

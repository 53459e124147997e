"""How many cores there are for this process."""
from __future__ import annotations

import os


def available() -> int:
    """The cores that it may run on: `taskset` and containers limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Python's garbage collector, run rarely: a compiler makes many long-lived objects and few reference cycles."""
from __future__ import annotations

import gc
import threading

# Looking for cycles after every 700 objects, as Python does, takes a fifth of a compile.
COLLECTIONS = 100_000, 20, 50


class CollectingRarely:
    """`with CollectingRarely():` what a program has set for itself is there again after the last of all threads that
    are inside. A program that collects no more often than this, or never, is left alone."""

    _lock = threading.Lock()
    _inside = 0
    _before = 0, 0, 0

    def __enter__(self) -> None:
        shared = CollectingRarely
        with shared._lock:
            if shared._inside == 0:
                shared._before = gc.get_threshold()
                if 0 < shared._before[0] < COLLECTIONS[0]:
                    gc.set_threshold(*COLLECTIONS)
            shared._inside += 1

    def __exit__(self, *_: object) -> None:
        shared = CollectingRarely
        with shared._lock:
            shared._inside -= 1
            if shared._inside == 0 and gc.get_threshold() == COLLECTIONS:
                gc.set_threshold(*shared._before)

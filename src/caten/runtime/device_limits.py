"""Errors and launch dimensions common to all devices."""
from __future__ import annotations

from collections.abc import Sequence


class OutOfMemory(Exception):
    """An allocation on the device failed."""


def spread(threads: Sequence[int]) -> tuple[int, int, int]:
    """The block dimensions x, y and z; `threads` ends with the fastest axis."""
    x, y, z = (*reversed(threads), 1, 1, 1)[:3]
    return x, y, z

"""What calls to every device have in common."""
from __future__ import annotations

from collections.abc import Sequence


class OutOfMemory(Exception):
    """The device has no room for an array."""


def spread(threads: Sequence[int]) -> tuple[int, int, int]:
    """The threads of a group along x, y and z; the fastest axis is the last of those given."""
    x, y, z = (*reversed(threads), 1, 1, 1)[:3]
    return x, y, z

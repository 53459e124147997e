"""Error-free sums: the rounded sum and its rounding error, for numbers, arrays and expressions."""
from __future__ import annotations

from typing import Any, Protocol, TypeVar


class Additive(Protocol):
    """What can be added and subtracted."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Additive)


def two_sum(x: T, y: T) -> tuple[T, T]:
    """x + y and its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def fast_two_sum(x: T, y: T) -> tuple[T, T]:
    """x + y and its rounding error, for |x| ≥ |y| or x = 0 (Dekker, 1971): three operations instead of six."""
    total = x + y
    return total, y - (total - x)

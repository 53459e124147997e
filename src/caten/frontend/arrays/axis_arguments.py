"""Axes as an argument: -1, (0, 2), None."""
from __future__ import annotations

from typing import Any, NoReturn

from .builder import Builder


def axis_of(b: Builder, axis: Any, rank: int, extra: int = 0) -> int:
    """An axis, counted from 0. E321 if there is none such. `extra`: how many axes more the result has."""
    total = rank + extra
    if not isinstance(axis, int) or isinstance(axis, bool):
        _refuse(b, "an axis is an integer that is known when the body is compiled")
    if not -total <= axis < total:
        _refuse(b, f"there is no axis {axis}: the array has {total} {'axis' if total == 1 else 'axes'}"
                if not extra else f"there is no axis {axis}: the result has {total} {'axis' if total == 1 else 'axes'}",
                f"axes are counted from 0, or from the end: -1 is the last of {total}" if total else None)
    return axis % total


def axes_of(b: Builder, axes: Any, rank: int, extra: int = 0) -> tuple[int, ...]:
    """Distinct axes, in the order in which they are given; all for None."""
    if axes is None:
        return tuple(range(rank))
    given = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    found = tuple([axis_of(b, axis, rank, extra) for axis in given])
    if len(set(found)) < len(found):
        _refuse(b, f"the axes {given} name an axis twice")
    return found


def _refuse(b: Builder, message: str, hint: str | None = None) -> NoReturn:
    b.fail("E321", message, hint)

"""Pictures of the families of operators: how fast calls are beside the best of the other libraries.

The figures are those that `caten ops NAME` shows, written by `python -m benchmarks.operators --figures`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

from svg import box, line, svg, text

from caten.frontend import operator_library
from caten.frontend.operator_library import Entry

ROW, NAMES, LEAST, MOST, OCTAVE = 18, 250, -2.0, 4.0, 70             # bars from 2^-2 to 2^4 times as fast


def family_pictures() -> dict[str, Callable[[], str]]:
    """By name, what draws the picture of each family."""
    return {f"library-{family}": partial(bars, family, list(members))
            for family, members in groupby(operator_library.entries(), lambda entry: entry.family)}


def ratio(rows: list[dict[str, Any]]) -> float | None:
    """The geometric mean over the sizes that another library computes, too."""
    found = [math.log(row["ratio"]) for row in rows if row["ratio"]]
    return math.exp(sum(found) / len(found)) if found else None


def bars(family: str, members: list[Entry]) -> str:
    """A bar for each operator: how many times as fast as the best of the others, on a scale of powers of two."""
    def at(factor: float) -> float:
        return NAMES + OCTAVE * (min(max(math.log2(factor), LEAST), MOST) - LEAST)

    height = 40 + ROW * len(members)
    parts = [text(10, 18, f"{family}: times as fast as the best of NumPy, SciPy and PyTorch", "small")]
    for exponent in range(round(LEAST), round(MOST) + 1):
        x = at(2.0 ** exponent)
        parts += [line(x, 26, x, height - 8, "" if exponent == 0 else "dash"),
                  text(x + 3, 34, f"1/{2 ** -exponent}" if exponent < 0 else f"{2 ** exponent}", "small")]
    for n, entry in enumerate(members):
        y, found = 40 + ROW * n, ratio(entry.figures)
        parts.append(text(10, y + 12, entry.name, "small code"))
        if found is None:
            parts.append(text(at(1) + 4, y + 12, "not in the others" if entry.figures else "not measured", "small"))
            continue
        left, right = sorted((at(1), at(found)))
        parts += [box(left, y + 2, max(right - left, 1), ROW - 5, "warm" if found >= 1 else "hot"),
                  text(max(right, at(1)) + 4, y + 12, f"{found:.2f}", "small")]
    return svg(f"The operators of the family {family} beside other libraries", round(at(2.0 ** MOST)) + 60, height, parts)

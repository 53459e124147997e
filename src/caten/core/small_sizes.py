"""Small sizes for an operator that nobody gave sizes: its conditions hold, and every output has elements."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import error
from .expr import Expr, Op, Var, index
from .size_formula import conjuncts, evaluate, formula, names, solve

# What sizes are taken from, in order of preference.
CANDIDATES = (5, 7, 6, 8, 4, 3, 12, 2, 16, 1, 9, 10, 0, 17, 32, 24, 40, 64, 100, 128)
MOST = 50_000                          # sizes that are tried before the search is given up


class _TooLong(Exception):
    """The search was given up."""


def small_sizes(op: Mapping[str, Any], least: int = 0) -> dict[str, int]:
    """Sizes for an operator as a manifest describes it; different ones for different sizes, and not below `least`,
    where that can be. E667 where there are none."""
    conditions = [part for c in op["conditions"] for part in conjuncts(formula(c))]
    extents = [(a, formula(e)) for a in op["arguments"] for e in a["shape"]]
    filled = [index(0) < e for _, e in extents]
    outputs_filled = [index(0 if a.get("direction", "out") != "in" else -1) < e for a, e in extents]
    wanted = [a["name"] for a in op["arguments"] if a["kind"] == "size"]
    positive = [index(0) < Var(s) for s in wanted]
    for asked in ([*positive, *filled], filled, outputs_filled):         # empty inputs and sizes of 0 as a last resort
        found = _Search([*conditions, *asked], wanted, least).found(op["binds"])
        if found is not None:
            return {s: found[s] for s in wanted}
    holds = f" satisfy {', '.join(op['conditions'])} and" if op["conditions"] else ""
    raise error("E667", f"{op['op']}: no small sizes{holds} give every output an element",
                hint="give sizes: [[test.case]] with sizes = {…} in the spec, or fix some of the sizes with -D")


class _Search:
    """Gives one size after another a value; what equations determine is computed, not tried."""

    def __init__(self, asked: Sequence[Expr], wanted: Sequence[str], least: int):
        self.candidates = sorted(CANDIDATES, key=lambda v: v < least)                # a stable sort, as the one below
        self.asked = [(a, frozenset(names(a))) for a in asked]
        self.equations = [(x, y) for a in asked if isinstance(a, Op) and a.fn == "eq"
                          for x, y in (a.args, a.args[::-1])]
        computed = {x.name for x, _ in self.equations if isinstance(x, Var)}
        self.wanted = sorted(wanted, key=lambda s: s in computed)          # N of N = L + T - 1 last
        self.tried = 0

    def found(self, fixed: Mapping[str, int]) -> dict[str, int] | None:
        try:
            return self.completed(dict(fixed))
        except _TooLong:
            return None

    def completed(self, known: dict[str, int]) -> dict[str, int] | None:
        """All sizes, of which some are known; None where they contradict what is asked."""
        self.tried += 1
        if self.tried > MOST:
            raise _TooLong
        known = self.propagated(known)
        if not all(evaluate(a, known) for a, of in self.asked if of <= known.keys()) or min(known.values(),
                                                                                            default=0) < 0:
            return None
        left = next((s for s in self.wanted if s not in known), None)
        if left is None:
            return known
        for value in sorted(self.candidates, key=lambda v: v in known.values()):        # unused values first
            if (found := self.completed(known | {left: value})) is not None:
                return found
        return None

    def propagated(self, known: dict[str, int]) -> dict[str, int]:
        """With the sizes that follow from equations; -1 for one that no integer solves."""
        changed = True
        while changed:
            changed = False
            for x, y in self.equations:
                if not set(names(y)) <= known.keys() or (answer := solve(x, int(evaluate(y, known)), known)) is None:
                    continue
                known, changed = known | {answer[0]: -1 if answer[1] is None else answer[1]}, True
        return known

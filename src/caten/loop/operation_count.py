"""Operation count: the work spent on a program, counted instead of timed, so that schedules are the same on every
machine.

A unit takes about three microseconds: a row that a proof combines, a quarter of a loop that a step walks over. Memoised
results belong to the count that paid for them, so the count does not depend on what was compiled before.
"""
from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

BUDGET = 2_000_000                                 # of a nest, or of the rest of a program: about ten seconds
LOOP = 4                                           # units per loop walked over
PAIR = 2                                           # per pair of accesses compared
QUESTION = 20                                      # per system of constraints, before any row is combined


class OutOfBudget(Exception):
    """The work budget of a nest or a program is spent."""


class Work:
    """The work of one program, or of one of its nests. `budget`: its limit (None: no limit). `contexts`: those at
    entry, by their facts. `greatest`: the work of the nest that took most."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget, self.spent, self.greatest = budget, 0, 0
        self.limit: int | None = None
        # The work of a program keeps them: how long its programs live depends on the garbage collector.
        self.contexts: MutableMapping[Any, Any] = WeakValueDictionary() if budget is None else {}

    def charge(self, units: int) -> None:
        """Count this many units before spending them. Raises OutOfBudget inside `bounded`."""
        self.spent += units
        if self.limit is not None and self.spent > self.limit:
            raise OutOfBudget

    @property
    def share(self) -> float:
        """The fraction of the budget that is spent, by the program or by one of its nests; 1 is all of it."""
        return max(self.spent, self.greatest) / self.budget if self.budget else 0.0

    @property
    def is_spent(self) -> bool:
        """True if the budget is spent."""
        return self.budget is not None and self.spent > self.budget

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Enforce the budget inside this block, counting what was spent before."""
        before, self.limit = self.limit, self.budget
        try:
            yield
        finally:
            self.limit = before


_current: ContextVar[Work] = ContextVar("work")


def current() -> Work:
    """The active count: that of the innermost `counted`, else one per thread without a budget."""
    try:
        return _current.get()
    except LookupError:
        _current.set(Work())
        return _current.get()


@contextmanager
def counted(work: Work) -> Iterator[Work]:
    """Charge the work inside this block to `work`."""
    token = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(token)


@contextmanager
def nest_counted() -> Iterator[Work]:
    """Count the work inside this block as that of a nest, which has the budget of the active count for itself."""
    whole = current()
    with counted(Work(whole.budget)) as own:
        try:
            yield own
        finally:
            whole.greatest = max(whole.greatest, own.spent)

"""How much work goes into a program: a count, not a time, so that the same program has the same schedule on every machine.

A unit is what takes about three microseconds: a row that a proof combines, a quarter of a loop that a step walks over. What is remembered of a
program belongs to the count that it was found for, so the count is the same whatever was compiled before.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

BUDGET = 2_000_000                                 # of one program: some ten seconds
LOOP = 4                                           # units: for a loop that is walked over
PAIR = 2                                           # for two accesses that are compared
QUESTION = 20                                      # for a system of constraints, before any row of it is combined


class OutOfBudget(Exception):
    """The work that a program may take is spent."""


class Work:
    """The work of one program. `budget`: what it may take, None for any amount; `contexts`: what is known at entry, by the facts from which it
    follows."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget, self.spent = budget, 0
        self.limit: int | None = None
        self.contexts: WeakValueDictionary[Any, Any] = WeakValueDictionary()

    def charge(self, units: int) -> None:
        """Something is about to take this much. Raises OutOfBudget inside `bounded`."""
        self.spent += units
        if self.limit is not None and self.spent > self.limit:
            raise OutOfBudget

    @property
    def share(self) -> float:
        """How much of the budget is spent; 1 is all of it."""
        return self.spent / self.budget if self.budget else 0.0

    @property
    def is_spent(self) -> bool:
        """Is nothing left of the budget?"""
        return self.budget is not None and self.spent > self.budget

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Within it no more than the budget may be spent, with all that was spent before."""
        before, self.limit = self.limit, self.budget
        try:
            yield
        finally:
            self.limit = before


_current: ContextVar[Work] = ContextVar("work")


def current() -> Work:
    """The count that work adds to: that of the innermost `counted`, else one for each thread, without a budget."""
    try:
        return _current.get()
    except LookupError:
        _current.set(Work())
        return _current.get()


@contextmanager
def counted(work: Work) -> Iterator[Work]:
    """What is done within it adds to this count."""
    token = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(token)

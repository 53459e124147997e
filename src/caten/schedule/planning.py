"""What planning a program may cost, and what it met on the way: nests that the budget left out, faults that a recipe was left for."""
from __future__ import annotations

from dataclasses import dataclass, field

# Loops that the steps of one program may walk over, together. A step costs what the program is large; this many take five to ten seconds. It is a
# count and not a time, so that the same program has the same schedule on every machine.
BUDGET = 800_000


class OutOfBudget(Exception):
    """The steps of a program have cost what they may."""


@dataclass
class Planning:
    """One program's planning. `tolerant`: where a recipe fails unexpectedly, the next simpler one has its turn; else its exception is raised."""

    tolerant: bool = False
    budget: int = field(default_factory=lambda: BUDGET)
    spent: int = 0
    faults: list[Exception] = field(default_factory=list)      # what recipes failed with
    left: list[str] = field(default_factory=list)              # the outermost loops of nests that stay as written: larger than what is planned

    def charge(self, loops: int) -> None:
        """A step is about to walk over so many loops. Raises OutOfBudget."""
        self.spent += loops
        if self.spent > self.budget:
            raise OutOfBudget

    def failed(self, fault: Exception) -> None:
        """A recipe failed unexpectedly: raised again, or noted."""
        if not self.tolerant:
            raise fault
        self.faults.append(fault)

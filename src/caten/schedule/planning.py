"""Options and outcome of planning a program: skipped nests, faults in plans, and the log."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from .planning_log import Entry


class PlanStore(Protocol):
    """Where planned nests are kept for other programs."""

    def find(self, *what: str) -> Any:
        """What was kept under these words; None where there is none."""

    def keep(self, made: object, *what: str) -> None:
        """Keep an object under words that determine it."""


@dataclass
class Planning:
    """The planning of one program. `verify`: verify the program after every step. `tolerant`: if a plan fails
    unexpectedly, try the next one; otherwise raise its exception. `kept`: nests that were planned before."""

    verify: bool = False
    tolerant: bool = False
    kept: PlanStore | None = None
    faults: list[Exception] = field(default_factory=list)      # unexpected exceptions of plans
    left: list[str] = field(default_factory=list)              # outermost loops of nests beyond the budget
    log: list[Entry] = field(default_factory=list)             # what was tried, in order

    def failed(self, fault: Exception) -> None:
        """Raise or record an unexpected failure of a plan."""
        if not self.tolerant:
            raise fault
        self.faults.append(fault)

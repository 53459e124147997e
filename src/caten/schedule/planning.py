"""Options and outcome of planning a program: skipped nests, faults in plans, and the log."""
from __future__ import annotations

from dataclasses import dataclass, field

from .planning_log import Entry


@dataclass
class Planning:
    """The planning of one program. `verify`: verify the program after every step. `tolerant`: if a plan fails
    unexpectedly, try the next one; otherwise raise its exception."""

    verify: bool = False
    tolerant: bool = False
    faults: list[Exception] = field(default_factory=list)      # unexpected exceptions of plans
    left: list[str] = field(default_factory=list)              # outermost loops of nests beyond the budget
    log: list[Entry] = field(default_factory=list)             # what was tried, in order

    def failed(self, fault: Exception) -> None:
        """Raise or record an unexpected failure of a plan."""
        if not self.tolerant:
            raise fault
        self.faults.append(fault)

"""How a pass goes about a program, and what planning it met: nests that the budget left out, faults that plans were given up for, what was tried."""
from __future__ import annotations

from dataclasses import dataclass, field

from .log import Entry


@dataclass
class Planning:
    """One program's planning. `verify`: the program is verified after every step. `tolerant`: where a plan fails unexpectedly, the next simpler one
    has its turn; else its exception is raised."""

    verify: bool = False
    tolerant: bool = False
    faults: list[Exception] = field(default_factory=list)      # what plans failed with
    left: list[str] = field(default_factory=list)              # the outermost loops of nests that stay as written: larger than what is planned
    log: list[Entry] = field(default_factory=list)             # what was tried, in order

    def failed(self, fault: Exception) -> None:
        """A plan failed unexpectedly: raised again, or noted."""
        if not self.tolerant:
            raise fault
        self.faults.append(fault)

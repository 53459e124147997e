"""Compare two results files: measurements whose confidence intervals do not overlap became slower or faster."""
from __future__ import annotations

from ..echo import escape
from ..errors import Diagnostic, NothingMatched
from ..frozen import frozen
from .results import BenchResults, BenchRow, spelled


@frozen
class Change:
    """One measurement, before and after."""

    old: BenchRow
    new: BenchRow

    @property
    def verdict(self) -> str:
        """`slower` or `faster` if the intervals do not overlap, else `same`."""
        if self.new.seconds.low > self.old.seconds.high:
            return "slower"
        return "faster" if self.new.seconds.high < self.old.seconds.low else "same"

    @property
    def line(self) -> str:
        old, new = self.old.seconds, self.new.seconds
        return (f"{self.verdict:6}  {new.value / old.value:.2f}  {self.new.op}({self.new.settings}) "
                f"{self.new.runtime}: "
                f"{spelled(old.value)} -> {spelled(new.value)} ({spelled(new.low)} … {spelled(new.high)})")


def changes(old: BenchResults, new: BenchResults) -> list[Change]:
    """The measurements in both files, in the order of the new file. NothingMatched E841 if there are none."""
    before = {row.key: row for row in old.rows}
    both = [Change(before[row.key], row) for row in new.rows if row.key in before]
    if not both:
        raise NothingMatched(Diagnostic("E841", "the two files have no measurement in common",
                                        hint="a common measurement has the same operator, runtime and sizes"))
    return both


def report(old: BenchResults, new: BenchResults) -> list[str]:
    """One line per change, preceded by notes on differences between the machines."""
    known = {row.key for row in old.rows}
    lines = [f"note: {name} was {old.machine.get(name)}, and is {new.machine.get(name)}" for name in ("cpu", "cpus")
             if old.machine.get(name) != new.machine.get(name)]
    found = changes(old, new)
    alone = len(old.rows) + len(new.rows) - 2 * len([row for row in new.rows if row.key in known])
    lines += [*[change.line for change in found], *([f"{alone} measurements are in only one of the files"] if alone
                                                    else [])]
    return [escape(line) for line in lines]

"""Checks of specs without compiling them."""
from __future__ import annotations

from . import driver
from .core.program import Check, Ensure, Program
from .driver import ignore
from .frozen import frozen
from .options import Options
from .runtime.tuning_records import Warn


@frozen
class Checked:
    """An operator without errors. `at_entry`: the number of conditions that a call checks before its loops; `in_loops`:
    the texts of those that it checks inside its loops, by their number."""

    name: str
    at_entry: int
    in_loops: dict[int, str]


def proved(program: Program, options: Options, warn: Warn = ignore) -> Checked:
    """Take a program through every stage up to its schedule. CatenError with what is wrong with it."""
    program = driver.advance(program, "loop", options, warn)
    at_entry = {e.row for e in program.all(Ensure)}
    return Checked(program.name, len(at_entry), {c.row: c.text for c in program.all(Check) if c.row not in at_entry})

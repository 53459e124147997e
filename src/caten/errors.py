"""Diagnostics: what went wrong, where, what was expected, what to do, and which exit code follows."""
from __future__ import annotations

from dataclasses import field

from .frozen import frozen


@frozen
class Place:
    """A point in a file: 1-based line and column, and the text of that line for the caret."""

    file: str
    line: int
    column: int
    text: str = ""


@frozen
class Diagnostic:
    """One message with a stable code (`caten explain CODE` explains it)."""

    code: str
    message: str
    place: Place | None = None
    hint: str | None = None                                    # what to do
    notes: tuple[tuple[str, Place | None], ...] = field(default=())   # what was expected, where the other party is
    severity: str = "error"                                    # error | warning

    def __str__(self) -> str:
        """One line: place, code, message, what to do."""
        where = f"{self.place.file}:{self.place.line}:{self.place.column}: " if self.place else ""
        return f"{where}{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    def at(self, place: Place | None) -> Diagnostic:
        """The same diagnostic at `place`, unless it has one already."""
        if self.place is not None or place is None:
            return self
        return Diagnostic(self.code, self.message, place, self.hint, self.notes, self.severity)


class CatenError(Exception):
    """What every part of caten raises for a person to read. Carries one or more diagnostics."""

    exit_code = 1

    def __init__(self, *diagnostics: Diagnostic):
        super().__init__("\n".join([str(d) for d in diagnostics]))
        self.diagnostics = diagnostics


class UsageError(CatenError):
    """The command line is wrong by itself."""

    exit_code = 2


class ToolError(CatenError):
    """The host compiler or another tool of the runtime is missing or failed."""

    exit_code = 3


class NothingMatched(CatenError):
    """No composite, case or test matched what was asked for."""

    exit_code = 5


def error(code: str, message: str, place: Place | None = None, *, hint: str | None = None,
          notes: tuple[tuple[str, Place | None], ...] = ()) -> CatenError:
    """A CatenError of one diagnostic: `raise error("E301", "…", place)`."""
    return CatenError(Diagnostic(code, message, place, hint, notes))


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str | None:
    """A hint that names the closest of `known`, or None."""
    from difflib import get_close_matches
    close = get_close_matches(name.lower(), [k.lower() for k in known], 1, 0.6)
    return next((f"did you mean '{k}'?" for k in known if close and k.lower() == close[0]), None)

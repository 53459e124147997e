"""A diagnostic: a message with a code, a place in a file, notes and a hint."""
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

    def as_json(self) -> dict[str, object]:
        """Severity, code, message, file, line, column, hint and notes; a note has message, file, line and column."""
        return {"severity": self.severity, "code": self.code, "message": self.message, **_place_json(self.place),
                "hint": self.hint,
                "notes": [{"message": text, **_place_json(place)} for text, place in self.notes]}


def _place_json(place: Place | None) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "column": place.column} if place else {"file": None, "line": None,
                                                                                           "column": None}

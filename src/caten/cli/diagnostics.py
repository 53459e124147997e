"""Diagnostics on stderr for a person, with colours on a terminal. For other programs there is diagnostic_formats.py."""
from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO

from ..diagnostic_lines import Pieces, lines_of
from ..errors import CatenError, Diagnostic
from ..frozen import frozen
from .terminal_colours import console, wants_colour

FORMATS = ("text", "json", "sarif", "github")
COLOURS = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan", "hint": "bold green", "place": "bold",
           "code": "dim"}


@frozen
class WarningPolicy:
    """What -W, -w and -Werror ask for."""

    silenced: frozenset[str] = frozenset()        # diagnostic codes
    errors: frozenset[str] = frozenset()
    all_errors: bool = False
    all_silenced: bool = False

    def judge(self, d: Diagnostic) -> Diagnostic | None:
        """The diagnostic as it is to be shown, or None."""
        if d.severity != "warning":
            return d
        if d.code in self.errors or (self.all_errors and d.code not in self.silenced):
            return Diagnostic(d.code, d.message, d.place, d.hint, d.notes, "error")
        return None if self.all_silenced or d.code in self.silenced else d


@dataclass
class Reporter:
    """Shows diagnostics on stderr; the formats for programs are written by `finish`, when all are known."""

    format: str = "text"
    policy: WarningPolicy = field(default_factory=WarningPolicy)
    kept: list[Diagnostic] = field(default_factory=list)
    failed: bool = False

    def show(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            judged = self.policy.judge(diagnostic)
            if judged is None or judged in self.kept:
                continue
            self.kept.append(judged)
            self.failed |= judged.severity == "error"
            if self.format == "text":
                _write(lines_of(judged), sys.stderr)

    def caught(self, problem: CatenError) -> int:
        """Show what was raised; the exit code that follows."""
        self.show(problem.diagnostics)
        return problem.exit_code

    def finish(self, exit_code: int) -> None:
        """Write what is written last."""
        if self.format != "text":
            from .diagnostic_formats import WRITTEN_LAST  # imported here: most command lines ask for text
            if text := WRITTEN_LAST[self.format](self.kept, exit_code):
                print(text, file=sys.stderr)


def _write(lines: list[Pieces], stream: IO[str]) -> None:
    if wants_colour(stream):
        from rich.text import Text
        coloured = console(stream, highlight=False, soft_wrap=True)
        for line in lines:
            coloured.print(Text.assemble(*[(text, COLOURS.get(style, "")) for style, text in line]))
    else:
        stream.write("".join(["".join([text for _, text in line]) + "\n" for line in lines]))
    stream.flush()

"""Report diagnostics on stderr: as text, coloured on a terminal, or in a format of diagnostic_formats.py."""
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
    """The treatment of warnings by -W, -w and -Werror. The sets contain diagnostic codes."""

    silenced: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()
    all_errors: bool = False
    all_silenced: bool = False

    def judge(self, d: Diagnostic) -> Diagnostic | None:
        """The diagnostic to show: unchanged, a warning turned into an error, or None."""
        if d.severity != "warning":
            return d
        if d.code in self.errors or (self.all_errors and d.code not in self.silenced):
            return Diagnostic(d.code, d.message, d.place, d.hint, d.notes, "error")
        return None if self.all_silenced or d.code in self.silenced else d


@dataclass
class Reporter:
    """Shows diagnostics on stderr: text at once, machine-readable formats in `finish`."""

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
        """Show the diagnostics of an exception; its exit code."""
        self.show(problem.diagnostics)
        return problem.exit_code

    def finish(self, exit_code: int) -> None:
        """Write the machine-readable formats, which contain all diagnostics."""
        if self.format != "text":
            from .diagnostic_formats import WRITTEN_LAST  # imported here: text is the default
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

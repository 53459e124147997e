"""How diagnostics look to a person: text with source line and caret. For other programs there is formats.py."""
from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import IO

from ..echo import escape
from ..errors import CatenError, Diagnostic, Place
from ..frozen import frozen

FORMATS = ("text", "json", "sarif", "github")
MAX_LINE = 150                    # characters of a source line that are shown
MAX_MESSAGE = 1000                # characters of a line of a message
MAX_KEPT = 4096                   # characters of one that is read again from its file
MAX_READ = 1 << 24                # bytes of that file
COLOURS = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan", "hint": "bold green", "place": "bold", "code": "dim"}

Pieces = list[tuple[str, str]]    # one line: (style, text) pairs


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
            from .formats import WRITTEN_LAST  # imported here: most command lines ask for text
            if text := WRITTEN_LAST[self.format](self.kept, exit_code):
                print(text, file=sys.stderr)


def lines_of(d: Diagnostic) -> list[Pieces]:
    """`gemm.toml:8:17: error: message [E123]`, the source line and its caret, notes, hint."""
    head: Pieces = [*_prefix(d.place), (d.severity, f"{d.severity}: "), ("", _indented(d.message, MAX_MESSAGE)), ("code", f" [{d.code}]")]
    out = [head, *_excerpt(d.place)]
    for text, place in d.notes:
        out.append([*(_prefix(place) if place else [("", "  ")]), ("note", "note: "), ("", _indented(text))])
        out.extend(_excerpt(place))
    if d.hint:
        out.append([("", "  "), ("hint", "hint: "), ("", _indented(d.hint))])
    return out


def _indented(text: str, most: int = 1 << 20) -> str:
    """A message of several lines keeps them, each escaped by itself, and cut where it repeats a text that is too long to be read."""
    return "\n    ".join([escape(line[:most]) + "…" * (len(line) > most) for line in text.split("\n")])


def _prefix(place: Place | None) -> Pieces:
    return [("place", f"{escape(place.file)}:{place.line}:{place.column}: ")] if place else [("place", "caten: ")]


def _excerpt(place: Place | None) -> list[Pieces]:
    """The source line with a caret under the column."""
    text = place and (place.text or line_of(place))
    if place is None or not text or not text.strip():
        return []
    line, column = text.rstrip("\r\n"), max(0, place.column - 1)
    start = max(0, column - MAX_LINE // 2) if len(line) > MAX_LINE else 0
    before = escape(line[start:column]).replace("\t", "    ")
    after = escape(line[column:start + MAX_LINE]).replace("\t", "    ")
    number = f"{place.line:5} | "
    lead = "…" if start else ""
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in lead + before)
    return [[("", number + lead + before + after + ("…" if start + MAX_LINE < len(line) else ""))],
            [("", " " * (len(number) - 2) + "| " + " " * width), ("hint", "^")]]


def line_of(place: Place) -> str:
    """The line in the file, for a place that was carried through a text as line and column alone; nothing where it cannot be read."""
    try:
        if not os.path.isfile(place.file) or os.path.getsize(place.file) > MAX_READ:      # the name comes from the text: it may be a device
            return ""
        with open(place.file, encoding="utf-8", errors="replace") as stream:
            return next(islice(stream, place.line - 1, place.line), "")[:MAX_KEPT]
    except (OSError, ValueError):
        return ""


def wants_colour(stream: IO[str]) -> bool:
    """Colours only on a terminal, and never with NO_COLOR."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def _write(lines: list[Pieces], stream: IO[str]) -> None:
    if wants_colour(stream):
        from rich.console import Console
        from rich.text import Text
        console = Console(file=stream, highlight=False, soft_wrap=True)
        for line in lines:
            console.print(Text.assemble(*[(text, COLOURS.get(style, "")) for style, text in line]))
    else:
        stream.write("".join(["".join([text for _, text in line]) + "\n" for line in lines]))
    stream.flush()

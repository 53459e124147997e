"""The text of a diagnostic: its message, the source line with a caret, notes and a hint."""
from __future__ import annotations

import os
import unicodedata
from itertools import islice

from .diagnostic import Diagnostic, Place
from .echo import escape

MAX_LINE = 150                    # characters of a source line that are shown
MAX_MESSAGE = 1000                # characters of a line of a message
MAX_KEPT = 4096                   # characters of one that is read again from its file
MAX_READ = 1 << 24                # bytes of that file

PROGRAM = ["caten"]               # whose messages have no place: the last

Pieces = list[tuple[str, str]]    # one line: (style, text) pairs


def lines_of(d: Diagnostic) -> list[Pieces]:
    """`gemm.toml:8:17: error: message [E123]`, the source line and its caret, notes, hint."""
    head: Pieces = [*_prefix(d.place), (d.severity, f"{d.severity}: "), ("", _indented(d.message, MAX_MESSAGE)),
                    ("code", f" [{d.code}]")]
    return [head, *_after(d)]


def in_python(d: Diagnostic) -> str:
    """The same as the text of an exception: `gemm.toml:8:17: E123: message`, then as above."""
    head: Pieces = [*(_prefix(d.place) if d.place else []), ("", f"{d.code}: {_indented(d.message, MAX_MESSAGE)}")]
    return "\n".join(["".join([text for _, text in line]) for line in (head, *_after(d))])


def _after(d: Diagnostic) -> list[Pieces]:
    out = _excerpt(d.place)
    for text, place in d.notes:
        out.append([*(_prefix(place) if place else [("", "  ")]), ("note", "note: "), ("", _indented(text))])
        out.extend(_excerpt(place))
    if d.hint:
        out.append([("", "  "), ("hint", "hint: "), ("", _indented(d.hint))])
    return out


def _indented(text: str, most: int = 1 << 20) -> str:
    """A message with its lines, each escaped, and cut where it repeats a very long text."""
    return "\n    ".join([escape(line[:most]) + "…" * (len(line) > most) for line in text.split("\n")])


def _prefix(place: Place | None) -> Pieces:
    return [("place", f"{escape(place.file)}:{place.line}:{place.column}: " if place else f"{PROGRAM[-1]}: ")]


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
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1
                for c in lead + before)
    return [[("", number + lead + before + after + ("…" if start + MAX_LINE < len(line) else ""))],
            [("", " " * (len(number) - 2) + "| " + " " * width), ("hint", "^")]]


def line_of(place: Place) -> str:
    """The line of a file that a place names; empty if the file cannot be read."""
    try:
        # The name comes from the text: it may be a device.
        if not os.path.isfile(place.file) or os.path.getsize(place.file) > MAX_READ:
            return ""
        with open(place.file, encoding="utf-8", errors="replace") as stream:
            return next(islice(stream, place.line - 1, place.line), "")[:MAX_KEPT]
    except (OSError, ValueError):
        return ""

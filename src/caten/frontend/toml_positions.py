"""Source positions of the keys and values of a TOML document: a scanner next to the parser, which reports none.

It reads TOML 1.0 and enforces the nesting limits before the parser runs. It stops at a syntax error, which the parser
then reports.
"""
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from ..errors import Place, error

Path = tuple[str | int, ...]

MAX_DEPTH = 256                # arrays and inline tables inside each other
MAX_KEY_PARTS = 64             # parts of one dotted key
MAX_KEYS = 100_000             # keys and array elements of one document
MAX_LINE = 4096                # characters of a line that a place still quotes

_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_ML_BASIC_STEP = re.compile(r'\\.|"{3,5}', re.DOTALL)
_ML_LITERAL_END = re.compile(r"'{3,5}")
_SCALAR = re.compile(r"[^\s,\]}#][^,\]}#\n]*")
_ESCAPE = re.compile(r"\\(?:[ \t]*\n[ \t\n]*|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)


class _NotToml(Exception):
    """A syntax error."""


@dataclass
class Locations:
    """The positions of a document's keys and values by path: `("composite", "inputs", 0)`."""

    text: str
    file: str
    keys: dict[Path, int] = field(default_factory=dict)
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    unclosed: int | None = None        # the offset of an unterminated string
    given: Mapping[Path, Callable[[int], Place]] = field(default_factory=dict)     # places that are known otherwise

    def __post_init__(self) -> None:
        self._lines = [0, *[m.end() for m in re.finditer("\n", self.text)]]

    def at(self, offset: int) -> Place:
        """Line and column of an offset in the document."""
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1]
        end = self._lines[line] - 1 if line < len(self._lines) else len(self.text)
        return Place(self.file, line, offset - start + 1, self.text[start:end] if end - start <= MAX_LINE else "")

    def key(self, *path: str | int) -> Place:
        """The position of a key or array element, or of the nearest enclosing one."""
        if path in self.given:
            return self.given[path](0)
        while path and path not in self.keys:
            path = path[:-1]
        return self.at(self.keys.get(path, 0))

    def value(self, *path: str | int) -> Place:
        """The position of a value."""
        if path in self.given:
            return self.given[path](0)
        return self.at(self.values[path][0]) if path in self.values else self.key(*path)

    def inside(self, *path: str | int) -> Callable[[int], Place]:
        """A map from offsets in a string value to positions in the file, through quotes and escapes."""
        if path in self.given:
            return self.given[path]
        if path not in self.values:
            return lambda offset: self.key(*path)
        decoded, source = _string_map(self.text, *self.values[path])

        def where(offset: int) -> Place:
            run = bisect_right(decoded, max(offset, 0)) - 1
            return self.at(min(source[run] + max(offset, 0) - decoded[run], source[-1]))
        return where


def locate(text: str, file: str) -> Locations:
    """Scan a document. Raises E004 if it is nested beyond the limits."""
    scanner = _Scanner(Locations(text, file))
    with suppress(_NotToml):    # the parser reports it, with a better message
        scanner.document()
    return scanner.found


def _string_map(text: str, start: int, end: int) -> tuple[list[int], list[int]]:
    """Runs of a string literal in which source and value advance together: their starts in the value and in the
    source."""
    quotes = 3 if text.startswith(('"""', "'''"), start) else 1
    begin, stop = start + quotes, end - quotes
    if quotes == 3 and text.startswith("\n", begin):
        begin += 1
    decoded, source = [0], [begin]
    if text[start] == '"':
        for m in _ESCAPE.finditer(text, begin, stop):
            at = decoded[-1] + m.start() - source[-1]
            width = 0 if "\n" in m[0] else 1
            decoded.append(at + width)
            source.append(m.end())
    decoded.append(decoded[-1] + stop - source[-1])
    source.append(stop)
    return decoded, source


class _Scanner:
    """Recursive-descent scanner of one document. `pos` advances, `found` fills."""

    def __init__(self, found: Locations):
        self.found, self.text, self.pos = found, found.text, 0
        self.tables: dict[Path, int] = {}      # arrays of tables: how many elements so far
        self.table: Path = ()

    def document(self) -> None:
        while True:
            self.skip(_BLANK)
            if self.pos >= len(self.text):
                return
            if self.text.startswith("[", self.pos):
                self.header()
            else:
                self.pair(self.table, 0)
            self.skip(_SPACE)

    def header(self) -> None:
        start = self.pos
        array = self.text.startswith("[[", start)
        self.pos += 2 if array else 1
        parts = [name for name, _ in self.dotted()]
        self.expect("]]" if array else "]")
        path: Path = ()
        for name in parts[:-1]:
            self.note((*path, name), start)
            path = self.element((*path, name))
        path = (*path, parts[-1])
        if array:
            self.note(path, start)
            self.tables[path] = self.tables.get(path, 0) + 1
        path = self.element(path)
        self.note(path, start)
        self.table = path

    def element(self, path: Path) -> Path:
        """The element of an array of tables that is being filled."""
        count = self.tables.get(path)
        return path if count is None else (*path, count - 1)

    def pair(self, table: Path, depth: int) -> None:
        path = table
        for name, start in self.dotted():
            path = (*path, name)
            self.note(path, start)
        self.expect("=")
        self.skip(_SPACE)
        self.value(path, depth)

    def dotted(self) -> list[tuple[str, int]]:
        """The parts of a dotted key with their offsets."""
        parts = [self.simple_key()]
        while self.text.startswith(".", self.pos):
            self.pos += 1
            if len(parts) >= MAX_KEY_PARTS:
                raise error("E004", f"a dotted key of more than {MAX_KEY_PARTS} parts", self.found.at(parts[0][1]))
            parts.append(self.simple_key())
        return parts

    def simple_key(self) -> tuple[str, int]:
        self.skip(_SPACE)
        start = self.pos
        m = _BARE.match(self.text, start) or _BASIC.match(self.text, start) or _LITERAL.match(self.text, start)
        if m is None:
            raise _NotToml
        self.pos = m.end()
        self.skip(_SPACE)
        name = m[0]
        return (name[1:-1] if name[0] in "'\"" else name), start

    def value(self, path: Path, depth: int) -> None:
        start = self.pos
        if depth > MAX_DEPTH:
            raise error("E004", f"values are nested deeper than {MAX_DEPTH}", self.found.at(start))
        match self.text[start:start + 1]:
            case '"' | "'":
                self.string()
            case "[":
                self.array(path, depth)
            case "{":
                self.inline_table(path, depth)
            case _:
                self.pos = self.matched(_SCALAR).end()
        self.found.values[path] = (start, self.pos)

    def string(self) -> None:
        self.found.unclosed = self.pos
        self.quoted()
        self.found.unclosed = None

    def quoted(self) -> None:
        if self.text.startswith("'''", self.pos):
            m = _ML_LITERAL_END.search(self.text, self.pos + 3)
            if m is None:
                raise _NotToml
            self.pos = m.end()
        elif self.text.startswith('"""', self.pos):
            self.pos += 3
            while True:
                m = _ML_BASIC_STEP.search(self.text, self.pos)
                if m is None:
                    raise _NotToml
                self.pos = m.end()
                if m[0][0] == '"':
                    return
        else:
            self.pos = self.matched(_BASIC if self.text[self.pos] == '"' else _LITERAL).end()

    def array(self, path: Path, depth: int) -> None:
        self.pos += 1
        count = 0
        while True:
            self.skip(_BLANK)
            if self.accept("]"):
                return
            element = (*path, count)
            self.note(element, self.pos)
            self.value(element, depth + 1)
            count += 1
            self.skip(_BLANK)
            if not self.accept(","):
                self.expect("]")
                return

    def inline_table(self, path: Path, depth: int) -> None:
        self.pos += 1
        while True:
            self.skip(_BLANK)
            if self.accept("}"):
                return
            self.pair(path, depth + 1)
            self.skip(_BLANK)
            if not self.accept(","):
                self.expect("}")
                return

    def note(self, path: Path, offset: int) -> None:
        if len(self.found.keys) >= MAX_KEYS:
            raise error("E004", f"more than {MAX_KEYS} keys and array elements", self.found.at(offset))
        self.found.keys.setdefault(path, offset)

    def skip(self, pattern: re.Pattern[str]) -> None:
        self.pos = self.matched(pattern).end()

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str]:
        m = pattern.match(self.text, self.pos)
        if m is None:
            raise _NotToml
        return m

    def accept(self, mark: str) -> bool:
        if self.text.startswith(mark, self.pos):
            self.pos += len(mark)
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise _NotToml

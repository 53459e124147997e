"""The text of a body that is put together from lines of Python files, and where each of them stands."""
from __future__ import annotations

import linecache
from bisect import bisect_right

from ..errors import Place


class BodyText:
    """Lines, each with its place in a file."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.origins: list[tuple[str, int, int]] = []        # file, line, and the column of the first character

    def add(self, text: str, file: str, line: int, column: int = 1) -> None:
        """Append a line that stands in a file at a line and a column, both from 1."""
        self.lines.append(text)
        self.origins.append((file, line, column))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def where(self, offset: int) -> Place:
        """The place in its file of a character of the text."""
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        row = min(bisect_right(starts, max(offset, 0)) - 1, len(self.lines) - 1)
        file, line_number, column = self.origins[row]
        return place(file, line_number, column + max(offset, 0) - starts[row])


def place(file: str, line: int, column: int) -> Place:
    """A point in a Python file, with the text of the line if it can be read."""
    return Place(file, line, column, linecache.getline(file, line).rstrip("\n"))

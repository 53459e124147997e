"""Lines of C: indentation and braces."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

INDENT = "    "


@dataclass
class Lines:
    """The body of a function as it grows."""

    lines: list[str] = field(default_factory=list, kw_only=True)
    depth: int = field(default=1, kw_only=True)
    declared: int = field(default=-1, kw_only=True)            # the last line that is a declaration, and no statement

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        first = len(self.lines)
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        if "for (" in head and self.declared <= first and self._is_single(self.lines[first + 1:]):   # it needs none
            self.lines[first] = self.lines[first].removesuffix(" {")
        else:
            self.line(tail)

    def _is_single(self, lines: list[str]) -> bool:
        """Do the lines hold one statement that ends with a semicolon: a plain one, or loops around one?"""
        inner = INDENT * (self.depth + 2)
        return bool(lines) and lines[-1].endswith(";") and not lines[0].endswith("{") and all(line.startswith(inner)
                                                                                              for line in lines[1:])

"""The source formatter behind `caten fmt`. Line breaks stay; spaces, indentation and empty lines are normalised.

In Lisp, arguments on later lines are indented by two columns in a form with a body (`dotimes`, `let`, …), else aligned
with the first argument. In TOML, one empty line separates sections, and only bodies are formatted inside.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..core.text import read_forms
from .toml_positions import Locations, Path

# Forms with a body -> the number of arguments before it, which are aligned as in any other form.
BODIES = {"dotimes": 1, "loop": 1, "let": 1, "let*": 1, "when": 1, "unless": 1, "lambda": 1, "composite": 1, "progn": 0}

_TOKEN = re.compile(r"""(?P<lines>[^\S\n]*(?:\n[^\S\n]*)+)|(?P<blank>[^\S\n]+)|(?P<comment>;[^\n]*)"""
                    r"""|(?P<open>\()|(?P<close>\))|(?P<str>"(?:[^"\\]|\\.)*")|(?P<atom>[^\s()";]+)""", re.DOTALL)


@dataclass
class _Form:
    """An open form: the column of its parenthesis, its head, its number of arguments, and the column of the first one
    on its line."""

    column: int
    head: str = ""
    arguments: int = -1
    first: int | None = None

    def indent(self) -> int:
        """The column of an argument that begins a line."""
        if self.head.lower() in BODIES and self.arguments >= BODIES[self.head.lower()]:
            return self.column + 2
        return self.column + 1 if self.first is None else self.first


def lisp(text: str) -> str:
    """Formatted Lisp without an empty line at either end. The text must be readable (`read_forms`)."""
    out: list[str] = [""]
    stack: list[_Form] = []
    starts = True                              # does the next token begin a line?
    tight = True                               # may nothing stand between the next token and what is before it?
    for m in _TOKEN.finditer(text):
        kind, token = m.lastgroup, m[0]
        if kind == "blank":
            continue
        if kind == "lines":
            if out[-1]:
                out += [""] if token.count("\n") > 1 and not stack else []
                out.append("")
            starts = True
            continue
        if kind == "close":
            form = stack.pop()
            if starts and _comments(out):
                out[-1] = " " * form.indent()
            while not out[-1]:
                out.pop()
            out[-1] += token
            starts = tight = False
            continue
        if starts:
            out[-1] = " " * (stack[-1].indent() if stack else 0)
        elif kind == "comment":
            out[-1] += "  "
        elif not tight:
            out[-1] += " "
        column = len(out[-1])
        if stack and kind != "comment":
            _count(stack[-1], token if kind == "atom" else "", column, starts)
        out[-1] += token.rstrip() if kind == "comment" else token
        if kind == "open":
            stack.append(_Form(column))
        starts, tight = False, kind == "open"
        if "\n" in token:                      # a multi-line string
            *before, last = out[-1].split("\n")
            out[-1:] = [*before, last]
    return "\n".join(out).strip("\n")


def _comments(out: list[str]) -> bool:
    """True if the last nonempty line ends in a comment, so that no parenthesis can follow it."""
    last = next((line for line in reversed(out) if line.strip()), "")
    return any(m.lastgroup == "comment" for m in _TOKEN.finditer(last))


def _count(form: _Form, atom: str, column: int, starts: bool) -> None:
    """Count one more argument of a form."""
    form.arguments += 1
    if form.arguments == 0:
        form.head = atom
        if not atom:   # a list of lists (bindings of let): aligned with its first
            form.first = column
    elif form.arguments == 1 and not starts:
        form.first = column


def spec(text: str, document: dict[str, Any], places: Locations) -> str:
    """A formatted TOML spec. `document` and `places` are the result of reading its text, and its `bodies` are
    readable."""
    source, lisps = text, set(bodies(document, places))
    text, kept = "", [""]                      # multi-line values are put back last
    end = 0
    for path, (start, stop) in sorted(places.values.items(), key=lambda item: item[1]):
        if start >= end and "\n" in (value := source[start:stop]):
            text += source[end:start] + f"\0{len(kept)}\0"
            kept.append(_body(value) if path in lisps else value)
            end = stop
    text = re.sub(r"[ \t]+$", "", text + source[end:], flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = "\n".join(_apart(text.strip("\n").split("\n"))) + "\n"
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)


def _apart(lines: list[str]) -> list[str]:
    """Lines with an empty one before every section and its comments."""
    out: list[str] = []
    for line in lines:
        at = len(out)
        while at and out[at - 1].startswith("#"):
            at -= 1
        if line.startswith("[") and at and out[at - 1]:
            out.insert(at, "")
        out.append(line)
    return out


def _body(value: str) -> str:
    """A multi-line string of Lisp, formatted within its quotes; unchanged if it holds escapes."""
    quotes = value[:3]
    inner = value[3:-3]
    if quotes == '"""' and "\\" in inner:
        return value
    return f"{quotes}\n{lisp(inner)}\n{quotes}"


def bodies(document: dict[str, Any], places: Locations) -> list[Path]:
    """The paths of strings that hold Lisp: bodies, schedules, and tests that are forms."""
    return [path for path in places.values
            if path[-1] == "code" and isinstance(at(document, path), str) and _is_lisp(document, path)]


def _is_lisp(document: dict[str, Any], path: Path) -> bool:
    section = next((part for part in reversed(path[:-1]) if isinstance(part, str)), "")
    if section == "implementation":
        return bool(at(document, path[:-1]).get("lang", "lisp") == "lisp")
    return section in ("test", "schedule") and at(document, path).lstrip().startswith("(")


def at(document: dict[str, Any], path: Path) -> Any:
    """The value at a path."""
    value: Any = document
    for part in path:
        value = value[part]
    return value


def same(one: Any, other: Any) -> bool:
    """True if two documents are equal, up to the layout of Lisp strings."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return read_forms(one) == read_forms(other)
    return bool(one == other) or (one != one and other != other)

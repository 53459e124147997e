"""One layout for specs: what `caten fmt` writes. Lines stay where their author broke them; blanks, indentation and empty lines are settled.

In Lisp, a form's arguments on later lines stand two columns behind its parenthesis where the form has a body (`dotimes`, `let`, …), else below its
first argument. In TOML, sections are one empty line apart, and only bodies are looked into.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..core.text import read_forms
from .locate import Locations, Path

# Forms with a body -> how many arguments come before it; those are aligned as in any other form.
BODIES = {"dotimes": 1, "loop": 1, "let": 1, "let*": 1, "when": 1, "unless": 1, "lambda": 1, "composite": 1, "progn": 0}

_TOKEN = re.compile(r"""(?P<lines>[^\S\n]*(?:\n[^\S\n]*)+)|(?P<blank>[^\S\n]+)|(?P<comment>;[^\n]*)|(?P<open>\()|(?P<close>\))"""
                    r"""|(?P<str>"(?:[^"\\]|\\.)*")|(?P<atom>[^\s()";]+)""", re.DOTALL)


@dataclass
class _Form:
    """A form that is open: the column of its parenthesis, its head, how many arguments it has, and the column of the first that shares its line."""

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
    """Lisp in its layout, without an empty line at either end. The text can be read (`read_forms`)."""
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
        if "\n" in token:                      # a string: what follows stands behind its last line
            *before, last = out[-1].split("\n")
            out[-1:] = [*before, last]
    return "\n".join(out).strip("\n")


def _comments(out: list[str]) -> bool:
    """Does the last line that is not empty end in a comment? Then a parenthesis cannot follow it."""
    last = next((line for line in reversed(out) if line.strip()), "")
    return any(m.lastgroup == "comment" for m in _TOKEN.finditer(last))


def _count(form: _Form, atom: str, column: int, starts: bool) -> None:
    """One more argument of a form."""
    form.arguments += 1
    if form.arguments == 0:
        form.head = atom
        if not atom:                           # a list of lists, as the bindings of let: aligned with its first element
            form.first = column
    elif form.arguments == 1 and not starts:
        form.first = column


def spec(text: str, document: dict[str, Any], places: Locations) -> str:
    """A TOML spec in its layout; `document` and `places` are what its text was read as, and its `bodies` can be read."""
    source, lisps = text, set(bodies(document, places))
    text, kept = "", [""]                      # values that span lines are put back when the lines around them are settled
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
    """Lines with an empty one before every section and the comments on it."""
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
    """A string of several lines that holds Lisp, in the quotes that it has; as it is where it holds escapes, which the layout would not see."""
    quotes = value[:3]
    inner = value[3:-3]
    if quotes == '"""' and "\\" in inner:
        return value
    return f"{quotes}\n{lisp(inner)}\n{quotes}"


def bodies(document: dict[str, Any], places: Locations) -> list[Path]:
    """Where the strings stand that hold Lisp: bodies, schedules, and tests that are forms."""
    return [path for path in places.values if path[-1] == "code" and isinstance(at(document, path), str) and _is_lisp(document, path)]


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
    """Do two documents say the same? Strings that differ must be Lisp that reads the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return read_forms(one) == read_forms(other)
    return bool(one == other) or (one != one and other != other)

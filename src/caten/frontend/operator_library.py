"""The library of operators that comes with caten: the specs in the folder `ops`, found by the name of an operator."""
from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import Diagnostic, UsageError, did_you_mean
from ..frozen import frozen
from .instances import INSTANCE
from .spec_files import SpecText

FIGURES = "figures.json"                                   # of python -m benchmarks.operators --figures
FOLDER = Path(__file__).resolve().parent.parent / "ops"
PREFIX = "ops:"                                            # of an operator's name where a file is expected
HEAD = re.compile(r"^\[\[composite\]\]", re.MULTILINE)
NAME = re.compile(r'^name = "([^"]*)"', re.MULTILINE)
STRING = r'"((?:[^"\\]|\\.)*)"'
DOCUMENTATION = re.compile(r'^documentation = "((?:[^"\\]|\\.)*)"', re.MULTILINE)


@frozen
class Entry:
    """An operator of the library. `family`: the name of its file. `start`, `end`: of its part of the text."""

    name: str
    family: str
    documentation: str
    start: int
    end: int

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.family}.toml"

    @property
    def source(self) -> str:
        """Its part of the file, which is a spec by itself."""
        return _text(self.path)[self.start:self.end].strip() + "\n"

    @property
    def table(self) -> dict[str, Any]:
        """Its spec as TOML has it."""
        import tomli  # imported here: a list of names needs none
        found: dict[str, Any] = tomli.loads(self.source)["composite"][0]
        return found

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return tuple(re.findall(r'"([\w-]+)\{', self._list("inputs")))

    @property
    def signature(self) -> str:
        """`softmax(x{Floating}[~], axis=-1) -> y{Floating}[~]`."""
        taken = [*re.findall(STRING, self._list("inputs")),
                 *[text.replace(" = ", "=") for text in re.findall(STRING, self._list("attributes"))]]
        signature = f"{self.name}({', '.join(taken)}) -> {', '.join(re.findall(STRING, self._list('outputs')))}"
        return signature.replace('\\"', '"')

    @property
    def figures(self) -> list[dict[str, Any]]:
        """What a call took where the library was measured, and the best of the others. `sizes`; `seconds`; `peer` and
        `ratio`, its time divided by caten's, where another library has the operator."""
        return list(_figures()["operators"].get(self.name, ()))

    def _list(self, key: str) -> str:
        found = re.search(rf"^{key} = (\[.*\])$", self.source, re.MULTILINE)
        return found[1] if found is not None else ""

    @property
    def spec(self) -> SpecText:
        """Its part of the file as a spec, each line in its place."""
        text = _text(self.path)
        return SpecText(str(self.path), "\n" * text.count("\n", 0, self.start) + text[self.start:self.end])


def entries() -> tuple[Entry, ...]:
    """All operators of the library, by families and in the order of their files."""
    return tuple([entry for path in _files() for entry in _entries(path)])


def find(name: str) -> Entry | None:
    """The operator with this name."""
    wanted = name.lower().replace("-", "_")
    for path in _files():
        if f'"{wanted}"' in _text(path):                    # most files have another operator, and are only searched
            found = next((entry for entry in _entries(path) if entry.name == wanted), None)
            if found is not None:
                return found
    return None


def measured_on() -> str:
    """The machine of the figures, and the day."""
    return str(_figures()["machine"])


def introductions() -> dict[str, str]:
    """What the file of each family says at its beginning."""
    return {path.stem: _text(path).split("\n", 1)[0].lstrip("# ") for path in _files()}


def generic_name(name: str) -> str:
    """The name of the operator of the library that `softmax_f32_2d` is an instance of; any other name itself."""
    parts = name.split("_")
    for n in range(len(parts), 0, -1):
        entry, end = find("_".join(parts[:n])), "_".join(parts[n:])
        if entry is not None and (not end or INSTANCE.match(end) or end.startswith(tuple(
                [f"{attribute}_" for attribute in re.findall(r'"(\w+) = ', entry._list("attributes"))]))):
            return entry.name
    return name


def entry_of(name: str) -> Entry:
    """The operator with this name. UsageError E902 if there is none."""
    entry = find(name)
    if entry is None:
        raise UsageError(Diagnostic("E902", f"there is no operator '{name}' in the library",
                                    hint=did_you_mean(name, [known.name for known in entries()])
                                    or "caten ops lists them"))
    return entry


def spec_of(name: str) -> SpecText:
    """The spec of an operator of the library. UsageError E902 if there is none."""
    return entry_of(name).spec


@cache
def _figures() -> dict[str, Any]:
    import json
    found: dict[str, Any] = json.loads((FOLDER / FIGURES).read_text("utf-8"))
    return found


@cache
def _files() -> tuple[Path, ...]:
    return tuple(sorted(FOLDER.glob("*.toml")))


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def _entries(path: Path) -> tuple[Entry, ...]:
    text = _text(path)
    starts = [m.start() for m in HEAD.finditer(text)]
    found = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        name, documentation = NAME.search(text, start, end), DOCUMENTATION.search(text, start, end)
        if name is not None:
            written = documentation[1] if documentation is not None else ""
            found.append(Entry(name[1], path.stem, written.replace('\\"', '"'), start, end))
    return tuple(found)

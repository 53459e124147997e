"""The log of plans and attempts, as data and in English, which `caten schedule --explain` prints."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import Place
from ..frozen import frozen

WORD = re.compile(r"\w+")


@frozen
class Planned:
    """Planning of the nest of a loop begins. `why_not`: why the nest stays as written; empty if it does not."""

    nest: str
    why_not: str = ""


@frozen
class Tried:
    """An attempt at a plan, a part of one, or steps. `depth`: the number of enclosing attempts. `why_not`: why it was
    not taken; empty if it was."""

    what: str
    depth: int
    why_not: str = ""


@frozen
class Chosen:
    """The plan being tried, as an S-expression."""

    plan: str
    depth: int


@frozen
class Copied:
    """A specialised copy of a nest (loop versioning), for calls for which the condition holds. `copy`: its outermost
    loop."""

    loop: str
    copy: str
    cond: str
    depth: int


@frozen
class StaysScalar:
    """The loop is not vectorised, and why."""

    loop: str
    why: str
    stored: tuple[str, ...]                        # the accesses that it stores to


@frozen
class StaysNest:
    """A loop, or another statement, keeps its sequential semantics: it has no index notation, and why. `what`: it, in
    words. `access`: the one that keeps it, if it is one. `place`: where it is written."""

    what: str
    why: str
    access: str
    place: Place | None

    @property
    def told(self) -> str:
        """The reason, with the access."""
        return f"{self.why}: {self.access}" if self.access else self.why


@frozen
class Rewritten:
    """A rule of [rewrite] was applied to a value of the operator."""

    operator: str
    rule: str


@frozen
class Ignored:
    """A request of [schedule] fusion that the device cannot meet."""

    request: str


Entry = Rewritten | Ignored | Planned | Tried | Chosen | Copied | StaysScalar | StaysNest


def renamed(entry: Entry, new: Mapping[str, str]) -> Entry:
    """An entry with other names of loops and arrays."""
    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return WORD.sub(lambda m: new.get(m[0], m[0]), value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value
    return replace(entry, **{f.name: changed(getattr(entry, f.name)) for f in fields(entry)})


def words_of(log: Iterable[Entry]) -> frozenset[str]:
    """All words in a log, names of loops and arrays among them."""
    texts = [value for entry in log for f in fields(entry) if isinstance(value := getattr(entry, f.name), str)]
    return frozenset([word for text in texts for word in WORD.findall(text)])


def explained(log: Iterable[Entry]) -> Iterator[str]:
    """One line per entry; nested attempts are indented."""
    entries = list(log)
    if all(isinstance(entry, StaysNest | Rewritten | Ignored) for entry in entries):
        yield ("nothing was planned: the schedule was given, there is no loop, "
               "or this optimisation level makes no plans")
    for entry in entries:
        match entry:
            case Rewritten(operator, rule):
                yield f"the rule '{rule}' is applied in {operator}"
            case Ignored(request):
                yield f"{request} is ignored, because a device with groups of threads has no kernels of blocks of rows"
            case Planned(nest, ""):
                yield f"the plan of the nest of '{nest}':"
            case Planned(nest, why):
                yield f"the nest of '{nest}' stays as it is written, because {why}"
            case Tried(what, depth, ""):
                yield f"{_indent(depth)}taken: {what}"
            case Tried(what, depth, why):
                yield f"{_indent(depth)}not taken: {what}, because {why}"
            case Chosen(plan, depth):
                yield f"{_indent(depth)}{plan}"
            case StaysNest(what):
                yield f"{what} keeps the order of its iterations, because {entry.told}"
            case StaysScalar(loop, why):
                yield f"  the loop '{loop}' stays scalar, because {why}"
            case Copied(loop, copy, cond, depth):
                yield f"{_indent(depth)}for calls with {cond} there is a copy of '{loop}': '{copy}'"


def _indent(depth: int) -> str:
    return "  " * (depth + 1)

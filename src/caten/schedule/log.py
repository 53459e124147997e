"""What was planned and tried for a program, as data and in plain English: what `caten schedule --explain` prints."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..frozen import frozen


@frozen
class Planned:
    """The plan of the nest of this loop begins. `why_not`: why the nest stays as it is written; empty where it does not."""

    nest: str
    why_not: str = ""


@frozen
class Tried:
    """A plan, a part of one, or steps in the words of the schedule language, inside so many others. `why_not`: why it was not taken; empty where it
    was."""

    what: str
    depth: int
    why_not: str = ""


@frozen
class Chosen:
    """The plan that is tried now, as its S-expression."""

    plan: str
    depth: int


@frozen
class Copied:
    """A copy of the nest of a loop, for calls of which the condition holds: its outermost loop."""

    loop: str
    copy: str
    cond: str
    depth: int


@frozen
class StaysScalar:
    """No vectors are made of the iterations of this loop, and why."""

    loop: str
    why: str
    stored: tuple[str, ...]                        # the places that it stores to, as the program has them


Entry = Planned | Tried | Chosen | Copied | StaysScalar


def explained(log: Iterable[Entry]) -> Iterator[str]:
    """A line for each entry; what was tried inside something else is indented."""
    entries = list(log)
    if not entries:
        yield "nothing was planned: the schedule was given, there is no loop, or this level of optimisation asks for no plan"
    for entry in entries:
        match entry:
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
            case StaysScalar(loop, why):
                yield f"  the loop '{loop}' stays scalar, because {why}"
            case Copied(loop, copy, cond, depth):
                yield f"{_indent(depth)}for calls with {cond} there is a copy of '{loop}': '{copy}'"


def _indent(depth: int) -> str:
    return "  " * (depth + 1)

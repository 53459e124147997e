"""Symbol table of a body: what each name stands for, and its scope.

A name resolves to the innermost binding with exactly its spelling, else to the innermost one equal up to case and
`-`/`_`.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import unique_names
from ..core.expr import Expr, number
from ..errors import Diagnostic
from ..frozen import frozen
from .composite import fold
from .typing import WEAK_FLOAT, WEAK_INT, Literal, Term, Value

RESERVED = frozenset({"true", "false", "inf", "nan"})      # constants in the text of the IR
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z", re.ASCII)


@frozen
class Number:
    """A read-only name: a `size`, a `scalar input`, a `loop variable` or a `let`."""

    term: Term
    what: str


@frozen
class Variable:
    """A local that assignments change. Its type is the join of them all, kept by the body's pass under `key`."""

    name: str
    key: tuple[int, ...]


@frozen
class Array:
    """A tensor or a local array. `name`: in the program. `order`: of its axes in memory. `fresh`: holds nothing until
    the body sets it. `blame`: the refusal for an early read that is the fault of the call passing it."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    writable: bool
    fresh: bool = False
    blame: Diagnostic | None = None


@frozen
class Broken:
    """A name whose declaration was refused; its uses are not reported."""


Binding = Number | Variable | Array | Broken


@dataclass
class Scope:
    """The symbols of one statement list, inside those of `outer`. `ended`: names declared by inner lists that are
    closed."""

    outer: Scope | None = None
    exact: dict[str, Binding] = field(default_factory=dict)
    folded: dict[str, Binding] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    def declare(self, name: str, binding: Binding) -> None:
        self.exact[name.replace("-", "_")] = binding
        self.folded[fold(name)] = binding

    def lists(self) -> Iterator[Scope]:
        """This scope and its enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find_exact(self, name: str) -> Binding | None:
        spelled = name.replace("-", "_")
        return next((s.exact[spelled] for s in self.lists() if spelled in s.exact), None)

    def find(self, name: str) -> Binding | None:
        found = self.find_exact(name)
        if found is None:
            key = fold(name)
            found = next((s.folded[key] for s in self.lists() if key in s.folded), None)
        return found

    def ended_at(self, name: str) -> int | None:
        """The offset at which a closed inner list declared this name."""
        return next((s.ended[fold(name)] for s in self.lists() if fold(name) in s.ended), None)

    @property
    def names(self) -> list[str]:
        return [n for s in self.lists() for n in s.exact]


def declare_attributes(scope: Scope, attributes: Sequence[tuple[str, Any]]) -> None:
    """Declare the attributes of a composite that are numbers."""
    for name, value in attributes:
        if isinstance(value, bool):
            scope.declare(name, Number(Value("bool", 0, expr=number(value, "bool")), "attribute"))
        elif isinstance(value, int | float):
            kind = WEAK_INT if isinstance(value, int) else WEAK_FLOAT
            scope.declare(name, Number(Literal(kind, 0, value=value), "attribute"))


class Names(unique_names.Names):
    """Generates unique C identifiers, close to what the user wrote."""

    def __init__(self, taken: tuple[str, ...]):
        super().__init__({*taken, *RESERVED})

    def fresh(self, wanted: str) -> str:
        return super().fresh(wanted.replace("-", "_"))


def is_identifier(name: str) -> bool:
    """True if a body may declare this name."""
    return _IDENTIFIER.match(name) is not None

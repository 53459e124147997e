"""Structural identity of operators (alpha equivalence): two operators have equal tokens exactly if they are one kernel
under different names.

One walk over the clauses of an op program. Every field of every node contributes to the tokens unless it is listed as a
name (NAMES) or as text for people and tests (NO_PART), so a new field contributes until it is listed.

A name is replaced by the number of its first appearance, for arrays, sizes, scalars, loop variables, locals and the
operator itself. The order of statements and declarations is part of the structure, even of independent ones: it decides
the order of arguments and of checks.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..core.expr import Var
from ..core.node import Node
from ..core.program import (
    AnyAxes,
    At,
    Attribute,
    Bind,
    Buffer,
    Case,
    Collapsed,
    Doc,
    GradientBody,
    GradientSteps,
    Outputs,
    Program,
    Reference,
    Scalar,
    Signature,
    Size,
    Source,
    Tolerance,
)
from ..frozen import frozen
from ..loop.statements import Aref, For, Let, Local, Vref
from ..tensor.values import Axis, Define, Named, Out, Output, Read, Scan, Scatter
from .op import OpProgram

# Fields that hold names.
NAMES: dict[type[Node], tuple[str, ...]] = {
    Size: ("name",), Scalar: ("name",), Buffer: ("name",), Bind: ("name",), Outputs: ("names",), Collapsed: ("names",),
    Var: ("name",),
    Aref: ("buffer",), Vref: ("buffer",), For: ("name",), Let: ("name",), Local: ("name",), Read: ("buffer",),
    Axis: ("name",), Define: ("names",), Output: ("name", "value"), Scan: ("axis",), Scatter: ("source",),
    Out: ("name", "source"), Named: ("value",),
}
# Clauses about spelling, documentation and tests, which produce no code.
NO_PART = (Doc, Source, Signature, AnyAxes, At, Attribute, Reference, Tolerance, GradientBody, GradientSteps, Case)


P = TypeVar("P", bound=Program)


@frozen
class Structure:
    """`tokens`: the structure as text. `names`: the names in the order of their numbers."""

    tokens: str
    names: tuple[str, ...]


def structure(program: OpProgram) -> Structure:
    """The structure of an operator."""
    writer = _Writer(NAMES)
    for clause in program.clauses:
        if not isinstance(clause, NO_PART):
            writer.write(clause)
    return Structure("".join(writer.out), tuple(writer.numbers))


def with_names(program: OpProgram, names: Sequence[str]) -> OpProgram:
    """The operator with other names, in the order of their numbers. Everything outside the structure stays."""
    return renamed(program, dict(zip(structure(program).names, names, strict=True)))


def renamed(program: P, names: Mapping[str, str]) -> P:
    """A program with other names for some of its arrays, sizes, values and variables. Nothing outside the structure
    changes. A new name must not be in the program already: `names_of` tells."""
    memo: dict[Node, Node] = {}

    def go(node: Node) -> Node:
        if node not in memo:
            new = node.map(go)
            for field in NAMES.get(type(node), ()):
                value = getattr(node, field)
                new = new.replace(**{field: names.get(value, value) if isinstance(value, str)
                                     else tuple([names.get(name, name) for name in value])})
            memo[node] = new
        return memo[node]
    return program.replace(clauses=tuple([c if isinstance(c, NO_PART) else go(c) for c in program.clauses]))


def names_of(program: Program) -> frozenset[str]:
    """The names of its arrays, sizes, values and variables."""
    writer = _Writer(NAMES)
    for clause in program.clauses:
        if not isinstance(clause, NO_PART):
            writer.write(clause)
    return frozenset(writer.numbers)


def spelling(program: Program) -> str:
    """The complete text of a program, with names, positions and documentation."""
    writer = _Writer({})
    writer.write(program)
    return "".join(writer.out)


class _Writer:
    """Writes nodes as tokens. A repeated node is written as its number. A string is preceded by its length, so that no
    two trees have one text."""

    def __init__(self, names: dict[type[Node], tuple[str, ...]]):
        self.out: list[str] = []
        self.numbers: dict[str, int] = {}
        self._names = names
        self._seen: dict[Node, int] = {}

    def write(self, root: Node) -> None:
        out, seen = self.out, self._seen
        stack: list[Any] = [root]
        while stack:
            part = stack.pop()
            if isinstance(part, _Token):
                out.append(part)
            elif not isinstance(part, Node):
                out.append(f"{type(part).__name__}:{part!r} ")
            elif part in seen:
                out.append(f"@{seen[part]} ")
            else:
                seen[part] = len(seen)
                out.append(f"({type(part).__name__} ")
                stack.append(_END)
                stack.extend(reversed(self._parts(part)))

    def _parts(self, node: Node) -> list[Any]:
        named = self._names.get(type(node), ())
        parts: list[Any] = []
        for field, value in zip(node._fields, node.parts, strict=True):
            if field in named and value != "":
                parts += [self._number(name) for name in ((value,) if isinstance(value, str) else value)]
            else:
                self._flat(value, parts)
        return parts

    def _flat(self, value: Any, parts: list[Any]) -> None:
        """The value of a field; (nested) tuples between brackets."""
        if isinstance(value, str):
            parts.append(_Token(f"{len(value)}:{value} "))
        elif isinstance(value, tuple):
            parts.append(_OPEN)
            for item in value:
                self._flat(item, parts)
            parts.append(_CLOSE)
        else:
            parts.append(value)

    def _number(self, name: str) -> _Token:
        return _Token(f"#{self.numbers.setdefault(name, len(self.numbers))} ")


class _Token(str):
    """Finished text."""


_END, _OPEN, _CLOSE = _Token(")"), _Token("["), _Token("]")

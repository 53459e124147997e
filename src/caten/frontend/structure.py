"""The structure of an operator: tokens that two specs share exactly where they are one kernel under different names.

One walk over the clauses of an op program. Every field of every node becomes part of the tokens unless it is listed here: as a name (NAMES), or as
words for people and tests (NO_PART). So a field that someone adds later is part of them until it is listed.

A name is written as the number of its first appearance. Two operators have the same tokens exactly where renaming one-to-one makes one of the other:
arrays, sizes, scalars, loop variables, locals, and the operator itself. The order of statements and declarations is part of the structure, that of
definitions which do not depend on each other too: it decides the order of arguments and of checks.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.expr import Var
from ..core.node import Node
from ..core.program import At, Bind, Buffer, Case, Doc, Outputs, Reference, Scalar, Signature, Size, Source
from ..frozen import frozen
from ..loop.statements import Aref, For, Let, Local, Vref
from .op import OpProgram

# The fields that hold a name, or several.
NAMES: dict[type[Node], str] = {
    Size: "name", Scalar: "name", Buffer: "name", Bind: "name", Outputs: "names", Var: "name", Aref: "buffer", Vref: "buffer",
    For: "name", Let: "name", Local: "name",
}
# Clauses that say how an operator was written, what it is for and how it is tested; no code comes of them.
NO_PART = (Doc, Source, Signature, At, Reference, Case)


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
    """The operator with other names, in the order of their numbers. What is no part of the structure stays as it is."""
    given = dict(zip(structure(program).names, names, strict=True))
    memo: dict[Node, Node] = {}

    def go(node: Node) -> Node:
        if node not in memo:
            new = node.map(go)
            if (field := NAMES.get(type(node))) is not None:
                value = getattr(node, field)
                new = new.replace(**{field: given[value] if isinstance(value, str) else tuple([given[name] for name in value])})
            memo[node] = new
        return memo[node]
    return program.replace(clauses=tuple([c if isinstance(c, NO_PART) else go(c) for c in program.clauses]))


def spelling(program: OpProgram) -> str:
    """Everything that there is about an operator: its names, places and words too."""
    writer = _Writer({})
    writer.write(program)
    return "".join(writer.out)


class _Writer:
    """Tokens of nodes. A node that came before is its number, so that shared parts are written once; a string is preceded by its length, so that no
    two trees have one text."""

    def __init__(self, names: dict[type[Node], str]):
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
        named = self._names.get(type(node))
        parts: list[Any] = []
        for field, value in zip(node._fields, node.parts, strict=True):
            if field == named:
                parts += [self._number(name) for name in ((value,) if isinstance(value, str) else value)]
            else:
                self._flat(value, parts)
        return parts

    def _flat(self, value: Any, parts: list[Any]) -> None:
        """A field's value; tuples, which may lie in each other, between brackets."""
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
    """Text that is ready."""


_END, _OPEN, _CLOSE = _Token(")"), _Token("["), _Token("]")

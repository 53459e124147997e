"""New names: derived from a wish, unique among those that are taken, the same in every run."""
from __future__ import annotations

from collections.abc import Iterable

from .expr import Expr
from .node import Node, kept
from .program import Taken


class Names:
    """The names that are taken; `fresh` adds one."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.numbers: dict[str, int] = {}              # the last one behind each wanted name: those before it are taken

    @classmethod
    def of(cls, program: Node) -> Names:
        """The names that a program declares."""
        return cls(declared_names(program))

    def fresh(self, wanted: str) -> str:
        """`wanted`, or with the first free number behind it: io, io_2, io_3."""
        number = self.numbers.get(wanted, 1)
        name = wanted if number == 1 else f"{wanted}_{number}"
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        self.numbers[wanted] = number
        return name


@kept
def declared_names(node: Node) -> frozenset[str]:
    """What a program, clause or statement declares, with what is inside it."""
    own = frozenset(node.names if isinstance(node, Taken) else [name for name, _ in node.declares_all()]
                    if hasattr(node, "declares_all") else (node.declares()[0],) if hasattr(node, "declares") else ())
    return own.union(*map(declared_names, [c for c in node.children if not isinstance(c, Expr)]))

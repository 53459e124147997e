"""New names: derived from a wish, unique among those that are taken, the same in every run."""
from __future__ import annotations

from collections.abc import Iterable

from .expr import Expr
from .node import Node, kept
from .program import Taken


class Names:
    """The names that are taken; `fresh` adds one. Those that a part of a program has to leave to others are `reserved`:
    they may be thousands, and are not copied at each step of a schedule."""

    def __init__(self, taken: Iterable[str] = (), reserved: frozenset[str] = frozenset()) -> None:
        self.taken, self.reserved = set(taken), reserved
        self.numbers: dict[str, int] = {}              # the last one behind each wanted name: those before it are taken

    @classmethod
    def of(cls, program: Node) -> Names:
        """The names that a program declares."""
        facts = [c for c in program.children if isinstance(c, Taken)]
        others = [c for c in program.children if not isinstance(c, Taken | Expr)]
        return cls(frozenset().union(*map(declared_names, others)), frozenset().union(*map(declared_names, facts)))

    def __contains__(self, name: str) -> bool:
        return name in self.taken or name in self.reserved

    def fresh(self, wanted: str) -> str:
        """`wanted`, or with the first free number behind it: io, io_2, io_3."""
        number = self.numbers.get(wanted, 1)
        name = wanted if number == 1 else f"{wanted}_{number}"
        while name in self:
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

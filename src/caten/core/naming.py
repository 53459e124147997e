"""New names: derived from a wish, unique among those that are taken, the same in every run."""
from __future__ import annotations

from collections.abc import Iterable

from .node import Node


class Names:
    """The names that are taken; `fresh` adds one."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    @classmethod
    def of(cls, program: Node) -> Names:
        """The names that a program declares."""
        return cls(node.declares()[0] for node in program.unique() if hasattr(node, "declares"))

    def fresh(self, wanted: str) -> str:
        """`wanted`, or with the first free number behind it: io, io_2, io_3."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

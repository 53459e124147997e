"""The op level: the validated spec. `(op Name clause… (body stmt…))`: names bound, shapes and types declared, a typed
body."""
from __future__ import annotations

from ..core.node import Node
from ..core.program import Program
from ..loop.statements import Stmt


class Body(Node, head="body"):
    """`(body stmt…)`: the body of the operator as written, in statements of the loop level."""

    stmts: tuple[Stmt, ...]


class OpProgram(Program, head="op"):
    """`(op Name clause…)`."""

    @property
    def body(self) -> tuple[Stmt, ...]:
        found = self.first(Body)
        return () if found is None else found.stmts

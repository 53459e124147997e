"""The op level: the validated spec. `(op Name clause… (body stmt…))`: names bound, shapes and types declared, a typed
body."""
from __future__ import annotations

from typing import Any

from ..core.node import Node
from ..core.program import Fact, Program, resolve
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


class Rewrite(Fact, head="rewrite"):
    """`(rewrite (op sgemm …) (op sgemm …) library)`: a rule: what computes the first operator is computed as by the
    second one, which has the same parameters; `library`: only with `-l library` (`-`: always). The rule has the name of
    the operators. No pass looks into it: it has no children."""

    pattern: OpProgram
    replacement: OpProgram
    library: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Rewrite:
        _, pattern, replacement, *library = form
        return cls(resolve(parse(pattern)), resolve(parse(replacement)),
                   "" if library in ([], ["-"]) else str(library[0]))

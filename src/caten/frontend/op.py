"""The op level: the validated spec. `(op Name clause… (body stmt…))`: names bound, shapes and types declared, a typed
body. A body over whole arrays is values, the definitions and outputs of the [tensor level](tensor.md):
`(op Name clause… (define v value)… (output C v)…)`."""
from __future__ import annotations

from typing import Any

from ..core.node import Node, kept
from ..core.program import Fact, Program, resolve
from ..loop.statements import Stmt
from ..tensor.values import Define, FailIf, Named, Output, TensorProgram


class Body(Node, head="body"):
    """`(body stmt…)`: the body of the operator as written, in statements of the loop level."""

    stmts: tuple[Stmt, ...]


class OpProgram(Program, head="op"):
    """`(op Name clause…)`."""

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The statements of the body; the loops of a body over whole arrays."""
        found = in_loops(self).first(Body)
        return () if found is None else found.stmts

    @property
    def values(self) -> TensorProgram | None:
        """The program of a body over whole arrays; None for a body of statements."""
        return TensorProgram(self.name, self.clauses) if self.first(Output) is not None else None


@kept
def in_loops(op: OpProgram) -> OpProgram:
    """The operator with the loops of a body over whole arrays in its place."""
    values = op.values
    if values is None:
        return op
    from ..tensor.plain_loops import plain_loops  # most programs stay values
    return op.without(Named, Define, FailIf, Output).adding(Body(plain_loops(values)))


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

"""Raising of loop nests to index notation: `(op …)` -> `(tensor …)`.

The statements of a body are executed symbolically, one after the other (`raised_statements`). What has no index
notation (sequential semantics, computed steps, stores at indices that are read) stays a nest, with its run-time checks.
At -O0 nothing is raised.

    (for i 0 M (for j 0 N (for p 0 K (incf (aref C i j) (* (aref A i p) (aref B p j))))))
->  (define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (* (read A i p) (read B p j))))
    (define v1 (compute f32 ((i M) (j N)) (+ (read C i j) (read v0 i j))))
    (output C v1)
"""
from __future__ import annotations

from collections.abc import Callable

from ..core.node import Node
from ..frontend.op import Body, OpProgram
from ..loop.statements import Stmt
from .canonical_values import canonical_values
from .values import TensorProgram

# Told of a statement, why it has no index notation, and of the access or statement that keeps it.
Heard = Callable[[Stmt, str, Node | None], None]


def raise_op(op: OpProgram, as_written: bool = False, heard: Heard | None = None) -> TensorProgram:
    """Raise an operator to the tensor level. `as_written`: raise nothing, as at -O0. `heard` is told of each statement
    that stays a nest, and why. A body over whole arrays has its values already."""
    values = op.values
    if values is not None:
        return values if as_written else canonical_values(values)
    from .raised_statements import Statements  # most operators of a graph are values
    clauses = tuple([c for c in op.clauses if not isinstance(c, Body)])
    raised = Statements(op, heard)
    raised.run(op.body, as_written or op.opt == 0)
    program = TensorProgram(op.name, (*clauses, *raised.clauses()))
    return program if as_written or op.opt == 0 else canonical_values(program)

"""What the lowering of a body gives."""
from __future__ import annotations

from ..core.expr import Expr
from ..core.program import At
from ..frozen import frozen
from ..loop.statements import Stmt
from ..tensor.values import TensorProgram


@frozen
class Lowered:
    """`stmts`: the body. `positions`: the source positions of its accesses, stores and loops. `requirements`:
    conditions on sizes from the shapes of called composites. `values`: the body instead, if it is over whole
    arrays."""

    stmts: tuple[Stmt, ...]
    positions: tuple[At, ...]
    requirements: tuple[Expr, ...]
    inlined: int = 0                  # statements of callees
    values: TensorProgram | None = None

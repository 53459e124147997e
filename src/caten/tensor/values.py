"""The tensor level: values in index notation. Each element is a formula over its indices, in no particular order.

`(define v (reduce f32 ((i 0 M) (j 0 N)) ((p 0 K)) add true (* (read A i p) (read B p j))))` defines v[i, j] = Σ A[i, p]
· B[p, j]. A definition named after a parameter updates it. A value reads the arrays as they were before it. A `nest`
keeps the sequential semantics of a loop nest that has no index notation.
"""
from __future__ import annotations

from typing import Any

from ..core.expr import TRUE, Expr
from ..core.node import Node
from ..core.program import Program
from ..loop.statements import Stmt


class Read(Expr, head="read", hidden=("type",)):
    """`(read A i p)`: an element of a parameter or of a defined value."""

    buffer: str
    index: tuple[Expr, ...]
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type


class Axis(Node):
    """`(i 0 M)`: an index and its half-open range."""

    name: str
    lo: Expr
    hi: Expr

    def to_form(self) -> tuple[Any, ...]:
        return (self.name, self.lo, self.hi)

    def declares(self) -> tuple[str, str]:
        return self.name, "i64"


def _axes(forms: Any, parse: Any) -> tuple[Axis, ...]:
    axes = tuple([Axis(str(n), parse(lo), parse(hi)) for n, lo, hi in forms])
    for axis in axes:
        if not (isinstance(axis.lo, Expr) and isinstance(axis.hi, Expr)):
            raise TypeError(f"the axis {axis.name} does not range over numbers")
    return axes


class Value(Node):
    """The right-hand side of a definition."""


class Compute(Value, head="compute"):
    """`(compute f32 ((i 0 M)…) expr)`: element [i…] is the expression."""

    type: str
    axes: tuple[Axis, ...]
    expr: Expr

    def to_form(self) -> tuple[Any, ...]:
        return ("compute", self.type, self.axes, self.expr)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Compute:
        _, dtype, axes, expr = form
        return cls(str(dtype), _axes(axes, parse), parse(expr))


class Reduce(Value, head="reduce"):
    """`(reduce f32 ((i 0 M)…) ((p 0 K)…) add cond expr)`: element [i…] combines the expression over all p… where the
    condition holds, in no particular order, from the identity element of the monoid (0 for add, 1 for mul). `fn`: `add
    mul max min and or xor`. The reduced ranges may depend on outer axes."""

    type: str
    axes: tuple[Axis, ...]
    over: tuple[Axis, ...]
    fn: str
    cond: Expr = TRUE
    expr: Expr = TRUE

    def to_form(self) -> tuple[Any, ...]:
        return ("reduce", self.type, self.axes, self.over, self.fn, self.cond, self.expr)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Reduce:
        _, dtype, axes, over, fn, cond, expr = form
        return cls(str(dtype), _axes(axes, parse), _axes(over, parse), str(fn), parse(cond), parse(expr))


class Nest(Value, head="nest"):
    """`(nest (stmt…) out…)`: a loop nest with sequential semantics that writes the named outputs (parameters or
    locals)."""

    stmts: tuple[Stmt, ...]
    outs: tuple[str, ...]


class Define(Node, head="define"):
    """`(define v value)`: a name for a value. A definition with a parameter's name updates that parameter. Definitions
    run in order, and a value reads the results of those before it."""

    name: str
    value: Value

    def declares(self) -> tuple[str, str]:
        return self.name, getattr(self.value, "type", "")


class TensorProgram(Program, head="tensor"):
    """`(tensor name clause…)`: parameters, facts, definitions in order."""

    @property
    def definitions(self) -> tuple[Define, ...]:
        return self.all(Define)

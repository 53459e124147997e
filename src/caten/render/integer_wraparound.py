"""Wrap signed integers, in languages where signed overflow is undefined and no compiler flag defines it.

Index arithmetic is proven not to overflow and stays signed. Arithmetic on array elements and arguments goes through the
unsigned type of the same width.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..core.dtypes import DTYPES
from ..core.expr import Expr, Op, Var
from ..core.node import Node
from ..loop.effects import reads
from ..loop.statements import Aref, Incf, Kernel, Let, Setf
from .c_expressions import Expressions
from .code import UNARY, Code

UNSIGNED = {"i32": "u32", "i64": "u64"}
WRAPPING = ("add", "sub", "mul", "neg")


def indices(known: frozenset[str], kernel: Kernel) -> frozenset[str]:
    """Loop variables and sizes, and the values that are computed from these alone."""
    for node in kernel.walk():
        if isinstance(node, Let) and not reads(node) and {n.name for n in node.value.unique()
                                                          if isinstance(n, Var)} <= known:
            known |= {node.name}
    return known


@dataclass
class WrappingExpressions(Expressions):
    """Expressions of a kernel."""

    _inside: bool = False

    def place(self, ref: Aref) -> Code:
        before, self._inside = self._inside, True
        code = super().place(ref)
        self._inside = before
        return code

    def _operator(self, op: Op) -> Code:
        dtype = op.dtype
        if op.fn not in WRAPPING or dtype not in UNSIGNED or self._inside or not self._may_overflow(op):
            return super()._operator(op)
        other = self.helpers.types[UNSIGNED[dtype]]
        codes = tuple([Code(f"({other}){self.value(a).at(UNARY)}", UNARY) for a in op.args])
        return Code(f"({self.helpers.types[dtype]}){self.helpers.apply(op.fn, UNSIGNED[dtype], 1, codes).at(UNARY)}",
                    UNARY)

    def _may_overflow(self, expr: Expr) -> bool:
        """Is it computed from anything but loop variables and sizes?"""
        return bool(reads(expr)) or any(isinstance(n, Var) and n.name not in self.indices for n in expr.unique())


def wrapped(node: Node) -> Node:
    """`(incf place x)` on integers as `(setf place (+ place x))`, which wraps."""
    match node:
        case Incf(ref=ref, value=value, fn=fn) if fn in WRAPPING and DTYPES[ref.dtype].kind == "int":
            return Setf(ref, Op(fn, (ref, value)))
    return node if isinstance(node, Expr) else node.map(wrapped)

"""Linearise multi-dimensional indices to element offsets, with constant folding."""
from __future__ import annotations

from ..core.expr import Const, Expr, Op, index
from ..core.identities import LOGIC
from ..core.integer_arithmetic import function
from ..core.node import Node


def plus(a: Expr, b: Expr) -> Expr:
    """a + b; x + 0 = x."""
    if isinstance(a, Const) and isinstance(b, Const):
        return index(a.value + b.value)
    return b if a is index(0) else a if b is index(0) else a + b


def times(a: Expr, b: Expr) -> Expr:
    """a · b; x · 1 = x, x · 0 = 0."""
    if isinstance(a, Const) and isinstance(b, Const):
        return index(a.value * b.value)
    if a is index(0) or b is index(0):
        return index(0)
    return b if a is index(1) else a if b is index(1) else a * b


def product(factors: tuple[Expr, ...]) -> Expr:
    """The number of elements of a shape."""
    total: Expr = index(1)
    for f in factors:
        total = times(total, f)
    return total


def offset(indices: tuple[Expr, ...], shape: tuple[Expr, ...], order: tuple[int, ...],
           strides: tuple[Expr, ...] = ()) -> Expr:
    """The offset of an element: by Horner's scheme from the slowest axis to the fastest, or by the given strides."""
    at: Expr = index(0)
    for axis in order:
        at = plus(at, times(indices[axis], strides[axis])) if strides else plus(times(at, shape[axis]), indices[axis])
    return at


def distance(axis: int, shape: tuple[Expr, ...], order: tuple[int, ...], strides: tuple[Expr, ...] = ()) -> Expr:
    """The stride of an axis in elements."""
    if strides:
        return strides[axis]
    return product(tuple([shape[a] for a in order[order.index(axis) + 1:]]))


def folded(node: Node) -> Node:
    """Fold the constants that unrolling creates: integer operators on constants, x + 0, x · 1 and x · 0 of indices, and
    decided conditions."""
    memo: dict[Node, Node] = {}

    def go(n: Node) -> Node:
        if n not in memo:
            new: Node = n.map(go)
            memo[n] = _fold(new) if isinstance(new, Op) else new
        return memo[n]
    return go(node)


def _fold(op: Op) -> Expr:
    if op.fn == "where" and isinstance(op.args[0], Const):
        return op.args[1] if op.args[0].value else op.args[2]
    if op.fn in ("and", "or") and op.dtype == "bool" and op.lanes == 1:
        return LOGIC.once(op)
    if op.fn in ("add", "mul") and op.dtype == "i64" and op.lanes == 1:
        a, b = op.args
        if isinstance(a, Const) or isinstance(b, Const):
            return plus(a, b) if op.fn == "add" else times(a, b)
    if all(isinstance(a, Const) for a in op.args) and op.dtype in ("i64", "bool"):
        fn = function(op.fn, op.args[-1].dtype)
        if fn is not None and all(a.dtype in ("i64", "bool") for a in op.args):
            return Const(fn(*[a.value for a in op.args if isinstance(a, Const)]), op.dtype)
    return op

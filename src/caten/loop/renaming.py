"""Statements over arrays of other names, and which arrays can take the place of others."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.expr import Expr
from ..core.node import Node
from ..core.program import Buffer
from .affine import canonical
from .statements import Address, Local, Ref, Stmt

BY_BYTES = ("bool", "i4", "u4")        # elements that the caller's arrays hold in another form than those of caten


def renamed_arrays(stmts: tuple[Stmt, ...], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    """The statements, with other arrays in the place of those in `names`."""
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            new: Any = n.map(go)
            memo[n] = new.replace(buffer=names[new.buffer]) if (
                isinstance(new, Ref | Address) and new.buffer in names) else new
        return memo[n]
    return tuple([go(s) for s in stmts]) if names else stmts


def shifted_arrays(stmts: tuple[Stmt, ...], starts: Mapping[str, tuple[Expr, ...]]) -> tuple[Stmt, ...]:
    """The statements, with the elements of arrays that are so much further on along each axis."""
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            new: Any = n.map(go)
            memo[n] = new.replace(index=tuple([canonical(i + s) for i, s in zip(new.index, starts[new.buffer],
                                                                                strict=True)])) if (
                isinstance(new, Ref) and new.buffer in starts) else new
        return memo[n]
    return tuple([go(s) for s in stmts]) if starts else stmts


def array_kind(array: Node) -> tuple[Any, ...]:
    """What the code of a kernel depends on of an array outside of it: its element type, shape, order and strides."""
    match array:
        case Buffer():
            return array.type, array.axes, array.axes_in_memory, array.strides, array.type in BY_BYTES
        case Local():
            return array.type, array.shape, tuple(range(len(array.shape))), (), False
    return (array,)

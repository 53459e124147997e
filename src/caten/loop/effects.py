"""Side effects: the buffers that a node reads and those that it writes."""
from __future__ import annotations

from collections.abc import Iterable

from ..core.node import Node, kept
from .statements import Address, Aref, ExternCall, For, If, Incf, Prefetch, Setf, Stmt, Transpose, Vref

NOTHING: frozenset[str] = frozenset()


@kept
def reads(node: Node) -> frozenset[str]:
    """The buffers whose elements an expression or statement reads (an accumulation reads its target)."""
    match node:
        case Setf(ref, value) | Transpose(ref, value=value):
            return _all_reads(ref.children) | reads(value)
        case Prefetch(ref):
            return _all_reads(ref.children)
        case Aref() | Vref():
            return _all_reads(node.children) | {node.buffer}
        case Address(buffer, how):
            return NOTHING if how == "write" else frozenset((buffer,))
    return _all_reads(node.children)


def _all_reads(nodes: Iterable[Node]) -> frozenset[str]:
    return NOTHING.union(*map(reads, nodes))


@kept
def writes(node: Stmt) -> frozenset[str]:
    """The buffers that a statement writes."""
    match node:
        case Setf(ref) | Incf(ref) | Transpose(ref):
            return frozenset((ref.buffer,)) if isinstance(ref, Aref | Vref) else NOTHING
        case ExternCall(args=args):
            return frozenset([a.buffer for a in args if isinstance(a, Address) and a.how != "read"])
    return written([c for c in node.children if isinstance(c, Stmt)])


def written(stmts: Iterable[Stmt]) -> frozenset[str]:
    """The buffers that a list of statements writes."""
    return NOTHING.union(*map(writes, stmts))


@kept
def loop_names(node: Stmt) -> frozenset[str]:
    """The loop variables of a statement, its own included."""
    own = frozenset([node.name]) if isinstance(node, For) else NOTHING
    return own.union(*map(loop_names, [c for c in node.children if isinstance(c, For | If)]))

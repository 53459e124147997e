"""Which buffers a node reads and which it writes."""
from __future__ import annotations

from collections.abc import Iterable

from ..core.node import Node
from .statements import Aref, For, If, Incf, Prefetch, Setf, Stmt, Transpose, Vref

NOTHING: frozenset[str] = frozenset()


def reads(node: Node) -> frozenset[str]:
    """The buffers whose elements an expression or statement reads (an accumulation reads its target)."""
    known: frozenset[str] | None = node.__dict__.get("_reads")
    if known is None:
        found = NOTHING
        match node:
            case Setf(ref, value) | Transpose(ref, value=value):
                found = _all_reads(ref.children) | reads(value)
            case Prefetch(ref):
                found = _all_reads(ref.children)
            case Aref() | Vref():
                found = _all_reads(node.children) | {node.buffer}
            case _:
                found = _all_reads(node.children)
        known = node.__dict__["_reads"] = found
    return known


def _all_reads(nodes: Iterable[Node]) -> frozenset[str]:
    return NOTHING.union(*[reads(n) for n in nodes])


def writes(node: Stmt) -> frozenset[str]:
    """The buffers that a statement writes."""
    known: frozenset[str] | None = node.__dict__.get("_writes")
    if known is None:
        match node:
            case Setf(ref) | Incf(ref) | Transpose(ref):
                known = frozenset((ref.buffer,)) if isinstance(ref, Aref | Vref) else NOTHING
            case _:
                known = written([c for c in node.children if isinstance(c, Stmt)])
        node.__dict__["_writes"] = known
    return known


def written(stmts: Iterable[Stmt]) -> frozenset[str]:
    """The buffers that a list of statements writes."""
    return NOTHING.union(*[writes(s) for s in stmts])


def loop_names(node: Stmt) -> frozenset[str]:
    """The variables of the loops in a statement, and its own."""
    known: frozenset[str] | None = node.__dict__.get("_loop_names")
    if known is None:
        own = frozenset([node.name]) if isinstance(node, For) else NOTHING
        known = node.__dict__["_loop_names"] = own.union(*[loop_names(c) for c in node.children if isinstance(c, For | If)])
    return known

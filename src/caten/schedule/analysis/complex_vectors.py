"""Complex numbers in vectors: their parts are, where statements read and write them as parts."""
from __future__ import annotations

from ...core.dtypes import is_complex
from ...core.expr import Expr, Op, Var
from ...core.node import Node
from ...loop.statements import Aref, Setf


def is_in_parts(node: Node) -> bool:
    """Do statements read elements of complex arrays by `real` and `imag` alone, and set them by `complex`?"""
    return all(not isinstance(child, Expr) or not is_complex(child.dtype) or _is_part(child, parent)
               for parent in node.unique() for child in parent.children)


def _is_part(child: Expr, parent: Node) -> bool:
    if isinstance(parent, Setf):
        return isinstance(child, Aref) if child is parent.ref else isinstance(child, Op) and child.fn == "complex"
    return isinstance(child, Aref | Var) and isinstance(parent, Op) and parent.fn in ("real", "imag")

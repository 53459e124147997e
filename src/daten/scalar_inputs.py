"""Inputs of an operator that are passed by value, as arrays without axes, which they are in a graph."""
from __future__ import annotations

from collections.abc import Sequence

from caten.core.expr import Expr, Var
from caten.core.node import Node, substitute
from caten.core.program import Buffer, Scalar
from caten.frontend.op import OpProgram
from caten.tensor.values import Axis, Define, FailIf, Named, Nest, Read, Scatter, shapes_of


def with_indices_as_arrays(op: OpProgram) -> OpProgram:
    """An operator whose scalars in indices are arrays without axes: their values are not known when a call of a graph
    begins, so that each access checks them. Scalars on which an extent or a condition depends stay, and those of
    loops."""
    scalars = {Var(s.name, s.type): s for s in op.all(Scalar)}
    values = [] if op.values is None else [d.value for d in op.values.definitions]
    if not scalars or any(isinstance(v, Nest) for v in values):
        return op
    nodes = [n for v in values for n in v.unique()]
    indices = [e for n in nodes if isinstance(n, Read | Scatter) for e in n.index]
    extents: list[Expr] = [e for shapes in map(shapes_of, values) for shape in shapes for e in shape]
    extents += [n.extent for n in nodes if isinstance(n, Axis)]
    facts = [c for c in op.clauses if not isinstance(c, Define | FailIf | Named | Scalar)]
    chosen = [v for v in scalars if _reads(indices, v) and not _reads([*extents, *facts], v)]
    new: dict[Node, Node] = {v: Read(v.name, (), scalars[v].type) for v in chosen}
    params = {scalars[v]: Buffer(v.name, scalars[v].type, (), (), "in") for v in chosen}
    return op.replace(clauses=tuple([
        params.get(c, c) if isinstance(c, Scalar) else c if isinstance(c, Named) else substitute(c, new)
        for c in op.clauses]))


def _reads(nodes: Sequence[Node], v: Var) -> bool:
    return any(n == v for node in nodes for n in node.unique())

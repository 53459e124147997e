"""The order of the axes of a reduction or map: that in which the maps that read it have them.

    (define v0 (reduce f32 ((i N) (j M)) ((p K)) add true (read X j p i)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 j i))))
->  (define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (read X i p j)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 i j))))

A scalar that is accumulated has no order of axes, only the loops around it; an array between two nests has the order in
which it happens to be declared. An output, what a nest reads, and a value that maps read in several orders, stay as
they are.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Expr, Var
from ..core.node import substitute
from .index_maps import with_reads
from .values import Axis, Compute, Define, Named, Read, Reduce, TensorProgram, reads_of, whole_operands_of


def with_ordered_axes(program: TensorProgram, fixed: frozenset[str]) -> TensorProgram:
    """The program with the axes of its reductions and maps in the order of their readers; but for those of `fixed`."""
    definitions = program.definitions
    opaque = fixed | {o.value for o in program.outputs} | {name for d in definitions
                                                           for name in whole_operands_of(d.value)}
    found: dict[str, set[tuple[int, ...]]] = {}
    orders: dict[str, tuple[int, ...]] = {}
    for d in reversed(definitions):                          # readers first: their own axes have their order
        if isinstance(d.value, Reduce | Compute) and d.name not in opaque and len(found.get(d.name, ())) == 1:
            (order,) = found[d.name]
            if order not in ((), tuple(range(len(d.value.axes)))):
                orders[d.name] = order
        if isinstance(d.value, Compute):
            axes = tuple([d.value.axes[n] for n in orders.get(d.name, range(len(d.value.axes)))])
            for r in reads_of(d.value):
                found.setdefault(r.buffer, set()).add(_order(r, axes))
    if not orders:
        return program

    def reordered(read: Read) -> Read:
        order = orders.get(read.buffer)
        return read if order is None else read.replace(index=tuple([read.index[n] for n in order]))
    made = tuple([d.replace(value=with_reads(d.value if d.name not in orders else _permuted(d.value, orders[d.name]),
                                             reordered)) if d.names else d for d in definitions])
    named = tuple([n if n.value not in orders else n.replace(axes=(
        *[n.axes[k] for k in orders[n.value]], *n.axes[len(orders[n.value]):])) for n in program.all(Named)])
    return program.replace(clauses=(*program.without(Define, Named).clauses, *named, *made))


def _order(read: Read, axes: Sequence[Axis]) -> tuple[int, ...]:
    """The axes of what is read, in the order of the reader's axes; () if they are not axes of the reader."""
    own = {a.name: n for n, a in enumerate(axes)}
    at = [own.get(i.name, -1) if isinstance(i, Var) else -1 for i in read.index]
    return () if -1 in at or len(set(at)) < len(at) else tuple(sorted(range(len(at)), key=at.__getitem__))


def _permuted(value: object, order: tuple[int, ...]) -> Reduce | Compute:
    """A value with its axes in another order."""
    assert isinstance(value, Reduce | Compute)
    axes = tuple([a.replace(extent=value.axes[n].extent) for a, n in zip(value.axes, order, strict=True)])
    new: dict[Expr, Expr] = {value.axes[n].var: a.var for a, n in zip(axes, order, strict=True)}
    if isinstance(value, Compute):
        return value.replace(axes=axes, expr=substitute(value.expr, new))
    return value.replace(axes=axes, cond=substitute(value.cond, new), expr=substitute(value.expr, new))

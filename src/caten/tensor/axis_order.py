"""The order of the axes of a reduction: that in which the maps that read it have them.

    (define v0 (reduce f32 ((i N) (j M)) ((p K)) add true (read X j p i)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 j i))))
->  (define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (read X i p j)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 i j))))

A scalar that is accumulated has no order of axes, only the loops around it. An output, what a nest reads, and a value
that maps read in several orders, stay as they are.
"""
from __future__ import annotations

from ..core.expr import Var
from ..core.node import substitute
from .index_maps import with_reads
from .values import Compute, Define, Named, Read, Reduce, TensorProgram, reads_of, whole_operands_of


def with_ordered_axes(program: TensorProgram, fixed: frozenset[str]) -> TensorProgram:
    """The program with the axes of its reductions in the order of their readers; but for those of `fixed`."""
    definitions = program.definitions
    opaque = fixed | {o.value for o in program.outputs} | {name for d in definitions
                                                           for name in whole_operands_of(d.value)}
    found: dict[str, set[tuple[int, ...]]] = {}
    for d in definitions:
        if isinstance(d.value, Compute):
            for r in reads_of(d.value):
                found.setdefault(r.buffer, set()).add(_order(r, d.value))
    orders = {d.name: order for d in definitions if isinstance(d.value, Reduce) and d.name not in opaque
              for order in found.get(d.name, ()) if len(found[d.name]) == 1
              and order not in ((), tuple(range(len(d.value.axes))))}
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


def _order(read: Read, reader: Compute) -> tuple[int, ...]:
    """The axes of what is read, in the order of the reader's axes; () if they are not axes of the reader."""
    own = {a.name: n for n, a in enumerate(reader.axes)}
    at = [own.get(i.name, -1) if isinstance(i, Var) else -1 for i in read.index]
    return () if -1 in at or len(set(at)) < len(at) else tuple(sorted(range(len(at)), key=at.__getitem__))


def _permuted(value: object, order: tuple[int, ...]) -> Reduce:
    """A reduction with its axes in another order."""
    assert isinstance(value, Reduce)
    axes = tuple([a.replace(extent=value.axes[n].extent) for a, n in zip(value.axes, order, strict=True)])
    new = {value.axes[n].var: a.var for a, n in zip(axes, order, strict=True)}
    return value.replace(axes=axes, cond=substitute(value.cond, new), expr=substitute(value.expr, new))

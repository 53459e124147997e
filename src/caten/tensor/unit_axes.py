"""Values without axes of extent 1, as reductions with `keepdims` have them.

    (define v0 (reduce f32 ((i M) (j 1)) ((p N)) add true (read X i p)))
    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (read v0 i 0))))
->  (define v0 (reduce f32 ((i M)) ((p N)) add true (read X i p)))
    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (read v0 i))))

Outputs, and what a scatter or a nest reads, stay as they are.
"""
from __future__ import annotations

from ..core.expr import Expr, index
from ..core.node import Node, substitute
from .index_maps import in_canonical_form, with_reads
from .values import (
    AxisNames,
    Compute,
    Define,
    Named,
    Read,
    Reduce,
    TensorProgram,
    Value,
    shapes_of,
    whole_operands_of,
)

ZERO, ONE = index(0), index(1)


def without_unit_axes(program: TensorProgram, names: AxisNames) -> TensorProgram:
    """The program with axes of extent 1 in outputs alone."""
    fixed = {o.value for o in program.outputs} | {name for d in program.definitions
                                                  for name in whole_operands_of(d.value)}
    kept: dict[str, tuple[int, ...]] = {}                # the axes that stay, of values with others
    for d in program.definitions:
        if isinstance(d.value, Compute | Reduce) and d.name not in fixed:
            axes = tuple([n for n, a in enumerate(d.value.axes) if a.extent is not ONE])
            if len(axes) < len(d.value.axes):
                kept[d.name] = axes
    if not kept:
        return program

    def shorter(read: Read) -> Read:
        axes = kept.get(read.buffer)
        return read if axes is None else read.replace(index=tuple([read.index[n] for n in axes]))
    made = tuple([d.replace(value=_without(with_reads(d.value, shorter), kept[d.name], names) if d.name in kept
                            else with_reads(d.value, shorter)) for d in program.definitions])
    ranks = {d.name: len(shapes_of(d.value)[0]) for d in program.definitions if d.name in kept}
    named = tuple([n.replace(axes=(*[n.axes[k] for k in kept[n.value]], *n.axes[ranks[n.value]:]))
                   if n.value in kept else n for n in program.all(Named)])
    clauses = [c for c in program.clauses if not isinstance(c, Define | Named)]
    return program.replace(clauses=(*clauses, *named, *made))


def _without(value: Value, kept: tuple[int, ...], names: AxisNames) -> Value:
    """A map or a reduction with some of its axes, by their canonical names; the others are at 0."""
    assert isinstance(value, Compute | Reduce)
    axes = names.axes([value.axes[n].extent for n in kept])
    new: dict[Node, Expr] = {a.var: ZERO for a in value.axes}
    new |= {value.axes[n].var: a.var for n, a in zip(kept, axes, strict=True)}
    made = value.replace(axes=axes, expr=in_canonical_form(substitute(value.expr, new)))
    if isinstance(value, Reduce):
        made = made.replace(cond=in_canonical_form(substitute(value.cond, new)))
    return made

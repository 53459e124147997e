"""Values without axes of extent 1, as reductions with `keepdims` have them, and without sums of one term.

    (define v0 (reduce f32 ((i M) (j 1)) ((p N)) add true (read X i p)))
    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (read v0 i 0))))
->  (define v0 (reduce f32 ((i M)) ((p N)) add true (read X i p)))
    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (read v0 i))))

Outputs, and what a scatter or a nest reads, keep their axes.
"""
from __future__ import annotations

from ..core.expr import TRUE, Expr, index
from ..core.node import Node, substitute
from ..frozen import frozen
from .index_maps import in_canonical_form, with_reads
from .values import (
    Axis,
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
    program = without_sums_of_one_term(program, names)
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


def without_sums_of_one_term(program: TensorProgram, names: AxisNames) -> TensorProgram:
    """Reductions over the axes that have several terms; the term itself where none has."""
    made: dict[Define, Define] = {}
    several: dict[str, tuple[int, ...]] = {}              # the reduced axes that stay
    for d in program.definitions:
        match d.value:
            case Reduce(type=dtype, over=over, cond=cond, expr=expr) if cond is TRUE and expr.dtype == dtype and any(
                    a.extent is ONE for a in over):
                several[d.name] = tuple([n for n, a in enumerate(over) if a.extent is not ONE])
                made[d] = d.replace(value=_of_terms(d.value, several[d.name], names))
    if not made:
        return program
    ranks = {d.name: len(d.value.axes) for d in made if isinstance(d.value, Reduce)}
    named = {n: n.replace(axes=(*n.axes[:ranks[n.value]], *[n.axes[ranks[n.value] + k] for k in several[n.value]]))
             for n in program.all(Named) if n.value in several}
    return program.replace(clauses=tuple([made[c] if isinstance(c, Define) and c in made else
                                          named.get(c, c) if isinstance(c, Named) else c for c in program.clauses]))


@frozen
class Mapped:
    """A map over other axes: its own, but for axes of extent 1. `kept`: where these are among its own."""

    value: Compute
    kept: tuple[int, ...]


def mapped_over(value: Compute, axes: tuple[Axis, ...]) -> Mapped | None:
    """A map over `axes`; None if these are not its own axes, or those with other extents than 1."""
    if value.axes == axes:
        return Mapped(value, tuple(range(len(axes))))
    kept = tuple([n for n, a in enumerate(value.axes) if a.extent is not ONE])
    if [value.axes[n].extent for n in kept] != [a.extent for a in axes]:
        return None
    new = _places(value.axes, kept, axes)
    return Mapped(value.replace(axes=axes, expr=in_canonical_form(substitute(value.expr, new))), kept)


def _places(old: tuple[Axis, ...], kept: tuple[int, ...], axes: tuple[Axis, ...]) -> dict[Node, Expr]:
    """What the variables of axes become if some are kept, under the names of `axes`: the others are at 0."""
    new: dict[Node, Expr] = {a.var: ZERO for a in old}
    return new | {old[n].var: a.var for n, a in zip(kept, axes, strict=True)}


def _of_terms(value: Reduce, several: tuple[int, ...], names: AxisNames) -> Value:
    over = names.over([value.over[n].extent for n in several])
    expr = in_canonical_form(substitute(value.expr, _places(value.over, several, over)))
    return value.replace(over=over, expr=expr) if over else Compute(value.type, value.axes, expr)


def _without(value: Value, kept: tuple[int, ...], names: AxisNames) -> Value:
    """A map or a reduction with some of its axes, by their canonical names; the others are at 0."""
    assert isinstance(value, Compute | Reduce)
    axes = names.axes([value.axes[n].extent for n in kept])
    new = _places(value.axes, kept, axes)
    made = value.replace(axes=axes, expr=in_canonical_form(substitute(value.expr, new)))
    if isinstance(value, Reduce):
        made = made.replace(cond=in_canonical_form(substitute(value.cond, new)))
    return made

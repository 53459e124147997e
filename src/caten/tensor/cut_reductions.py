"""Reductions of which only a part is read are computed for that part.

    (define v0 (reduce f32 ((i (+ N 30))) ((p 31)) add cond (* (read x (- i p)) (read h p))))
    (define v1 (compute f32 ((i N)) (read v0 (+ i 15))))                     the middle of a convolution
->  (define v0 (reduce f32 ((i N)) ((p 31)) add cond (* (read x (- (+ i 15) p)) (read h p))))
    (define v1 (compute f32 ((i N)) (read v0 i)))

So the rest is neither computed nor stored, and the map that reads the part is one with the reduction. The part must be
shown to lie inside: elements beside it, which a condition keeps from being read, may not exist.
"""
from __future__ import annotations

from collections import Counter

from ..core.expr import Expr, Op, index
from ..core.node import substitute
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.context import Context
from .fusion_requests import values_asked_for
from .index_maps import in_canonical_form, with_reads
from .values import Axis, Compute, Define, FusedKernel, Read, Reduce, TensorProgram, reads_of, whole_operands_of


@frozen
class Part:
    """A part of a reduction: the axis of the map that reads it for each of its axes, and where it begins along it."""

    axes: tuple[Axis, ...]
    starts: tuple[Expr, ...]


def with_cut_reductions(program: TensorProgram) -> TensorProgram:
    """The program with reductions over the elements that are read. One that has its kernels already stays as it is."""
    if program.first(FusedKernel) is not None:
        return program
    parts = _parts(program)
    if not parts:
        return program

    def inside(read: Read) -> Read:
        part = parts.get(read.buffer)
        return read if part is None else read.replace(index=tuple([a.var for a in part.axes]))
    changed: dict[object, Define] = {}
    for d in program.definitions:
        if isinstance(d.value, Reduce) and d.name in parts:
            changed[d] = d.replace(value=_cut(d.value, parts[d.name]))
        elif isinstance(d.value, Compute) and any(r.buffer in parts for r in reads_of(d.value)):
            changed[d] = d.replace(value=with_reads(d.value, inside))
    return program.replace(clauses=tuple([changed.get(c, c) for c in program.clauses]))


def _parts(program: TensorProgram) -> dict[str, Part]:
    """The parts of reductions that are read, each by one map in one place, if they are smaller than the whole."""
    reductions = {d.name: d.value for d in program.definitions if isinstance(d.value, Reduce)}
    reads = [(c, r) for c in program.clauses for r in reads_of(c) if r.buffer in reductions]
    if not reads:
        return {}
    count = Counter([r.buffer for _, r in reads])
    fixed = {*program.results, *values_asked_for(program)}
    fixed.update([name for d in program.definitions for name in whole_operands_of(d.value)])
    context, parts = Context.of(program), dict[str, Part]()
    for reader, read in reads:
        name = read.buffer
        if count[name] == 1 and name not in fixed and isinstance(reader, Define) and isinstance(reader.value, Compute):
            part = _part(reductions[name], read, reader.value, context)
            if part is not None:
                parts[name] = part
    return parts


def _part(value: Reduce, read: Read, reader: Compute, context: Context) -> Part | None:
    """The part of a reduction that a map reads; None if that is all of it, or no box in the order of its axes."""
    found: list[tuple[Axis, Expr]] = []
    for whole, at in zip(value.axes, read.index, strict=True):
        axes = [a for a in reader.axes if a.name in at.variables]
        if len(axes) != 1 or axes[0] in [a for a, _ in found]:
            return None
        start = canonical(at - axes[0].var)
        if axes[0].name in start.variables or reads_of(start):
            return None
        if start is not index(0) or canonical(axes[0].extent) is not canonical(whole.extent):
            ends = Op("le", (start + axes[0].extent, whole.extent))
            if not (context.proves(Op("le", (index(0), start))) and context.proves(ends)):
                return None
        found.append((axes[0], start))
    axes, starts = [a for a, _ in found], [s for _, s in found]
    if [canonical(a.extent) for a in axes] == [canonical(a.extent) for a in value.axes]:
        return None
    return Part(tuple(axes), tuple(starts))


def _cut(value: Reduce, part: Part) -> Reduce:
    """A reduction for a part of its elements."""
    at = {own.var: own.var + start for own, start in zip(value.axes, part.starts, strict=True) if start is not index(0)}
    axes = [own.replace(extent=read.extent) for own, read in zip(value.axes, part.axes, strict=True)]
    return value.replace(axes=tuple(axes), cond=in_canonical_form(substitute(value.cond, at)),
                         expr=in_canonical_form(substitute(value.expr, at)))

"""Invariants: what the formula of a value computes again along an axis on which it does not depend is a value of its
own, if it costs much.

    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (log (read v0 i)))))
->  (define v1 (compute f32 ((i M)) (log (read v0 i))))
    (define v2 (compute f32 ((i M) (j N)) (- (read X i j) (read v1 i))))

A whole-array body computes `log(s)` before it is broadcast, a loop nest writes it in the inner loop: both are the same
values. An invariant is as large as can be: a map that one value reads at one index is part of it. What could fail where
the axis is empty stays where it is: anything but arithmetic over elements that the axes index by themselves.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.dtypes import DTYPES
from ..core.expr import Const, Conversion, Expr, Op, Var
from ..core.node import substitute
from ..loop.affine import canonical
from .index_maps import CHEAP, axes_of, cost, element, is_small, replaced
from .values import (
    Axis,
    AxisNames,
    Compute,
    Define,
    Inside,
    Nest,
    Pieces,
    Read,
    Reduce,
    Scan,
    TensorProgram,
    Value,
    reads_of,
    shapes_of,
    whole_operands_of,
)

TOTAL = frozenset(("float", "bool", "int", "uint"))  # the kinds of types whose operators are defined for all operands


def with_invariants(program: TensorProgram, kept: frozenset[str], names: AxisNames) -> TensorProgram:
    """The program with a definition for each invariant, before the first value that reads it. `kept`: values that stay
    as they are. `names`: of axes."""
    moving = _Moving(program, kept, names)
    made = tuple([each for d in program.definitions for each in moving.definitions(d)])
    if made == program.definitions:
        return program
    return program.replace(clauses=(*program.without(Define).clauses, *made))


class _Moving:
    """The invariants so far: the name of each."""

    def __init__(self, program: TensorProgram, kept: frozenset[str], names: AxisNames) -> None:
        self.axis_names = names
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.axes for b in program.buffers.values()}
        self.names: dict[Value, str] = {}
        self.maps: dict[str, Compute] = {}                # those of which the one reader computes an invariant
        self.alone = _read_alone(program) - kept - set(program.results)

    def definitions(self, d: Define) -> Iterator[Define]:
        """A definition, after those of its invariants."""
        value = d.value
        own: dict[Expr, Read] = {}                        # maps that are part of the value: where it read them
        if isinstance(value, Compute | Reduce | Scan):
            value = value.replace(expr=self.with_maps(value.expr, axes_of(value), own))
            if d.name in self.alone and isinstance(value, Compute) and cost(value.expr) > CHEAP and is_small(
                    value.expr) and is_total(value.expr, extents_of(value.axes), self.shapes):
                self.maps[d.name] = value
        if isinstance(value, Compute | Reduce | Scan) and cost(value.expr) > CHEAP:
            found = dict.fromkeys(_invariants(value.expr, axes_of(value), self.shapes))
            new: dict[Expr, Expr] = {}
            for e in found:
                if e in own:
                    new[e] = own[e]
                    continue
                axes, part = self.part(e, axes_of(value))
                if part not in self.names:
                    self.names[part] = f"(invariant {len(self.names)})"
                    yield from self.definitions(Define((self.names[part],), part))
                new[e] = Read(self.names[part], tuple([a.var for a in axes]), e.dtype)
            if new:
                value = value.replace(expr=substitute(value.expr, new))
        if not isinstance(value, Nest):
            self.shapes |= dict.fromkeys(d.names, shapes_of(value)[0])
        yield d.replace(value=value)

    def with_maps(self, e: Expr, axes: tuple[Axis, ...], own: dict[Expr, Read]) -> Expr:
        """A formula with the maps of which it computes an invariant; `own` gets where it read them."""
        extents = extents_of(axes)

        def whole(read: Read) -> Expr:
            source = self.maps.get(read.buffer)
            if source is None or not (_varies_less(read, axes) and is_total(read, extents, self.shapes)):
                return read
            made = element(source, read.index)
            own[made] = read
            return made
        return replaced(e, whole) if any(n.buffer in self.maps for n in reads_of(e)) else e

    def part(self, e: Expr, axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], Compute]:
        """The map of an invariant, and the axes at which it is read."""
        used = axes_in_order(e, axes)
        own = self.axis_names.axes([a.extent for a in used])
        return used, Compute(e.dtype, own, substitute(e, {a.var: b.var for a, b in zip(used, own, strict=True)}))


def _invariants(e: Expr, axes: tuple[Axis, ...], shapes: Mapping[str, tuple[Expr, ...]]) -> Iterator[Expr]:
    """The largest parts of an expression that are worth a value of their own."""
    stack, seen = [e], set[Expr]()
    while stack:
        part = stack.pop()
        if part in seen or cost(part) <= CHEAP or _is_guard(part):
            continue
        seen.add(part)
        if isinstance(part, Read):                   # an index that is checked, and not shown to be inside
            stack += [i.index for i in part.index if isinstance(i, Inside)]
            continue
        if _varies_less(part, axes) and is_total(part, extents_of(axes), shapes):
            yield part
            continue
        if not isinstance(part, Pieces):
            stack += [n for n in part.children if isinstance(n, Expr)]


def _is_guard(part: Expr) -> bool:
    """Is it a condition on the axes alone? It may be what shows that an element exists, and does not once it is read
    from an array."""
    return part.dtype == "bool" and not reads_of(part)


def _read_alone(program: TensorProgram) -> set[str]:
    """The values that one other reads, at one index."""
    found: dict[str, list[Read]] = {}
    for d in program.definitions:
        for r in (() if isinstance(d.value, Nest) else reads_of(d.value)):
            found.setdefault(r.buffer, []).append(r)
        for name in whole_operands_of(d.value):
            found.setdefault(name, []).extend([Read(name, (), "f32")] * 2)
    return {name for name, reads in found.items() if len(reads) == 1}


def axes_in_order(e: Expr, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Those of the axes along which an expression varies, in the order in which it names them."""
    by_name = {a.name: a for a in axes}
    return tuple([by_name[v.name] for v in e.unique() if isinstance(v, Var) and v.name in by_name])


def extents_of(axes: tuple[Axis, ...]) -> dict[str, Expr]:
    """By the name of the axis."""
    return {a.name: a.extent for a in axes}


def _varies_less(e: Expr, axes: tuple[Axis, ...]) -> bool:
    """Does it vary along some of the axes, but not along all that are longer than 1?"""
    used = [a.name in e.variables for a in axes]
    return any(used) and not all(u or (isinstance(a.extent, Const) and a.extent.value == 1)
                                 for u, a in zip(used, axes, strict=True))


def is_total(e: Expr, extents: Mapping[str, Expr], shapes: Mapping[str, tuple[Expr, ...]]) -> bool:
    """Is it defined for all indices, whatever the elements are?"""
    for n in e.unique():
        match n:
            case Read(name, index):
                shape = shapes.get(name)
                if shape is None or not all(isinstance(i, Var) and i.name in extents
                                            and canonical(extents[i.name]) is canonical(extent)
                                            for i, extent in zip(index, shape, strict=True)):
                    return False
            case Op() | Conversion():
                if DTYPES[n.dtype].kind not in TOTAL or any(
                        DTYPES[c.dtype].kind not in TOTAL for c in n.children if isinstance(c, Expr)):
                    return False
            case Const() | Var():
                pass
            case _:
                return False
    return True

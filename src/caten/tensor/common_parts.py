"""Common parts: what the formulas of several values have in common is a value of its own, if it costs less to store it
than to compute it again. So is an operand of a contraction, which reads each of its elements several times.

    (define v1 (reduce f32 ((i M)) ((p N)) add true (exp (- (read X i p) (read v0 i)))))
    (define v2 (compute f32 ((i M) (j N)) (/ (exp (- (read X i j) (read v0 i))) (read v1 i))))
->  (define v1 (compute f32 ((i M) (j N)) (exp (- (read X i j) (read v0 i)))))
    (define v2 (reduce f32 ((i M)) ((p N)) add true (read v1 i p)))
    (define v3 (compute f32 ((i M) (j N)) (/ (read v1 i j) (read v2 i))))

A whole-array body has the exponentials as a variable, or writes them twice, which is one value already (`ValueTable`);
loops often compute them in each loop. Parts are equal if they are the same formula with the same extents, whatever the
axes are called and in whatever order their loops are. Small parts come first: of `(x + r) - m[i]`, read by several
values, `x + r` is stored, and the difference is computed. What could fail where one of the readers has no elements
stays where it is, as invariants do.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.expr import TRUE, Conversion, Expr, Op, Var
from ..core.node import substitute
from ..frozen import frozen
from .fusion import is_contraction, why_stored
from .index_maps import CHEAP, axes_of, cost, is_small, uses_of
from .invariants import axes_in_order, extents_of, is_total
from .values import (
    Axis,
    AxisNames,
    Compute,
    Define,
    Nest,
    Pieces,
    Read,
    Reduce,
    Scan,
    TensorProgram,
    shapes_of,
)


def with_common_parts(program: TensorProgram, kept: frozenset[str], names: AxisNames) -> TensorProgram:
    """The program with a definition for each common part, before the first value that reads it. `kept`: values that
    stay as they are. `names`: of axes."""
    sharing = _Sharing(kept, names)
    while (made := sharing.with_smallest_parts(program)) is not program:
        program = made
    return program


@frozen
class _Place:
    """Where a part occurs: in the formula of a definition, with the definition's axes in the order of the part's."""
    definition: Define
    part: Expr
    axes: tuple[Axis, ...]

    @property
    def is_whole(self) -> bool:
        """Is the part all of a map?"""
        value = self.definition.value
        return isinstance(value, Compute) and value.expr is self.part and len(value.axes) == len(self.axes)

    @property
    def is_operand(self) -> bool:
        """Is the part an operand of a contraction, which computes it several times?"""
        return _is_operand(self.part, self.definition)

    def read(self, name: str, order: Sequence[int]) -> Read:
        """What the definition reads instead. `order`: which axes of the part are those of the value `name`."""
        return Read(name, tuple([self.axes[n].var for n in order]), self.part.dtype)


class _Sharing:
    def __init__(self, kept: frozenset[str], names: AxisNames) -> None:
        self.kept, self.axis_names = kept, names
        self.count = 0
        self.outlines: dict[Expr, Expr] = {}

    def with_smallest_parts(self, program: TensorProgram) -> TensorProgram:
        """The program with the smallest of the common parts as values; the same program if there are none."""
        groups = self.groups(program)
        if not groups:
            return program
        uses = uses_of([d.value for d in program.definitions])
        shapes = {b.name: b.axes for b in program.buffers.values()} | {
            d.name: shapes_of(d.value)[0] for d in program.definitions if d.names and not isinstance(d.value, Nest)}
        values = {name: d.value for d in program.definitions for name in d.names}
        changes: dict[Define, dict[Expr, Expr]] = {}
        first: dict[Define, list[Define]] = {}            # new definitions before another one
        for part, places in groups.items():
            done = changes.get(places[0].definition, {})
            if any(n in done for n in places[0].part.unique()) or not is_total(
                    part.expr, extents_of(part.axes), shapes):
                continue
            whole = next((p for p in places if p.is_whole), None)
            others = [p for p in places if p is not whole]
            if whole is None:
                name, order = f"(part {self.count})", tuple(range(len(part.axes)))
            else:
                name = whole.definition.name
                order = tuple([whole.axes.index(a) for a in axes_of(whole.definition.value)])
            reads = [(p.definition.value, p.read(name, order)) for p in others]
            is_stored = name in program.results and cost(part.expr) > CHEAP
            if not (is_stored or why_stored(part, [*uses.get(name, ()), *reads], values, uses)):
                continue
            for p, (_, read) in zip(others, reads, strict=True):
                changes.setdefault(p.definition, {})[p.part] = read
            if whole is None:
                self.count += 1
                first.setdefault(places[0].definition, []).append(Define((name,), part))
        if not changes:
            return program
        made: list[Define] = []
        for d in program.definitions:
            made += first.get(d, ())
            if d in changes:
                assert isinstance(d.value, Compute | Reduce | Scan)
                d = d.replace(value=d.value.replace(expr=substitute(d.value.expr, changes[d])))
            made.append(d)
        return program.replace(clauses=(*program.without(Define).clauses, *made))

    def groups(self, program: TensorProgram) -> dict[Compute, list[_Place]]:
        """The parts that occur at several places, and the operands of contractions, smaller ones first: each as a map,
        with its places. Where one larger part has all places of a part, the larger one is the common part."""
        found: dict[Expr, list[tuple[Define, Expr]]] = {}
        parents: dict[tuple[Define, Expr], list[Expr]] = {}
        for d in program.definitions:
            for part in self.parts(d):
                found.setdefault(self.outline(part), []).append((d, part))
                for n in part.children:
                    if isinstance(n, Expr):
                        parents.setdefault((d, n), []).append(part)
        maps: dict[tuple[Define, Expr], Compute] = {}
        groups: dict[Compute, list[_Place]] = {}
        for similar in found.values():
            for d, part in similar:
                if len(similar) == 1 and not _is_operand(part, d):
                    continue
                place = _Place(d, part, axes_in_order(part, axes_of(d.value)))
                own = self.axis_names.axes([a.extent for a in place.axes])
                maps[d, part] = made = Compute(part.dtype, own, substitute(
                    part, {a.var: b.var for a, b in zip(place.axes, own, strict=True)}))
                groups.setdefault(made, []).append(place)

        def larger(place: _Place) -> Compute | None:
            around = parents.get((place.definition, place.part), [])
            return maps.get((place.definition, around[0])) if len(around) == 1 else None
        shared = [(part, places) for part, places in groups.items() if any(p.is_operand for p in places) or (
            len(places) > 1 and (larger(places[0]) is None or len({larger(p) for p in places}) > 1))]
        return dict(sorted(shared, key=lambda each: each[0].expr.written_out))

    def parts(self, d: Define) -> Iterator[Expr]:
        """The parts of a formula that cost something and vary; not those under a condition of a reduction, which are
        computed for some elements only; and no conditions, which say where accesses are inside of arrays."""
        value = d.value
        if not isinstance(value, Compute | Reduce | Scan) or d.name in self.kept or (
                not isinstance(value, Compute) and value.cond is not TRUE):
            return
        stack, seen = [value.expr], set[Expr]()
        while stack:
            part = stack.pop()
            if part in seen or cost(part) == 0 or isinstance(part, Read | Pieces):
                continue
            seen.add(part)
            if isinstance(part, Op | Conversion) and part.dtype != "bool" and part.variables and is_small(part):
                yield part
            stack += [n for n in part.children if isinstance(n, Expr)]

    def outline(self, e: Expr) -> Expr:
        """An expression with one variable for all axes: parts with different outlines are not equal."""
        if e not in self.outlines:
            self.outlines[e] = Var("axis", e.type) if isinstance(e, Var) else e.map(self.outline)
        return self.outlines[e]


def _is_operand(part: Expr, d: Define) -> bool:
    return isinstance(d.value, Reduce) and is_contraction(d.value) and part in d.value.expr.children

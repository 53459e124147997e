"""Invariants: what the formula of a value computes again along an axis on which it does not depend is a value of its
own, if it costs much.

    (define v1 (compute f32 ((i M) (j N)) (- (read X i j) (log (read v0 i)))))
->  (define v1 (compute f32 ((i M)) (log (read v0 i))))
    (define v2 (compute f32 ((i M) (j N)) (- (read X i j) (read v1 i))))

A whole-array body computes `log(s)` before it is broadcast, a loop nest writes it in the inner loop: both are the same
values. What is only evaluated under a condition stays where it is, and so does what could fail where the axis is empty:
anything but float arithmetic over elements that the axes index by themselves.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.dtypes import DTYPES
from ..core.expr import Const, Conversion, Expr, Op, Var
from ..core.node import substitute
from ..loop.affine import canonical
from .index_maps import CHEAP, axes_of, cost
from .values import Axis, AxisNames, Compute, Define, Nest, Pieces, Read, Reduce, Scan, TensorProgram, Value, shapes_of

TOTAL = frozenset(("float", "bool"))               # the kinds of types whose operators are defined for all operands


def with_invariants(program: TensorProgram, names: AxisNames) -> TensorProgram:
    """The program with a definition for each invariant, before the first value that reads it. `names`: of axes."""
    moving = _Moving(program, names)
    made = tuple([each for d in program.definitions for each in moving.definitions(d)])
    if len(made) == len(program.definitions):
        return program
    return program.replace(clauses=(*program.without(Define).clauses, *made))


class _Moving:
    """The invariants so far: the name of each."""

    def __init__(self, program: TensorProgram, names: AxisNames) -> None:
        self.axis_names = names
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.axes for b in program.buffers.values()}
        self.names: dict[Value, str] = {}

    def definitions(self, d: Define) -> Iterator[Define]:
        """A definition, after those of its invariants."""
        value = d.value
        if isinstance(value, Compute | Reduce | Scan) and cost(value.expr) > CHEAP:
            found = dict.fromkeys(_invariants(value.expr, axes_of(value), self.shapes))
            new: dict[Expr, Expr] = {}
            for e in found:
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

    def part(self, e: Expr, axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], Compute]:
        """The map of an invariant, and the axes at which it is read."""
        used = tuple([a for a in axes if a.name in e.variables])
        own = self.axis_names.axes([a.extent for a in used])
        return used, Compute(e.dtype, own, substitute(e, {a.var: b.var for a, b in zip(used, own, strict=True)}))


def _invariants(e: Expr, axes: tuple[Axis, ...], shapes: Mapping[str, tuple[Expr, ...]]) -> Iterator[Expr]:
    """The largest parts of an expression that are worth a value of their own."""
    stack, seen = [e], set[Expr]()
    while stack:
        part = stack.pop()
        if part in seen or cost(part) <= CHEAP or isinstance(part, Read):
            continue
        seen.add(part)
        if _varies_less(part, axes) and is_total(part, {a.name: a.extent for a in axes}, shapes):
            yield part
            continue
        match part:
            case Op("where", (cond, _, _)):
                stack.append(cond)
            case Pieces():
                pass
            case _:
                stack += [n for n in part.children if isinstance(n, Expr)]


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

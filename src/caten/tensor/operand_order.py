"""The order of the operands of commutative operators and comparisons: the same whichever way round they are written.

    (+ (read b j) (read v0 i j))   ->   (+ (read v0 i j) (read b j))          X @ W + b  and  b + X @ W
    (* 2.0 (exp (read x i)))       ->   (* (exp (read x i)) 2.0)
    (> (read x i) 0.0)             ->   (< 0.0 (read x i))                    a comparison is < or <=

The operand with more axes is first, then the one that costs more (of conditions: less); constants are last. Of two
elements of arrays, the one whose index has the earlier axes is first (rows before columns), or the one nearer to the
start of the array; values come before parameters, sums before maps, and what reads values whose own formulas cost more
before what reads others: a step of a recurrence has a parameter where the next has a value. What is not told apart is
compared by structure, then the values that are read by their own formulas, then what these read by theirs, and at last
by the parameters that are read. The criteria are local, the nearest first, so the layers of a network and the steps of
a recurrence, which differ in what they read far back, have their operands in the same order, and share their kernels.

Indices have the affine normal form instead, and conditions on axes alone stay as they are. A product or a sum that is
rounded has the same result in either order.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.dtypes import is_float
from ..core.expr import Const, Expr, Op, Var
from ..core.program import InOrder
from ..core.scalars import EXCHANGED, OPERATORS
from ..loop.affine import linear
from .index_maps import axes_of, cost
from .invariants import extents_of, is_total
from .values import (
    Compute,
    Define,
    Indexed,
    Nest,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    formulas_of,
    shapes_of,
    with_formulas,
)

KINDS = (Reduce, Scan, Scatter, Nest, Compute)          # of what is read; parameters are last
TABLE = {fn: n for n, fn in enumerate(OPERATORS)}
LEVELS = 2                                              # how far operands are compared by the values that they read


def with_ordered_operands(program: TensorProgram, by_axes: bool) -> TensorProgram:
    """The program with the operands of its commutative operators and comparisons in order. `by_axes`: the axes of
    values have their order, so the operands may have theirs by it. Where floats are accumulated as written
    (`in-order`), the program itself: there the first operand of a sum is where the accumulation starts."""
    if program.first(InOrder) is not None:
        return program
    known = _Known(program)
    made = [d.replace(value=_ordered(d.value, known, by_axes)) if d.names else d for d in program.definitions]
    return program.replace(clauses=(*program.without(Define).clauses, *made))


def _ordered(value: Value, known: _Known, by_axes: bool) -> Value:
    """A value with its operands in order."""
    if not isinstance(value, Indexed):
        return value
    order, memo = _Order(value, known, by_axes), dict[Expr, Expr]()

    def go(e: Expr) -> Expr:
        if e not in memo:
            made: Expr = e if isinstance(e, Read) else e.map(go)
            if isinstance(made, Op) and made.fn in ("gt", "ge"):
                made = made.replace(fn=EXCHANGED[made.fn], args=made.args[::-1])
            memo[e] = order.of(made) if isinstance(made, Op) and OPERATORS[made.fn].commutative else made
        return memo[e]
    return with_formulas(value, go)


class _Known:
    """What the names in a program stand for."""

    def __init__(self, program: TensorProgram) -> None:
        self.parameters = {name: n for n, name in enumerate(program.buffers)}
        self.values = {name: d.value for d in program.definitions for name in d.names}
        self.shapes = {b.name: b.axes for b in program.buffers.values()} | {
            name: shape for d in program.definitions for name, shape in zip(d.names, shapes_of(d.value), strict=True)}
        self.outlines: dict[tuple[Expr, int], Expr] = {}

    def kind(self, name: str) -> int:
        """The place in `KINDS` of what a name stands for."""
        value = self.values.get(name)
        return next((n for n, kind in enumerate(KINDS) if isinstance(value, kind)), len(KINDS))

    def parameters_of(self, e: Expr, levels: int) -> list[int]:
        """The places of the parameters that are read, by values that are read, too, up to so many levels."""
        found: list[int] = []
        for n in e.unique():
            if isinstance(n, Read) and n.buffer in self.parameters:
                found.append(self.parameters[n.buffer])
            elif isinstance(n, Read) and levels > 0:
                for part in formulas_of(self.values.get(n.buffer)):
                    found += self.parameters_of(part, levels - 1)
        return found

    def without_names(self, e: Expr, levels: int) -> Expr:
        """An expression with one name for all variables, and for arrays what they are: of values their formula, up to
        so many levels."""
        known = self.outlines.get((e, levels))
        if known is None:
            match e:
                case Var():
                    known = e.replace(name="(variable)")
                case Read(name, index):
                    value, what = self.values.get(name), str(self.kind(name))
                    if levels > 0:
                        parts = [self.without_names(part, levels - 1).outline for part in formulas_of(value)]
                        what = " ".join([what, getattr(value, "fn", ""), *parts])
                    known = e.replace(buffer=what, index=tuple([self.without_names(i, levels) for i in index]))
                case _:
                    known = e.map(lambda child: self.without_names(child, levels))
            self.outlines[e, levels] = known
        return known


class _Order:
    """The order of two operands in the formulas of one value."""

    def __init__(self, value: Indexed, known: _Known, by_axes: bool) -> None:
        self.known, self.by_axes = known, by_axes
        self.extents = extents_of(axes_of(value))
        self.places = {a.name: n for n, a in enumerate(axes_of(value))}
        self.terms = frozenset([a.name for a in axes_of(value)
                                if isinstance(value, Scatter) or a not in value.axes])

    def of(self, e: Op) -> Op:
        """A commutative operator with its operands in order."""
        if not is_float(e.dtype) and not any(isinstance(n, Read) for n in e.unique()):
            return e
        if e.fn in ("and", "or") and e.dtype == "bool" and not is_total(e, self.extents, self.known.shapes):
            return e                                    # one may be a condition for what the other reads
        first, second = e.args
        return e.replace(args=(second, first)) if self.is_before(second, first) else e

    def is_before(self, a: Expr, b: Expr) -> bool:
        """Is an operand before another one, whichever is written first?"""
        criteria: tuple[Callable[[Expr], Any], ...] = (
            self.is_constant, self.axes_read, self.cost, self.axes, self.offsets, self.kind, self.variables,
            self.cost_of_values, *[partial(self.outline, levels=levels) for levels in range(LEVELS + 1)],
            self.parameters)
        for criterion in criteria:
            x, y = criterion(a), criterion(b)
            if x != y:
                return bool(x < y)
        return False

    # -- criteria: what is less comes first ----------------------------------------------------------------------------

    def is_constant(self, e: Expr) -> bool:
        return isinstance(e, Const)

    def axes_read(self, e: Expr) -> int:
        return -len(self.places.keys() & e.variables)

    def cost(self, e: Expr) -> int:
        return cost(e) if e.dtype == "bool" else -cost(e)

    def axes(self, e: Expr) -> tuple[int, ...]:
        """The axes in the order in which the operand has them, by their places; those of terms are behind."""
        return tuple([len(self.places) if n.name in self.terms else self.places[n.name] if self.by_axes else 0
                      for n in e.unique() if isinstance(n, Var) and n.name in self.places])

    def offsets(self, e: Expr) -> tuple[int, ...]:
        """Of an element: how far its index is from the axes."""
        return tuple([linear(i).constant for i in e.index]) if isinstance(e, Read) else ()

    def kind(self, e: Expr) -> int:
        """Of an element: what it is read from."""
        return self.known.kind(e.buffer) if isinstance(e, Read) else -1

    def cost_of_values(self, e: Expr) -> int:
        """What computing the values that it reads costs, each from what that reads."""
        names = {n.buffer for n in e.unique() if isinstance(n, Read)}
        return -sum([cost(part) for name in names for part in formulas_of(self.known.values.get(name))])

    def variables(self, e: Expr) -> int:
        return len(e.variables)

    def outline(self, e: Expr, levels: int) -> tuple[int, str]:
        """The operator's place in the table, and a digest of the formula without numbers, and the names of arrays and
        axes: the steps of a recurrence differ in them."""
        return TABLE[e.fn] if isinstance(e, Op) else -1, self.known.without_names(e, levels).outline

    def parameters(self, e: Expr) -> list[int]:
        return self.known.parameters_of(e, LEVELS)

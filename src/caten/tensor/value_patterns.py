"""Patterns over values: does a value of a program have the form of a pattern?

A pattern is a program of values with one output. Its parameters are holes: an array stands for an array or a value of
the same type and shape, or for an expression over its indices, which is stored first; a size for an extent; a scalar
for an expression over sizes and scalars. Axes of a map match by position, those of a reduce in any order, and the
operands of commutative operators in both orders.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from ..core.expr import Const, Conversion, Expr, Op, Var
from ..core.node import substitute
from ..core.program import Buffer, Require, Scalar
from ..core.scalars import OPERATORS
from ..loop.affine import canonical
from ..loop.context import Context
from .index_maps import cost
from .values import Axis, AxisNames, Compute, Inside, Pieces, Read, Reduce, TensorProgram, Value, shapes_of, types_of

MOST_STEPS = 20_000             # comparisons of nodes for one value; a pattern that needs more does not match
MOST_ORDERS = 4                 # reduced axes of which all orders are tried
Bound = dict[str, Any]          # hole -> array name, map, or expression; value of the pattern -> value of the program
DEFERRED = "(extents)"          # extents that are formulas: compared when all sizes are known


class Pattern:
    """A pattern, looked for in one program. `addressed`: the holes whose memory a C function gets: they stand for
    arrays that are dense in the declared order."""

    def __init__(self, pattern: TensorProgram, program: TensorProgram, addressed: frozenset[str]) -> None:
        self.pattern, self.program, self.addressed = pattern, program, addressed
        self.holes = pattern.buffers
        self.sizes, self.scalars = frozenset(pattern.sizes), {s.name: s.type for s in pattern.all(Scalar)}
        self.parts = {d.name: d.value for d in pattern.definitions if len(d.names) == 1}
        self.values = {d.name: d.value for d in program.definitions if len(d.names) == 1}
        self.arrays: dict[str, tuple[str, tuple[Expr, ...]]] = {
            b.name: (b.type, b.axes) for b in program.buffers.values()}
        for d in program.definitions:
            self.arrays |= dict(zip(d.names, zip(types_of(d.value), shapes_of(d.value), strict=True), strict=True))
        self.given = frozenset(c.declares()[0] for c in program.params if hasattr(c, "declares"))
        self.axis_names = AxisNames(self.given)
        self.context = Context.of(program)
        self.steps = 0

    @property
    def root(self) -> Value | None:
        """The value of the pattern's output."""
        return self.parts.get(self.pattern.outputs[0].value) if len(self.pattern.outputs) == 1 else None

    def match(self, value: Value) -> Bound | None:
        """What the holes stand for in a value, or None."""
        self.steps = 0
        if self.root is None:
            return None
        return next((bound for bound in self._values(self.root, value, {}) if self._holds(bound)), None)

    def numbers(self, bound: Mapping[str, Any]) -> dict[Expr, Expr]:
        """The sizes and scalars of the pattern, and what they stand for."""
        return {Var(name, self.scalars.get(name, "i64")): bound[name] for name in (*self.sizes, *self.scalars)
                if name in bound}

    def _holds(self, bound: Bound) -> bool:
        """Do formulas of extents agree, and do the conditions of the pattern follow from those of the program?"""
        numbers = self.numbers(bound)
        return all(canonical(substitute(mine, numbers)) is canonical(other) for mine, other in bound.get(DEFERRED, ())
                   ) and all(self.context.proves(substitute(r.cond, numbers)) for r in self.pattern.all(Require))

    # -- values --------------------------------------------------------------------------------------------------------

    def _values(self, mine: Value, other: Value, bound: Bound) -> Iterator[Bound]:
        match mine, other:
            case Compute(), Compute() if mine.type == other.type and len(mine.axes) == len(other.axes):
                for found in self._axes(mine.axes, other.axes, bound):
                    yield from self._exprs(mine.expr, other.expr, _by_name(mine.axes, other.axes), found)
            case Reduce(), Reduce() if (mine.type, mine.fn) == (other.type, other.fn) and (
                    len(mine.axes), len(mine.over)) == (len(other.axes), len(other.over)):
                orders = permutations(other.over) if len(other.over) <= MOST_ORDERS else (other.over,)
                for over in orders:
                    own, its = (*mine.axes, *mine.over), (*other.axes, *over)
                    axes = _by_name(own, its)
                    for first in self._axes(own, its, bound):
                        for second in self._exprs(mine.cond, other.cond, axes, first):
                            yield from self._exprs(mine.expr, other.expr, axes, second)

    def _axes(self, mine: Sequence[Axis], others: Sequence[Axis], bound: Bound) -> Iterator[Bound]:
        found: Bound | None = bound
        for a, b in zip(mine, others, strict=True):
            found = None if found is None else self._extent(a.extent, b.extent, found)
        if found is not None:
            yield found

    def _extent(self, mine: Expr, other: Expr, bound: Bound) -> Bound | None:
        if isinstance(mine, Var) and mine.name in self.sizes:
            if mine.name not in bound:
                return bound | {mine.name: other}
            return bound if canonical(bound[mine.name]) is canonical(other) else None
        if isinstance(mine, Const):
            return bound if mine is other else None
        return bound | {DEFERRED: (*bound.get(DEFERRED, ()), (mine, other))}

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _exprs(self, mine: Expr, other: Expr, axes: Mapping[str, Axis], bound: Bound) -> Iterator[Bound]:
        """`axes`: the axes of the pattern's value by name, and those of the program's."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            return
        match mine:
            case Var(name) if name in axes:
                if other is axes[name].var:
                    yield bound
            case Var(name) if name in self.sizes:
                if (found := self._extent(mine, other, bound)) is not None and other.variables <= self.given:
                    yield found
            case Var(name, dtype):
                if name in bound:
                    if bound[name] is other:
                        yield bound
                elif other.dtype == dtype and other.variables <= self.given and not any(
                        isinstance(n, Read) for n in other.unique()):
                    yield bound | {name: other}
            case Read(name) if name in self.holes:
                yield from self._operand(mine, other, axes, bound)
            case Read(name, index):
                if isinstance(other, Read) and mine.type == other.type and other.buffer in self.values:
                    for found in self._values(self.parts[name], self.values[other.buffer], bound):
                        for whole in self._each(index, other.index, axes, found):
                            yield whole | {name: other.buffer}
            case Op(fn, args):
                if isinstance(other, Op) and other.fn == fn and len(other.args) == len(args):
                    yield from self._each(args, other.args, axes, bound)
                    if OPERATORS[fn].commutative and other.args[0] is not other.args[1]:
                        yield from self._each(args, (other.args[1], other.args[0]), axes, bound)
            case Conversion(dtype, arg):
                if type(other) is type(mine) and isinstance(other, Conversion) and other.type == dtype:
                    yield from self._exprs(arg, other.arg, axes, bound)
            case Inside(index, extent):
                if isinstance(other, Inside):
                    yield from self._each((index, extent), (other.index, other.extent), axes, bound)
            case Pieces(at, arms, bounds):
                if isinstance(other, Pieces) and len(other.arms) == len(arms):
                    yield from self._each((at, *arms, *bounds), (other.at, *other.arms, *other.bounds), axes, bound)
            case _:
                if mine is other:
                    yield bound

    def _each(self, mine: Sequence[Expr], others: Sequence[Expr], axes: Mapping[str, Axis], bound: Bound,
              ) -> Iterator[Bound]:
        if len(mine) != len(others):
            return
        if not mine:
            yield bound
            return
        for found in self._exprs(mine[0], others[0], axes, bound):
            yield from self._each(mine[1:], others[1:], axes, found)

    def _operand(self, mine: Read, other: Expr, axes: Mapping[str, Axis], bound: Bound) -> Iterator[Bound]:
        """An element of an array that is a hole."""
        hole = self.holes[mine.buffer]
        if other.dtype != hole.type:
            return
        if isinstance(other, Read):
            known = bound.get(mine.buffer)
            if known is None and self._is_laid_out(hole, other.buffer):
                for found in self._shapes(hole.shape, self.arrays[other.buffer][1], bound):
                    yield from self._each(mine.index, other.index, axes, found | {mine.buffer: other.buffer})
            elif known == other.buffer:
                yield from self._each(mine.index, other.index, axes, bound)
            return
        names = [i.name for i in mine.index if isinstance(i, Var) and i.name in axes]
        if len(set(names)) < len(mine.index) or cost(other) == 0 or hole.access != "in":
            return
        own = [axes[name] for name in names]
        if not other.variables - self.given <= {a.name for a in own}:
            return
        for found in self._shapes(hole.shape, [a.extent for a in own], bound):
            stored = self.axis_names.axes([a.extent for a in own])
            renames: dict[Expr, Expr] = {a.var: b.var for a, b in zip(own, stored, strict=True)}
            value = Compute(hole.type, stored, substitute(other, renames))
            if bound.get(mine.buffer, value) is value and self._is_laid_out(hole, ""):
                yield found | {mine.buffer: value}

    def _shapes(self, mine: Sequence[Expr], others: Sequence[Expr], bound: Bound) -> Iterator[Bound]:
        found: Bound | None = bound
        for a, b in zip(mine, others, strict=False):
            found = None if found is None else self._extent(a, b, found)
        if found is not None and len(mine) == len(others):
            yield found

    def _is_laid_out(self, hole: Buffer, name: str) -> bool:
        """Is an array (a value, if it is no parameter) in memory as the hole says?"""
        if hole.name not in self.addressed:
            return True
        buffer = self.program.buffers.get(name)
        rows = tuple(range(len(hole.shape)))
        return hole.order == rows if buffer is None else buffer.order == hole.order and not buffer.strides


def _by_name(mine: Sequence[Axis], others: Sequence[Axis]) -> dict[str, Axis]:
    return {a.name: b for a, b in zip(mine, others, strict=True)}


def is_row_major(buffer: Buffer) -> bool:
    """Is an array dense, the last axis contiguous?"""
    return buffer.order == tuple(range(len(buffer.shape))) and not buffer.strides

"""Lowering of scatters: accumulations into the array of the source, or into a copy.

    out = S; out[x] += e       ->  for i: out[i] = S[i];  for j: out[x] += …

If threads share the work and the target is small, each part of the iterations adds to a copy of its own
(privatisation), and the copies are added up in order. The number of parts is fixed, so results do not depend on the
number of threads.

    if 32·B <= N:   P : 16 copies of (B)
                    for t 16: P[t] = 0;  for j in part t: P[t, x] += e
                    for t 16, i: out[i] += P[t, i]
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..core.dtypes import DTYPES
from ..core.expr import FALSE, TRUE, Expr, Op, Var
from ..core.expr import index as constant
from ..core.monoids import identity
from ..core.program import Target
from ..loop.affine import canonical
from ..loop.context import Context
from ..loop.simplify import simplify
from ..loop.statements import Aref, If, Incf, Local, Setf, Stmt
from .kernels import Member
from .loop_builder import LoopBuilder
from .values import Scatter

PARTS = 16              # of the iterations, if each has a copy of the target
ITERATIONS = 32         # for each element of the target that make the copies worth while
CACHE_SHARE = 4         # a copy has a part of the last private cache, the elements that are read have the rest
MOST_WORK = 60          # bits of the number of iterations as the condition counts them


class ScatterLowering:
    """The accumulations of a scatter."""

    def __init__(self, builder: LoopBuilder, m: Member, value: Scatter) -> None:
        self.builder, self.name, self.value, self.target = builder, m.name, value, builder.array(m.name)

    def statements(self) -> tuple[Stmt, ...]:
        """The loops, privatised where that is worth while."""
        worth = self.is_worth_copies()
        if worth is FALSE:
            return self.in_order()
        if worth is TRUE:
            return self.in_copies()
        return (If(worth, self.in_copies(), self.in_order()),)

    def is_worth_copies(self) -> Expr:
        """The condition on sizes under which parts of the iterations have copies of the target. Where an axis indexes
        the target, iterations along it never meet, and its threads need no copies."""
        target, value = self.builder.program.first(Target), self.value
        if (target is None or not target.machine.threads or target.machine.groups or self.builder.program.opt < 2
                or any(isinstance(i, Var) and i.name == a.name for i in value.index for a in value.axes)):
            return FALSE
        limit = 1 << MOST_WORK // len(value.axes)                   # so that the product does not overflow
        work: Expr = prod([Op("min", (a.extent, constant(limit))) for a in value.axes], start=constant(1))
        size: Expr = prod(value.shape, start=constant(1))
        cached = target.machine.cache_bytes[-1] // CACHE_SHARE // DTYPES[value.type].bytes
        conds = Op("and", (Op("le", (size, constant(cached))), Op("le", (size, work // ITERATIONS))))
        made: Expr = simplify(conds, Context.of(self.builder.program))
        return made

    def in_order(self) -> tuple[Stmt, ...]:
        """One iteration after the other."""
        named = self.builder.axis_names(self.name, self.value)
        return self.builder.loops(list(zip(named, [a.extent for a in self.value.axes], strict=True)), lambda index: (
            self.add(index, lambda at: Aref(self.target, at, self.value.type))))

    def add(self, index: tuple[Expr, ...], place: Callable[[tuple[Expr, ...]], Aref]) -> tuple[Stmt, ...]:
        """The accumulation of one iteration."""
        value, names = self.value, {a.name: i for a, i in zip(self.value.axes, index, strict=True)}
        ref = place(tuple([self.builder.expr(i, names) for i in value.index]))
        add = Incf(ref, self.builder.expr(value.expr, names), value.fn)
        return (add,) if value.cond is TRUE else (If(self.builder.expr(value.cond, names), (add,)),)

    def in_copies(self) -> tuple[Stmt, ...]:
        """Parts of the outermost loop, each with a copy."""
        value, builder = self.value, self.builder
        copies, dtype = builder.names.fresh(builder.wanted(self.name)), value.type
        first, *rest = [(n, a.extent) for n, a in zip(builder.axis_names(self.name, value), value.axes, strict=True)]
        length = canonical((first[1] + (PARTS - 1)) // PARTS)
        elements = [(f"{self.target}_{n}", e) for n, e in enumerate(value.shape)]

        def part(outer: tuple[Expr, ...]) -> tuple[Stmt, ...]:
            (t,) = outer
            begin = canonical(length * t)

            def copy(at: tuple[Expr, ...]) -> Aref:
                return Aref(copies, (t, *at), dtype)
            zero = builder.loops(elements, lambda at: (Setf(copy(at), identity(value.fn, dtype)),))
            present = canonical(Op("min", (length, first[1] - begin)))
            return (*zero, *builder.loops([(first[0], present), *rest], lambda at: self.add(
                (canonical(begin + at[0]), *at[1:]), copy)))
        merged = builder.loops([("part", constant(PARTS)), *elements], lambda at: (
            Incf(Aref(self.target, at[1:], dtype), Aref(copies, at, dtype), value.fn),))
        return (Local(copies, dtype, (constant(PARTS), *value.shape), "scratch"),
                *builder.loops([("part", constant(PARTS))], part), *merged)

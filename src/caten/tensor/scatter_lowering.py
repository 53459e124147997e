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

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ..core.dtypes import DTYPES
from ..core.expr import FALSE, TRUE, Expr, Op, Var
from ..core.expr import index as constant
from ..core.monoids import identity
from ..core.program import Target
from ..loop.affine import canonical
from ..loop.context import Context
from ..loop.simplify import simplify
from ..loop.statements import Aref, Fail, If, Incf, Let, Local, Setf, Stmt
from .checks_in_scatters import CheckInLoop
from .kernels import Member
from .loop_builder import LoopBuilder
from .values import Inside, Scatter

Exprs = tuple[Expr, ...]

PARTS = 16              # of the iterations, if each has a copy of the target
ITERATIONS = 32         # for each element of the target that make the copies worth while
CACHE_SHARE = 4         # a copy has a part of the last private cache, the elements that are read have the rest
MOST_WORK = 60          # bits of the number of iterations as the condition counts them


class ScatterLowering:
    """The accumulations of a scatter."""

    def __init__(self, builder: LoopBuilder, m: Member, value: Scatter, checks: Sequence[CheckInLoop]) -> None:
        self.builder, self.name, self.value, self.target = builder, m.name, value, builder.array(m.name)
        self.checks = checks

    def statements(self) -> tuple[Stmt, ...]:
        """The loops, privatised where that is worth while."""
        worth = self.is_worth_copies()
        if worth is FALSE:
            return self.in_order()
        if worth is TRUE:
            return self.in_copies()
        return (If(worth, self.in_copies(), self.in_order()),)

    def is_worth_copies(self) -> Expr:
        """The condition on sizes under which parts of the iterations have copies of the target. Where the first axis
        indexes the target, iterations along it never meet, and its threads need no copies."""
        target, value = self.builder.program.first(Target), self.value
        if (target is None or not target.machine.threads or target.machine.groups or self.builder.program.opt < 2
                or any(i is value.axes[0].var for i in value.index)):
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
        return self.accumulated(list(zip(named, [a.extent for a in self.value.axes], strict=True)), lambda index: index,
                                lambda at: Aref(self.target, at, self.value.type),
                                lambda row, cond, others: (If(cond, (Fail(row),)), *others))

    def accumulated(self, ranges: Sequence[tuple[str, Expr]], shifted: Callable[[Exprs], Exprs],
                    place: Callable[[Exprs], Aref], failing: Callable[[int, Expr, tuple[Stmt, ...]], tuple[Stmt, ...]],
                    ) -> tuple[Stmt, ...]:
        """The loops around the accumulation of one iteration. `shifted`: the axes by the variables of the loops.
        `failing`: a row of a check and its condition in front of statements."""
        def level(outer: Exprs) -> tuple[Stmt, ...]:
            names = {a.name: i for a, i in zip(self.value.axes, shifted(outer), strict=False)}
            depth, known = len(outer), dict[Expr, Expr]()
            failures = [f for check in self.checks if check.depth == depth for f in check.failures]
            lets = [self.named_indices(cond, names, known) if depth == len(ranges) else () for _, cond in failures]
            stmts = self.add(names, known, place) if depth == len(ranges) else self.builder.loops(
                ranges[depth:depth + 1], lambda at: level((*outer, *at)))
            for (row, cond), named in reversed(list(zip(failures, lets, strict=True))):
                stmts = (*named, *failing(row, self.builder.expr(cond, names, known), stmts))
            return stmts
        return level(())

    def named_indices(self, cond: Expr, names: Mapping[str, Expr], known: dict[Expr, Expr]) -> tuple[Stmt, ...]:
        """Names, new in `known`, for the indices that the condition of a check compares. Not if the scatter has a
        condition: elsewhere an index may read outside."""
        lets: list[Stmt] = []
        for i in self.value.index if self.value.cond is TRUE else ():
            if isinstance(i, Inside) and i.index not in known and i.index in cond.unique():
                name = self.builder.names.fresh("ix")
                lets.append(Let(name, "i64", self.builder.expr(i.index, names, known)))
                known[i.index] = Var(name, "i64")
        return tuple(lets)

    def add(self, names: Mapping[str, Expr], known: Mapping[Expr, Expr], place: Callable[[Exprs], Aref],
            ) -> tuple[Stmt, ...]:
        """The accumulation of one iteration. `known`: indices that have names."""
        value = self.value
        ref = place(tuple([self.builder.expr(i, names, known) for i in value.index]))
        add = Incf(ref, self.builder.expr(value.expr, names, known), value.fn)
        return (add,) if value.cond is TRUE else (If(self.builder.expr(value.cond, names), (add,)),)

    def in_copies(self) -> tuple[Stmt, ...]:
        """Parts of the outermost loop, each with a copy. A part with an index outside goes on without it."""
        value, builder = self.value, self.builder
        copies, dtype = builder.names.fresh(builder.wanted(self.name)), value.type
        first, *rest = [(n, a.extent) for n, a in zip(builder.axis_names(self.name, value), value.axes, strict=True)]
        length = canonical((first[1] + (PARTS - 1)) // PARTS)
        elements = [(f"{self.target}_{n}", e) for n, e in enumerate(value.shape)]
        flags = {row: builder.names.fresh("outside") for check in self.checks for row, _ in check.failures}

        def part(outer: tuple[Expr, ...]) -> tuple[Stmt, ...]:
            (t,) = outer
            begin = canonical(length * t)

            def copy(at: tuple[Expr, ...]) -> Aref:
                return Aref(copies, (t, *at), dtype)

            def flagged(row: int, cond: Expr, others: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
                return (If(cond, (Setf(Aref(flags[row], outer, "bool"), TRUE),), others),)
            zero = builder.loops(elements, lambda at: (Setf(copy(at), identity(value.fn, dtype)),))
            clear = [Setf(Aref(name, outer, "bool"), FALSE) for name in flags.values()]
            present = canonical(Op("min", (length, first[1] - begin)))
            return (*clear, *zero, *self.accumulated(
                [(first[0], present), *rest], lambda at: (canonical(begin + at[0]), *at[1:]) if at else at, copy,
                flagged))
        parts = builder.loops([("part", constant(PARTS))], part)
        merged = builder.loops([("part", constant(PARTS)), *elements], lambda at: (
            Incf(Aref(self.target, at[1:], dtype), Aref(copies, at, dtype), value.fn),))
        return (Local(copies, dtype, (constant(PARTS), *value.shape), "scratch"),
                *[Local(name, "bool", (constant(PARTS),), "scratch") for name in flags.values()],
                *parts, *[s for row, name in flags.items() for s in self.failing_parts(row, name)], *merged)

    def failing_parts(self, row: int, flags: str) -> tuple[Stmt, ...]:
        """The call fails with this row if one of the flags is set."""
        any_of = Aref(self.builder.names.fresh("outside"), (), "bool")
        return (Local(any_of.buffer, "bool", (), "register"), Setf(any_of, FALSE),
                *self.builder.loops([("part", constant(PARTS))], lambda at: (
                    Incf(any_of, Aref(flags, at, "bool"), "or"),)),
                If(any_of, (Fail(row),)))

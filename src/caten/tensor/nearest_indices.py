"""Checked indices in loops: an access at `(inside ix N row)` is at the nearest index inside, min(max(ix, 0), N - 1).

Where the index is outside, the call has failed before, so the value of such an access does not matter. It only has to
be in memory, in each lane of a vector and in each thread. An index that does not change in inner loops gets a name
outside of them:

    (for i 0 N 1 serial                                        (for i 0 N 1 serial
      (for j 0 D 1 serial                                        (let ix i64 (min (max (aref I i) 0) (- V 1)))
        (setf (aref Y i j)                               ->      (for j 0 D 1 serial
          (aref T (inside (aref I i) V 6) j))))                    (setf (aref Y i j) (aref T ix j))))

An axis that may be empty has no index inside. Then the access has a condition.

Where the index is shown to be inside, since the check has looked at all elements of its array (`element_ranges`), it
stays as it is.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.expr import Const, Expr, Op, Var, number
from ..core.unique_names import Names
from ..loop.accesses import is_inside, reading
from ..loop.context import Context
from ..loop.effects import reads, writes
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt, statements_in
from .values import Inside

Shapes = Mapping[str, tuple[Expr, ...]]


def with_nearest_indices(stmts: Sequence[Stmt], context: Context, shapes: Shapes, names: Names) -> tuple[Stmt, ...]:
    """Statements with accesses in bounds. `context`: before them. `shapes`: those of arrays declared elsewhere."""
    if not any(isinstance(n, Inside) for s in stmts for n in s.unique()):
        return tuple(stmts)
    local = {n.name: n.shape for n in statements_in(stmts) if isinstance(n, Local)}
    return _Walk({**shapes, **local}, names).block(stmts, context)


@dataclass
class _Loop:
    """A loop around: the context before it, the names that are declared in it, and what is inserted before it."""

    stmt: For
    context: Context
    declared: frozenset[str]
    before: list[Stmt] = field(default_factory=list)
    named: dict[Expr, Var] = field(default_factory=dict)


class _Walk:
    def __init__(self, shapes: Shapes, names: Names) -> None:
        self.shapes, self.names = shapes, names
        self.loops: list[_Loop] = []

    def block(self, stmts: Sequence[Stmt], context: Context) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in stmts:
            for new in self.statement(stmt, context):
                done.append(new)
                context = context.after(new)
        return tuple(done)

    def statement(self, stmt: Stmt, context: Context) -> tuple[Stmt, ...]:
        match stmt:
            case For(body=body):
                declared = frozenset([n.declares()[0] for n in stmt.walk() if hasattr(n, "declares")])
                loop = _Loop(stmt, context, declared)
                self.loops.append(loop)
                made = stmt.replace(body=self.block(body, context.inside(stmt)))
                self.loops.pop()
                return (*loop.before, made)
            case If(cond, then, otherwise):
                test = self.expr(cond, context)
                return (If(test, self.block(then, context.given(test)),
                           self.block(otherwise, context.given(test, False))),)
            case Let(name, dtype, value):
                return (Let(name, dtype, self.expr(value, context)),)
            case Setf(Aref() as ref, value, how):
                place, conds = self.place(ref, context)
                return (_where(conds, Setf(place, self.expr(value, context), how)),)
            case Incf(Aref() as ref, value, fn):
                place, conds = self.place(ref, context)
                return (_where(conds, Incf(place, self.expr(value, context), fn)),)
        return (stmt,)

    def expr(self, e: Expr, context: Context) -> Expr:
        """An expression whose reads are in bounds."""
        if not any(isinstance(n, Inside) for n in e.unique()):
            return e
        match e:
            case Op("where", (cond, yes, no)):
                test = self.expr(cond, context)
                return Op("where", (test, self.expr(yes, context.given(test)),
                                    self.expr(no, context.given(test, False))))
            case Aref():
                place, conds = self.place(e, context)
                made: Expr = place
                for cond in conds:
                    made = Op("where", (cond, made, number(0, e.dtype)))
                return made
            case Inside(index, extent):                                  # a value; what it is outside does not matter
                at = self.expr(index, context)
                return at if is_inside(context, at, extent) else nearest(at, extent)
        new: Expr = e.map(lambda child: self.expr(child, context) if isinstance(child, Expr) else child)
        return new

    def place(self, ref: Aref, context: Context) -> tuple[Aref, list[Expr]]:
        """The element at the nearest indices inside, and the conditions under which there are such."""
        index: list[Expr] = []
        conds: list[Expr] = []
        for i in ref.index:
            at = self.expr(i, context)
            known = context.with_elements_in(at)
            conds += [cond for extent in _checked_extents(i) if not known.proves(cond := Op("le", (ONE, extent)))]
            index.append(self.outside_of_loops(at, i.extent, context) if isinstance(i, Inside) else at)
        return ref.replace(index=tuple(index)), list(dict.fromkeys(conds))

    def outside_of_loops(self, at: Expr, extent: Expr, context: Context) -> Expr:
        """A name for an index before the outermost loop in which it does not change; the index itself if it changes in
        the innermost one, or if only without a name it is shown to be inside."""
        if isinstance(at, Var | Const):
            return at
        depth = len(self.loops)
        while depth and self.is_defined_before(self.loops[depth - 1], at):
            depth -= 1
        if depth == len(self.loops):
            return at
        loop = self.loops[depth]
        name = loop.named.get(at) or Var(self.names.fresh("ix"), "i64")
        let = Let(name.name, "i64", at)
        if is_inside(context, at, extent) and not is_inside(context.after(let), name, extent):
            return at
        if at not in loop.named:
            loop.named[at] = name
            loop.before.append(let)
        return name

    def is_defined_before(self, loop: _Loop, at: Expr) -> bool:
        """Can an index be computed before a loop, with the same value as in each of its iterations?"""
        names = {n.name if isinstance(n, Var) else n.buffer for n in at.unique() if isinstance(n, Var | Aref)}
        return (not names & loop.declared and reads(at).isdisjoint(writes(loop.stmt))
                and all(is_inside(access.context, i, extent) for access in reading(at, loop.context)
                        for i, extent in zip(access.ref.index, self.shapes[access.ref.buffer], strict=True)))


def nearest(at: Expr, extent: Expr) -> Expr:
    """The index of an axis nearest to `at`; -1 where the axis is empty."""
    return Op("min", (Op("max", (at, ZERO)), extent - ONE))


def _checked_extents(index: Expr) -> list[Expr]:
    """The extents of the axes whose checked indices an index is computed from. What it reads has its own conditions."""
    found, rest = list[Expr](), [index]
    while rest:
        e = rest.pop()
        if isinstance(e, Inside):
            found.append(e.extent)
            rest.append(e.index)
        elif not isinstance(e, Aref):
            rest += [child for child in e.children if isinstance(child, Expr)]
    return list(dict.fromkeys(found))


def _where(conds: Sequence[Expr], stmt: Stmt) -> Stmt:
    for cond in conds:
        stmt = If(cond, (stmt,))
    return stmt

"""A nest as a program of its own, so that a step costs time in the size of the nest, not of the whole program.

The nest keeps its conditions and the statements before it except other nests: names, arrays, and checks that hold from
there on. It keeps the caller's arrays that it uses, and one array of each shape, which implies facts about the sizes.
All other names stay reserved, so that the steps mean the same in the whole program.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence

from ..core.program import At, Buffer, Case, Check, Doc, Reference, Schedule, Signature, Source, Taken
from ..core.unique_names import declared_names
from ..frozen import frozen
from ..loop.effects import loop_names, reads, writes
from ..loop.statements import Aref, For, If, Kernel, LoopProgram, Stmt, Vref
from .analysis.loop_queries import loops_in
from .script import is_applied, recorded

UNASKED = At | Check | Case | Doc | Signature | Source | Reference      # which no step asks for


@frozen
class Place:
    """A list of statements on the way to the nest. The one at `last` is the nest, or the condition that it is under, in
    the arm `arm`; those from `first` on belong to it; `kept` is what stays of those before."""

    stmts: tuple[Stmt, ...]
    first: int
    last: int
    arm: str
    kept: tuple[Stmt, ...]

    def focused(self, inner: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statement list reduced to the path to the nest."""
        stmt, own = self.stmts[self.last], (*self.kept, *self.stmts[self.first:self.last])
        if not isinstance(stmt, If):
            return (*own, stmt)
        return (*own, If(stmt.cond, tuple(inner), ()) if self.arm == "then" else If(stmt.cond, (), tuple(inner)))

    def within(self, made: Sequence[Stmt]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]] | None:
        """What became of a focused list: the statements that are not the condition, and the arm of that; None where it
        is another list by now."""
        stmt, rest = self.stmts[self.last], tuple(made[len(self.kept):])
        if tuple(made[:len(self.kept)]) != self.kept:
            return None
        if not isinstance(stmt, If):
            return rest, ()
        match rest:
            case (*own, If(cond=cond) as only) if cond is stmt.cond:
                return tuple(own), only.then if self.arm == "then" else only.otherwise
        return None

    def back(self, own: Sequence[Stmt], inner: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The original list with the changed parts put back."""
        stmt = self.stmts[self.last]
        put = (stmt.replace(**{self.arm: tuple(inner)}),) if isinstance(stmt, If) else ()
        return (*self.stmts[:self.first], *own, *put, *self.stmts[self.last + 1:])


@frozen
class Apart:
    """A program of one nest of another one, and the way to it, from the outermost list of statements."""

    program: LoopProgram
    whole: LoopProgram
    kernel: Kernel
    way: tuple[Place, ...]

    def back(self, made: LoopProgram) -> LoopProgram | None:
        """The whole program with the nest as it is `made`, and the steps that made it recorded; None where it cannot be
        told from the way to it."""
        (kernel,) = made.kernels
        new: tuple[Stmt, ...] = kernel.body
        found: list[tuple[Stmt, ...]] = []
        for place in self.way:
            parts = place.within(new)
            if parts is None:
                return None
            own, new = parts
            found.append(own)
        for place, own in zip(reversed(self.way), reversed(found), strict=True):
            new = place.back(own, new)
        body = self.kernel.replace(body=new)
        program = self.whole.replace(clauses=tuple([body if c is self.kernel else c for c in self.whole.clauses]))
        fact = made.first(Schedule)
        return recorded(program, fact.steps[:-1]) if fact is not None and is_applied(fact) else program


def apart(program: LoopProgram, name: str, others: Collection[str] = ()) -> Apart | None:
    """The nest that holds the loop `name`, with those before it, from the first of the loops `others` on that it stores
    to as well. None where it is all there is, and where what is known before it hangs on what another nest does."""
    for kernel in program.kernels:
        way = _way(kernel.body, name, others)
        if way:
            return _apart(program, kernel, way)
    return None


def _apart(program: LoopProgram, kernel: Kernel, way: tuple[Place, ...]) -> Apart | None:
    known = frozenset().union(*[reads(stmt) | writes(stmt) for place in way for stmt in place.kept],
                              *[reads(stmt.cond) for place in way if isinstance(stmt := place.stmts[place.last], If)])
    body: tuple[Stmt, ...] = ()
    for place in reversed(way):
        body = place.focused(body)
    if (known and known & _changed(way)) or (len(program.kernels) == 1 and loops_in(body) == loops_in(kernel)):
        return None
    part = kernel.replace(body=body)
    taken = Taken(tuple(sorted(declared_names(program) - declared_names(part))))
    kept = _arrays(program.all(Buffer), part)
    clauses = [part if c is kernel else c for c in program.clauses
               if c is kernel or not isinstance(c, Kernel | Schedule | Taken | UNASKED | Buffer) or c in kept]
    return Apart(LoopProgram(program.name, (*clauses, taken)), program, kernel, way)


def _changed(way: tuple[Place, ...]) -> frozenset[str]:
    """What the nests before write that are left behind."""
    return frozenset().union(*[writes(stmt) for place in way for stmt in place.stmts[:place.first] if loops_in(stmt)])


def _arrays(buffers: Sequence[Buffer], part: Kernel) -> frozenset[Buffer]:
    """The arrays that a nest names, and the first of each shape."""
    named = {n.buffer for n in part.unique() if isinstance(n, Aref | Vref)}
    first = {(b.type, b.shape): b for b in reversed(buffers)}
    return frozenset([b for b in buffers if b.name in named]).union(first.values())


def _way(stmts: tuple[Stmt, ...], name: str, others: Collection[str]) -> tuple[Place, ...]:
    """From this list to the outermost loop around `name`; empty where that is not there."""
    at = next((n for n, stmt in enumerate(stmts) if name in loop_names(stmt)), None)
    if at is None:
        return ()
    stmt = stmts[at]
    stored = writes(stmt)
    first = next((n for n, other in enumerate(stmts[:at])
                  if others and stored & writes(other) and not loop_names(other).isdisjoint(others)), at)
    kept = tuple([other for other in stmts[:first] if other.__class__ is not For and not loops_in(other)])
    if not isinstance(stmt, If):
        return (Place(stmts, first, at, "", kept),)
    arm = "then" if any(name in loop_names(s) for s in stmt.then) else "otherwise"
    return (Place(stmts, first, at, arm, kept), *_way(getattr(stmt, arm), name, others))

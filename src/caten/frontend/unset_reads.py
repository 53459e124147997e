"""Definite assignment of outputs: a pure output may only be read where a statement can have set it.

Statements run in order, and loops repeat them. The first read of an element is preceded by a store if a statement
before the read sets it, or one after it in an earlier iteration of a common loop. The latter needs a condition (or an
inner loop) around the read alone that first iterations skip, as in `(when (< 0 i) …)`. A condition over sizes and
scalars skips all iterations or none. Indices are ignored, so every refused read is wrong whenever it runs.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ..core.expr import Expr, Op, Var
from ..core.node import Node
from ..frozen import frozen
from ..loop.statements import Aref, For, If, Incf, Let, Setf, Stmt

Buffers = frozenset[str]


def unset_reads(stmts: Sequence[Stmt], outputs: Buffers, fixed: Buffers) -> dict[str, Aref]:
    """The first read of each of `outputs` that nothing can have set before. `fixed`: the sizes and scalars."""
    search = _Search(outputs, fixed)
    search.block(stmts, _Around())
    return search.found


@frozen
class _Around:
    """The surroundings of a statement. `looped`: it is in a loop. `later`: outputs that a later statement of a common
    loop sets and that no condition lets come first. `earlier`: outputs that an earlier iteration may have set."""

    looped: bool = False
    later: Buffers = frozenset()
    earlier: Buffers = frozenset()

    def followed_by(self, sets: Buffers) -> _Around:
        return _Around(True, self.later | sets, self.earlier) if self.looped else self

    def skipped(self) -> _Around:
        """Under a condition that some iterations skip."""
        return _Around(self.looped, self.later, self.earlier | self.later)


@dataclass
class _Search:
    outputs: Buffers
    fixed: Buffers
    done: set[str] = field(default_factory=set)           # set by an earlier statement
    found: dict[str, Aref] = field(default_factory=dict)
    known: dict[Stmt, Buffers] = field(default_factory=dict)

    def block(self, stmts: Sequence[Stmt], around: _Around) -> None:
        after = list(accumulate(reversed(stmts), lambda sets, s: sets | self.sets(s), initial=Buffers()))
        for s, rest in zip(stmts, reversed(after[:-1]), strict=True):
            self.statement(s, around.followed_by(rest))
            self.done |= self.sets(s)

    def statement(self, s: Stmt, around: _Around) -> None:
        own = around.followed_by(self.sets(s))
        match s:
            case For():
                for bound in (s.lo, s.hi, s.step):
                    self.value(bound, own)
                inside = around if all(map(self.constant, (s.lo, s.hi, s.step))) else around.skipped()
                self.block(s.body, _Around(True, inside.later, inside.earlier))
            case If():
                self.value(s.cond, own)
                constant = self.constant(s.cond)
                for arm, other in ((s.then, s.otherwise), (s.otherwise, s.then)):
                    self.block(arm, around if constant else around.followed_by(self.set_in(other)).skipped())
                    self.done |= self.set_in(arm)
            case Let():
                self.value(s.value, own)
            case Setf(Aref() as place) | Incf(Aref() as place):
                for index in place.index:
                    self.value(index, own)
                self.value(s.value, own)
                if isinstance(s, Incf):
                    self.read(place, around)

    def value(self, e: Node, around: _Around) -> None:
        """The reads in an expression. `where` evaluates one of its arms."""
        if not any(isinstance(n, Aref) and n.buffer in self.outputs for n in e.unique()):
            return
        match e:
            case Op("where", (cond, *arms)):
                self.value(cond, around)
                for arm in arms:
                    self.value(arm, around if self.constant(cond) else around.skipped())
                return
            case Aref():
                self.read(e, around)
        for child in e.children:
            self.value(child, around)

    def read(self, place: Aref, around: _Around) -> None:
        if place.buffer in self.outputs and place.buffer not in self.done | around.earlier:
            self.found.setdefault(place.buffer, place)

    def constant(self, e: Expr) -> bool:
        """True if the expression has one value for the whole call."""
        return all(n.name in self.fixed if isinstance(n, Var) else not isinstance(n, Aref) for n in e.unique())

    def sets(self, s: Stmt) -> Buffers:
        """The outputs that a statement, or one inside it, sets."""
        if s not in self.known:
            own = {s.ref.buffer} & self.outputs if isinstance(s, Setf) and isinstance(s.ref, Aref) else frozenset()
            self.known[s] = Buffers(own | self.set_in([n for n in s.children if isinstance(n, Stmt)]))
        return self.known[s]

    def set_in(self, stmts: Sequence[Stmt]) -> Buffers:
        return Buffers().union(*map(self.sets, stmts))

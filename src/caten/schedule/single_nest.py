"""A nest as a program of its own, so that a step costs time in the size of the nest, not of the whole program.

The nest keeps its conditions and the statements before it except other nests: names, arrays, and checks that hold from
there on. Of numbers that other nests compute, such as the mean for a pass over the deviations, nothing is known there.
It keeps the caller's arrays that it uses, and one array of each shape, which implies facts about the sizes: as it is
declared, for it is nothing to this nest how others see it. All other names stay reserved, so that the steps mean the
same in the whole program.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..core.dtypes import is_float
from ..core.node import Node
from ..core.program import At, Attribute, Buffer, Case, Check, Doc, Reference, Schedule, Signature, Source, Taken
from ..core.unique_names import Names, declared_names
from ..frozen import frozen
from ..loop.effects import loop_names, reads, writes
from ..loop.statements import (
    Aref,
    Assume,
    For,
    If,
    Incf,
    Kernel,
    Let,
    Local,
    LoopProgram,
    Repeat,
    Setf,
    Stmt,
    Transpose,
    Vref,
)
from .analysis.loop_queries import loops_in
from .primitives.flatten import flatten
from .script import is_applied, recorded

UNUSED = At | Attribute | Check | Case | Doc | Signature | Source | Reference       # facts that no step uses


@frozen
class Level:
    """A statement list on the path to the nest. The statement at `last` is the nest, or a condition around it with the
    nest in `arm`. The statements from `first` to `end` belong to the nest; `kept` are those before that stay."""

    stmts: tuple[Stmt, ...]
    first: int
    last: int
    end: int
    arm: str
    kept: tuple[Stmt, ...]

    def focused(self, inner: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statement list reduced to the path to the nest."""
        stmt, own = self.stmts[self.last], (*self.kept, *self.stmts[self.first:self.last])
        if isinstance(stmt, If):
            stmt = If(stmt.cond, tuple(inner), ()) if self.arm == "then" else If(stmt.cond, (), tuple(inner))
        return (*own, stmt, *self.stmts[self.last + 1:self.end])

    def within(self, made: Sequence[Stmt]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...], tuple[Stmt, ...]] | None:
        """The inverse of `focused` after steps: the statements before the condition, its arm, and the statements
        behind it. None if the list no longer has this form."""
        stmt, rest = self.stmts[self.last], tuple(made[len(self.kept):])
        if tuple(made[:len(self.kept)]) != self.kept:
            return None
        if not isinstance(stmt, If):
            return rest, (), ()
        behind = frozenset().union(*map(loop_names, self.stmts[self.last + 1:self.end]))    # steps keep these names
        for n, only in reversed(list(enumerate(rest))):
            if isinstance(only, If) and only.cond is stmt.cond and loop_names(only).isdisjoint(behind):
                if any(loop_names(other).isdisjoint(behind) for other in rest[n + 1:]):
                    return None
                return rest[:n], only.then if self.arm == "then" else only.otherwise, rest[n + 1:]
        return None

    def back(self, own: Sequence[Stmt], inner: Sequence[Stmt], behind: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The original list with the changed parts."""
        stmt = self.stmts[self.last]
        put = (stmt.replace(**{self.arm: tuple(inner)}),) if isinstance(stmt, If) else ()
        return (*self.stmts[:self.first], *own, *put, *behind, *self.stmts[self.end:])


@frozen
class Apart:
    """A program of a single nest of the program `whole`, and the path to the nest, from the outermost list. `name`,
    `others`: what `apart` was asked for."""

    program: LoopProgram
    whole: LoopProgram
    kernel: Kernel
    path: tuple[Level, ...]
    name: str
    others: frozenset[str]

    def flattened(self, array: str, axis: int | None = None) -> Apart | None:
        """The same with two axes of an argument as one in the whole program. Raises the refusal of `flatten`."""
        return apart(flatten(self.whole, array, axis)[0], self.name, self.others)

    def back(self, made: LoopProgram) -> LoopProgram | None:
        """The whole program with the nest of `made` and its recorded steps. None if the path to the nest has
        changed."""
        (kernel,) = made.kernels
        new: tuple[Stmt, ...] = kernel.body
        found: list[tuple[tuple[Stmt, ...], tuple[Stmt, ...]]] = []
        for level in self.path:
            parts = level.within(new)
            if parts is None:
                return None
            own, new, behind = parts
            found.append((own, behind))
        for level, (own, behind) in zip(reversed(self.path), reversed(found), strict=True):
            new = level.back(own, new, behind)
        body = self.kernel.replace(body=new)
        program = self.whole.replace(clauses=tuple([body if c is self.kernel else c for c in self.whole.clauses]))
        fact = made.first(Schedule)
        return recorded(program, fact.steps[:-1]) if fact is not None and is_applied(fact) else program


def apart(program: LoopProgram, name: str, others: Collection[str] = ()) -> Apart | None:
    """The nest around the loop `name` as a program, together with earlier nests from the first of the loops `others` on
    that stores to the same array, and with those of `others` directly behind it that do. None if there are no other
    nests, or if facts before the nest depend on one."""
    for kernel in program.kernels:
        path = _path(kernel.body, name, others)
        if path:
            return _apart(program, kernel, path, name, frozenset(others))
    return None


def _apart(program: LoopProgram, kernel: Kernel, path: tuple[Level, ...], name: str, others: frozenset[str],
           ) -> Apart | None:
    changed = _changed(path)
    path = _without_unneeded(path, changed)
    known = frozenset().union(*[reads(stmt) | writes(stmt) for level in path for stmt in level.kept
                                if not _is_no_fact(stmt) and not isinstance(stmt, Assume)],
                              *[reads(stmt.cond) for level in path if isinstance(stmt := level.stmts[level.last], If)])
    body: tuple[Stmt, ...] = ()
    for level in reversed(path):
        body = level.focused(body)
    if (known and known & changed) or (len(program.kernels) == 1 and loops_in(body) == loops_in(kernel)):
        return None
    part = kernel.replace(body=body, starts=())
    taken = Taken(tuple(sorted(Names.of(program).taken - declared_names(part))))       # beside those of the program
    kept: dict[Node, Node] = {**_arrays(program, part), kernel: part}
    others_own = Kernel | Repeat | Schedule | UNUSED | Buffer | Local
    clauses = [kept.get(c, c) for c in program.clauses if c in kept or not isinstance(c, others_own)]
    return Apart(LoopProgram(program.name, (*clauses, taken)), program, kernel, path, name, others)


def _is_no_fact(stmt: Stmt) -> bool:
    """Does a statement say nothing of integers: does it only name or store floats, or declare an array?"""
    match stmt:
        case Local():
            return True
        case Let(type=dtype):
            return is_float(dtype)
        case Setf(ref) | Incf(ref) | Transpose(ref):
            return is_float(ref.dtype)
        case If(then=then, otherwise=otherwise):
            return all(map(_is_no_fact, (*then, *otherwise)))
    return False


def _without_unneeded(path: tuple[Level, ...], changed: frozenset[str]) -> tuple[Level, ...]:
    """The levels without the floats and arrays before the nest that it does not use, and without what stores a float
    where an omitted nest stores, too: it is not known."""
    found: list[Level] = []
    used: frozenset[str] = frozenset()
    for level in reversed(path):
        stmt, kept = level.stmts[level.last], list[Stmt]()
        around = (stmt.cond,) if isinstance(stmt, If) else (stmt,)
        used = used.union(*[part.variables | reads(part) | (writes(part) if isinstance(part, Stmt) else frozenset())
                            for part in (*level.stmts[level.first:level.last], *around,
                                         *level.stmts[level.last + 1:level.end])])
        for before in reversed(level.kept):
            needed = bool(used & reads(before)) if isinstance(before, Assume) else not _is_no_fact(before)
            if needed or (used & _named(before) and not writes(before) & changed):
                kept.append(before)
                used = used.union(before.variables, reads(before))
        found.append(replace(level, kept=tuple(reversed(kept))))
    return tuple(reversed(found))


def _changed(path: tuple[Level, ...]) -> frozenset[str]:
    """The names that the omitted nests before write."""
    return frozenset().union(*[writes(stmt) for level in path for stmt in level.stmts[:level.first] if loops_in(stmt)])


def _arrays(program: LoopProgram, part: Kernel) -> dict[Node, Node]:
    """The arrays that a nest uses, and the first of the caller's arrays of each shape as it is declared."""
    named = {n.buffer for n in part.unique() if isinstance(n, Aref | Vref)}
    buffers = program.all(Buffer)
    arrays: tuple[Buffer | Local, ...] = (*buffers, *program.all(Local))
    first = {(b.type, b.shape): b for b in reversed(buffers)}
    return {b: b.replace(seen=()) for b in first.values()} | {a: a for a in arrays if a.name in named}


def _named(stmt: Stmt) -> frozenset[str]:
    """What a statement declares or writes."""
    return frozenset((stmt.name,)) if isinstance(stmt, Let | Local) else writes(stmt)


def _path(stmts: tuple[Stmt, ...], name: str, others: Collection[str]) -> tuple[Level, ...]:
    """The path from this list to the outermost loop around `name`; empty if there is none."""
    at = next((n for n, stmt in enumerate(stmts) if name in loop_names(stmt)), None)
    if at is None:
        return ()
    stmt = stmts[at]
    stored = writes(stmt)
    last = next((n for n in range(at - 1, -1, -1) if others and loops_in(stmts[n]) and stored & writes(stmts[n])
                 and loop_names(stmts[n]).isdisjoint(others)), -1)                     # what is before belongs to that
    first = next((n for n, other in enumerate(stmts[:at])
                  if n > last and others and stored & writes(other) and not loop_names(other).isdisjoint(others)), at)
    between = next((n + 1 for n in range(first - 1, -1, -1) if loops_in(stmts[n])), 0)
    first = next((n for n in range(between, first) if stored & _named(stmts[n])), first)         # where its sums begin
    end = next((n for n, other in enumerate(stmts) if n > at
                and (not stored & writes(other) or loop_names(other).isdisjoint(others))), len(stmts))
    kept = tuple([other for other in stmts[:first] if other.__class__ is not For and not loops_in(other)])
    if not isinstance(stmt, If):
        return (Level(stmts, first, at, end, "", kept),)
    arm = "then" if any(name in loop_names(s) for s in stmt.then) else "otherwise"
    return (Level(stmts, first, at, end, arm, kept), *_path(getattr(stmt, arm), name, others))

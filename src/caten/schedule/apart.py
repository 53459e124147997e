"""One nest of a program, by itself: what a step costs grows with the nest then, not with the whole program.

The nest keeps what comes before it in its kernel but other nests: names, arrays, checks that hold from there on. The names of everything else stay
taken, so that the steps mean the same in the whole program.
"""
from __future__ import annotations

from collections.abc import Collection

from ..core.naming import declared_names
from ..core.program import At, Case, Check, Doc, Reference, Schedule, Signature, Source, Taken
from ..frozen import frozen
from ..loop.effects import reads, writes
from ..loop.statements import For, Kernel, LoopProgram, Stmt
from .nests import loops_in
from .script import is_applied, recorded

UNASKED = At | Check | Case | Doc | Signature | Source | Reference      # which no step asks for


@frozen
class Apart:
    """A program of some of the statements of one kernel of another one, `first` to `last`, after `before` of those above them."""

    program: LoopProgram
    whole: LoopProgram
    kernel: Kernel
    before: int
    first: int
    last: int

    def back(self, made: LoopProgram) -> LoopProgram:
        """The whole program with these statements as they are `made`, and the steps that made them recorded."""
        (kernel,) = made.kernels
        body = self.kernel.body
        new = self.kernel.replace(body=(*body[:self.first], *kernel.body[self.before:], *body[self.last + 1:]))
        program = self.whole.replace(clauses=tuple([new if c is self.kernel else c for c in self.whole.clauses]))
        fact = made.first(Schedule)
        return recorded(program, fact.steps[:-1]) if fact is not None and is_applied(fact) else program


def apart(program: LoopProgram, name: str, others: Collection[str]) -> Apart | None:
    """The top-level statement that holds the loop `name`, with those from the first of the loops `others` on that it stores to as well. None where it
    is all there is, and where what is known before it hangs on what another nest does."""
    for kernel in program.kernels:
        at = next((n for n, stmt in enumerate(kernel.body) if any(loop.name == name for loop in loops_in(stmt))), None)
        if at is not None:
            stored = writes(kernel.body[at])
            begun = [n for n, stmt in enumerate(kernel.body[:at]) if isinstance(stmt, For) and stmt.name in others and writes(stmt) & stored]
            first = min(begun, default=at)
            return _apart(program, kernel, first, at)
    return None


def _apart(program: LoopProgram, kernel: Kernel, first: int, last: int) -> Apart | None:
    before = [stmt for stmt in kernel.body[:first] if not loops_in(stmt)]
    left = [stmt for n, stmt in enumerate(kernel.body) if loops_in(stmt) and not first <= n <= last]
    changed = frozenset().union(*[writes(stmt) for stmt in left])
    if not left or any((reads(stmt) | writes(stmt)) & changed for stmt in before):
        return None
    part = kernel.replace(body=(*before, *kernel.body[first:last + 1]))
    clauses = [part if c is kernel else c for c in program.clauses if c is kernel or not isinstance(c, Kernel | Schedule | UNASKED)]
    elsewhere = [*left, *[k for k in program.kernels if k is not kernel], *_checks(kernel.body[last + 1:])]
    taken = Taken(tuple(sorted(frozenset().union(*[declared_names(n) for n in elsewhere]))))
    return Apart(LoopProgram(program.name, (*clauses, taken)), program, kernel, len(before), first, last)


def _checks(stmts: tuple[Stmt, ...]) -> list[Stmt]:
    """Those of the statements that are no nests."""
    return [stmt for stmt in stmts if not loops_in(stmt)]

"""inline: substitute the expression that computes an array for each read of it."""
from __future__ import annotations

from typing import Any

from ...core.expr import Expr, Op, Var
from ...core.node import Node, substitute
from ...loop.context import Context
from ...loop.effects import reads
from ...loop.statements import Aref, For, If, Let, LoopProgram, Setf, Stmt, is_const
from ..analysis.loop_queries import context_at, refusal
from ..analysis.producers import Produced, produced, verified, with_list
from ..normalize import tidied
from ..step_results import NOTHING, Made


def inline(program: LoopProgram, array: str) -> tuple[LoopProgram, Made]:
    """Replace each read of a local array by the expression that computes the element, and remove the array with the
    loops that filled it. One store in loops over the axes of the array must compute all of it.

        (inline T)
        (local T f32 (N) scratch)
        (for i 0 N 1 serial                             (for j 0 N 1 serial
          (setf (aref T i) (* x (aref A i))))     ->      (setf (aref B j) (exp (* x (aref A j)))))
        (for j 0 N 1 serial
          (setf (aref B j) (exp (aref T j))))
    """
    step = f"inline {array}"

    def refuse(reason: str, hint: str | None = None) -> Any:
        return refusal("E526", step, reason, hint)
    found = produced(program, array, refuse)
    if len(found.producers) > 1:
        raise refuse(f"{len(found.producers)} statements set it", "compute_at takes them all")
    loops, store = _store(found, refuse)
    value = _Inlined(found, loops, store, refuse)
    context, at = context_at(program, found.local), found.around.index(found.local)
    out = list(found.around[:at])
    for stmt in found.around[at + 1:]:
        if stmt not in found.producers:
            out += tidied((value.statement(stmt, context),))
        context = context.after(stmt)
    return verified(with_list(program, found.around, tuple(out)), refuse), NOTHING


def _store(found: Produced, refuse: Any) -> tuple[list[For], Setf]:
    """The loops over the axes, and the store inside them. Its `let`s are substituted."""
    loops: list[For] = []
    body: tuple[Stmt, ...] = found.producers
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    last: Any = body[-1]
    if not isinstance(last, Setf) or not isinstance(last.ref, Aref) or not all(isinstance(s, Let) for s in body[:-1]):
        raise refuse("what sets it is more than one store in loops over its axes", "compute_at takes any statements")
    for stmt in reversed(body[:-1]):
        if isinstance(stmt, Let):
            last = substitute(last, {Var(stmt.name, stmt.type): stmt.value})
    indices, names = sorted(map(str, last.ref.index)), sorted(loop.name for loop in loops)
    if indices != names or found.local.name in reads(last.value):
        raise refuse(f"{last.ref} is not set once for each iteration of the loops around it")
    if not all(is_const(loop.step, 1) for loop in loops):
        raise refuse("a loop that sets it has another step than 1")
    return loops, last


class _Inlined:
    """Replaces reads of the array by the value."""

    def __init__(self, found: Produced, loops: list[For], store: Setf, refuse: Any) -> None:
        self.found, self.loops, self.store, self.refuse = found, loops, store, refuse

    def statements(self, stmts: tuple[Stmt, ...], context: Context) -> list[Stmt]:
        out: list[Stmt] = []
        for stmt in stmts:
            out.append(self.statement(stmt, context))
            context = context.after(stmt)
        return out

    def statement(self, stmt: Stmt, context: Context) -> Stmt:
        if self.found.local.name not in reads(stmt):
            return stmt
        match stmt:
            case For(body=body):
                own: For = self.expression(stmt.replace(body=()), context)
                return own.replace(body=tuple(self.statements(body, context.inside(stmt))))
            case If(cond, then, otherwise):
                return If(self.expression(cond, context), tuple(self.statements(then, context.given(cond))),
                          tuple(self.statements(otherwise, context.given(cond, False))))
        made: Stmt = self.expression(stmt, context)
        return made

    def expression(self, node: Node, context: Context) -> Any:
        match node:
            case Op(fn="where", args=(cond, yes, no)) if cond.lanes == 1:
                return Op("where", (self.expression(cond, context), self.expression(yes, context.given(cond)),
                                    self.expression(no, context.given(cond, False))))
            case Expr() if getattr(node, "buffer", "") == self.found.local.name:
                if not isinstance(node, Aref):
                    raise self.refuse(f"{node} is a vector already", "inline before vectorize")
                return self.value(node, context)
        return node.map(lambda child: self.expression(child, context))

    def value(self, place: Aref, context: Context) -> Expr:
        index = dict(zip(self.store.ref.index, place.index, strict=True))
        if any(reads(at) for at in place.index):
            raise self.refuse(f"the index of {place} reads memory")
        for loop in self.loops:
            at, lo, hi = [substitute(e, index) for e in (Var(loop.name, "i64"), loop.lo, loop.hi)]
            if not context.proves(Op("le", (lo, at))) or not context.proves(Op("lt", (at, hi))):
                raise self.refuse(f"{place} is not proven to be one of the elements that '{loop.name}' sets")
        return substitute(self.store.value, index)

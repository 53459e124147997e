"""Find what a loop does in its first iteration alone, and move it before the loop.

    (for p 0 N … (if (= p 0) ((setf s e)) ((incf s e))))       ->   (setf s 0) (for p 0 N … (incf s e))
    (for p 0 N … (if (= p 0) ((setf s 0))) …)                  ->   (setf s 0) (for p 0 N … …)
    (for p 0 N … (setf s (+ (where (= p 0) 0 s) e)))           ->   (setf s 0) (for p 0 N … (incf s e))
    (for p 0 N … (for j 0 M … (if (= p 0) ((setf (y j) 0))) …))   ->   (for j 0 M … (setf (y j) 0)) (for p 0 N …)

The element may be one for each iteration of loops inside. The caller knows whether the loop runs at all.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.expr import Expr, Op, Var
from ..core.monoids import identity
from ..core.node import kept, substitute
from ..core.unique_names import Names
from .affine import canonical
from .context import Context
from .effects import reads, writes
from .statements import Aref, For, If, Incf, Let, Local, Setf, Stmt, statements_in

LARGE = 200                    # largest expression, in nodes, in which names are replaced


@dataclass
class Accumulating:
    """What the caller knows of accumulations."""

    statement: Callable[[Aref, Expr], Stmt | None]     # the accumulation that sets an element to a value
    may_reorder: Callable[[str, str], bool]            # by this operator, in this type
    names: Names


class FirstIteration:
    """The search in one loop. `body` is the loop's body afterwards, `begun` what goes before the loop: stores, each
    with the number of stores in the body that set the element, and the loops around it."""

    def __init__(self, loop: For, context: Context, accumulating: Accumulating):
        self.loop, self.accumulating = loop, accumulating
        self.first = Op("eq", (Var(loop.name, "i64"), loop.lo))
        self.declared = {loop.name, *[s.name for s in statements_in(loop.body) if isinstance(s, For | Let | Local)]}
        self.written = writes(loop)
        self.used: set[str] = set()                    # buffers that earlier statements of the body use
        self.begun: list[tuple[Setf, int, tuple[For, ...]]] = []
        self.body = loop.body
        if loop.name in _tested(loop):
            self.body = self.block(loop.body, (), {}, context.inside(loop))

    def stores(self) -> Iterator[Stmt]:
        """The stores before the loop, in copies of their loops."""
        for setf, _, around in self.begun:
            stmt: Stmt = setf
            for loop in reversed(around):
                new = self.accumulating.names.fresh(loop.name)
                stmt = loop.replace(name=new, body=(substitute(stmt, {Var(loop.name, "i64"): Var(new, "i64")}),))
            yield stmt

    def block(self, stmts: Sequence[Stmt], around: tuple[For, ...], lets: Mapping[Var, Expr],
              context: Context) -> tuple[Stmt, ...]:
        """The statements without what the first iteration does alone. `around`: the loops between."""
        made: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case For() if self.may_be_copied(stmt):
                    made.append(stmt.replace(body=self.block(stmt.body, (*around, stmt), lets, context.inside(stmt))))
                case Let(name=name, type=dtype, value=value):
                    lets = {**lets, Var(name, dtype): value}
                    made.append(stmt)
                case _:
                    made += self.statement(stmt, around, lets, context)
            self.used |= reads(stmt) | writes(stmt)
            context = context.after(stmt)
        return tuple(made)

    def may_be_copied(self, loop: For) -> bool:
        """True if a loop inside does the same in every iteration of the loop."""
        bounds = (loop.lo, loop.hi, loop.step)
        return loop.mark == "serial" and not any(b.variables & self.declared or reads(b) for b in bounds)

    def statement(self, stmt: Stmt, around: tuple[For, ...], lets: Mapping[Var, Expr],
                  context: Context) -> tuple[Stmt, ...]:
        match stmt:
            case If(cond=cond, then=then, otherwise=otherwise):
                return self.choice(stmt, cond, then, otherwise, around, lets, context)
            case Setf(Aref() as ref, Op(fn="where", args=(cond, yes, no)) as value):
                added = [self.accumulating.statement(ref, v) or Setf(ref, v) for v in (yes, no)]
                found = self.choice(stmt, cond, (added[0],), (added[1],), around, lets, context)
                return found if found != (stmt,) else self.reset(stmt, ref, value, around, lets, context)
            case Setf(Aref() as ref, value):
                return self.reset(stmt, ref, value, around, lets, context)
        return (stmt,)

    def is_first(self, cond: Expr, context: Context) -> bool | None:
        """True if the condition holds in the first iteration alone, False in all others, None otherwise."""
        if self.loop.name not in cond.variables:
            return None
        first, others = context.given(self.first), context.given(self.first, False)
        if first.proves(cond) and others.refutes(cond):
            return True
        return False if first.refutes(cond) and others.proves(cond) else None

    def choice(self, stmt: Stmt, cond: Expr, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...],
               around: tuple[For, ...], lets: Mapping[Var, Expr], context: Context) -> tuple[Stmt, ...]:
        """What stays of a condition that tells the first iteration from the others."""
        first = self.is_first(cond, context)
        if first is None:
            return (stmt,)
        match (then, otherwise) if first else (otherwise, then):
            case (Setf(Aref() as ref, value),), (Incf(ref=other, value=added, fn=fn) as incf,) if other is ref:
                same = (self.at_first(added, lets) is self.at_first(value, lets)
                        and ref.buffer not in reads(added) | reads(value))
                if same and self.accumulating.may_reorder(fn, ref.dtype) and self.is_own(ref, around):
                    self.begun.append((Setf(ref, identity(fn, ref.dtype)), 2 if isinstance(stmt, If) else 1, around))
                    return (incf,)
            case (Setf(Aref() as ref, value),), () if self.is_own(ref, around) and self.stays(value, around, lets):
                self.begun.append((Setf(ref, self.at_first(value, lets)), 2, around))
                return ()
        return (stmt,)

    def reset(self, stmt: Setf, ref: Aref, value: Expr, around: tuple[For, ...], lets: Mapping[Var, Expr],
              context: Context) -> tuple[Stmt, ...]:
        """A store whose value reads the element, but another value in the first iteration."""
        for choice in [n for n in value.unique() if isinstance(n, Op) and n.fn == "where" and ref in n.args[1:]]:
            cond, yes, no = choice.args
            first = self.is_first(cond, context)
            given, kept = (yes, no) if first else (no, yes)
            if (first is None or kept is not ref or ref.buffer in reads(substitute(value, {choice: given}))
                    or not self.is_own(ref, around) or not self.stays(given, around, lets)):
                continue
            self.begun.append((Setf(ref, self.at_first(given, lets)), 1, around))
            value = substitute(value, {choice: ref})
            return (self.accumulating.statement(ref, value) or Setf(ref, value),)
        return (stmt,)

    def at_first(self, value: Expr, lets: Mapping[Var, Expr]) -> Any:
        """The value in the first iteration."""
        return canonical(substitute(without_lets(value, lets), {Var(self.loop.name, "i64"): self.loop.lo}))

    def is_own(self, ref: Aref, around: tuple[For, ...]) -> bool:
        """True if the element is the same in all iterations of the loop, one for each iteration of the loops `around`,
        and nothing else of its array is used in the loop, nor before."""
        inner = {loop.name for loop in around}
        uses = [n for n in self.loop.unique() if isinstance(n, Aref) and n.buffer == ref.buffer]
        outer = frozenset().union(*[i.variables for i in ref.index]) - inner
        return (all(n is ref for n in uses) and ref.buffer not in self.used | self.declared
                and not any(map(reads, ref.index))
                and not outer & self.declared
                and inner <= {i.name for i in ref.index if isinstance(i, Var)})

    def stays(self, value: Expr, around: tuple[For, ...], lets: Mapping[Var, Expr]) -> bool:
        """True if the value of the first iteration can be computed before the loop."""
        first = self.at_first(value, lets)
        own = self.declared - {loop.name for loop in around}
        return not first.variables & own and not reads(first) & (self.written | self.declared)


@kept
def _tested(stmt: Stmt) -> frozenset[str]:
    """The variables that conditions in a statement depend on."""
    conds = [stmt.cond] if isinstance(stmt, If) else []
    conds += [n.args[0] for e in stmt.children if isinstance(e, Expr) for n in e.unique()
              if isinstance(n, Op) and n.fn == "where"]
    inner = [_tested(s) for s in stmt.children if isinstance(s, Stmt)]
    return frozenset().union(*[c.variables for c in conds], *inner)


def without_lets(expr: Expr, lets: Mapping[Var, Expr]) -> Expr:
    """Replace names by their values, repeatedly. Where the expression grows too large, some names stay."""
    for name, value in reversed(list(lets.items())):
        if expr.written_out > LARGE:
            break
        expr = substitute(expr, {name: value})
    return expr

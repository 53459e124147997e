"""jam: move a short loop into the loops inside it (unroll-and-jam, before its iterations are unrolled)."""
from __future__ import annotations

from functools import cache, partial, reduce
from typing import TypeVar, cast

from ...core.expr import Const, Expr, Op, Var, index
from ...core.node import Node, substitute
from ...core.unique_names import Names
from ...loop.dependence import obstacle_to_any_order
from ...loop.early_exit import leaving_condition
from ...loop.effects import reads, written
from ...loop.statements import ONE, ZERO, Aref, Fold, For, If, Let, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.loop_queries import Refusing, context_at, find, loops_in, mentions, reads_memory, refusal, replaced
from ..loop_names import with_value
from ..normalize import tidied
from ..step_results import Jammed

N = TypeVar("N", bound=Node)

MAX_COPIES = 64                  # of each scalar and array of an iteration


def jam(program: LoopProgram, loop: str) -> tuple[LoopProgram, Jammed]:
    """Move a loop of constant length into the loops inside it, so that it is the innermost one everywhere. Each of its
    iterations gets a copy of the scalars and arrays that the body declares (scalar expansion); a name that one of the
    loops alone reads stays one, as what is known of an index is known by its name. Unrolled, before or afterwards, this
    is unroll-and-jam (Allen and Kennedy, Optimizing Compilers for Modern Architectures, section 8.4).
    Of a scalar that a loop inside sums up, this makes a register tile. A loop inside that lanes may leave ends when
    those of all iterations have left it.

        (jam j)
        (for j 0 4 1 serial                          (local s f32 (4) register)
          (local s f32 () register)                  (for j 0 4 1 serial (setf (aref s j) 0.0))
          (setf (aref s) 0.0)                   ->   (for i 0 M 1 serial
          (for i 0 M 1 serial                          (for j_2 0 4 1 serial
            (incf (aref s) (aref A i j)))                (incf (aref s j_2) (aref A i j_2))))
          (setf (aref y j) (aref s)))                (for j_3 0 4 1 serial (setf (aref y j_3) (aref s j_3)))
    """
    step = f"jam {loop}"
    refuse = partial(refusal, "E518", step)
    found = find(program, loop, step)
    if not isinstance(found.hi, Const) or found.lo is not ZERO or found.step is not ONE:
        raise refuse(f"its range from {found.lo} to {found.hi} by {found.step} does not count from 0 to a constant",
                     f"(split {loop} 4) and jam the inner loop")
    if not 2 <= found.hi.value <= MAX_COPIES:
        raise refuse(f"{found.hi} iterations are not 2 to {MAX_COPIES}")
    if any(loop.mark not in ("serial", "unroll") for loop in (found, *loops_in(found.body))):
        raise refuse("it and the loops inside it must be serial, or marked to be unrolled")
    if not loops_in(found.body):
        raise refuse("no loop is inside it")
    reason, _ = obstacle_to_any_order(found, context_at(program, found))
    if reason is not None:
        raise refuse(reason)
    jamming = _Jamming(found, Names.of(program), refuse)
    body = jamming.list_of(found.body)
    return replaced(program, found, *tidied(body)), Jammed(tuple(jamming.made[1:]))


class _Jamming:
    """Collects the expanded variables and the new loops."""

    def __init__(self, found: For, names: Names, refuse: Refusing) -> None:
        self.found, self.names, self.refuse = found, names, refuse
        self.var, self.written = Var(found.name, "i64"), written((found,))
        self.expanded: set[str] = set()                            # variables with one copy for each iteration
        self.named: set[str] = set()                               # values that only their own loop reads
        self.made: list[str] = []                                  # loops over the iterations

    def list_of(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements, each for all iterations of the jammed loop."""
        out: list[Stmt] = []
        run: list[Stmt] = []                                       # statements that share a loop
        crosses = bool(loops_in(stmts))
        for n, stmt in enumerate(stmts):
            match stmt:
                case _ if not crosses:
                    run.append(stmt)
                case For():
                    out += [*self.each(run), self.loop(stmt)]
                    run = []
                case Local(name=name, shape=shape):
                    self.expanded.add(name)
                    out.append(stmt.replace(shape=(self.found.hi, *shape)))
                case Let(value=value) if self.is_same(value):
                    out.append(stmt)
                case Let(name=name) if not mentions(_from_next_loop(stmts[n:]), (name,)):
                    self.named.add(name)                           # what is known of a name is not of an element
                    run.append(stmt)
                case Let(name=name, value=value):
                    self.expanded.add(name)
                    out.append(Local(name, stmt.type, (self.found.hi,), "register"))
                    run.append(Setf(Aref(name, (), stmt.type), value))
                case If() if loops_in(stmt):
                    raise self.refuse("a condition is around a loop inside it", "take the condition out with hoist")
                case _:
                    run.append(stmt)
        return (*out, *self.each(run))

    def each(self, stmts: list[Stmt]) -> tuple[Stmt, ...]:
        """A loop over the iterations around statements without loops."""
        if not stmts:
            return ()
        own = Var(self.found.name if not self.made else self.names.fresh(self.found.name), "i64")
        self.made.append(own.name)
        body = with_value(tuple([self.with_copies(s) for s in stmts]), self.found, own)
        return (For(own.name, ZERO, self.found.hi, ONE, self.found.mark, body),)

    def loop(self, loop: For) -> For:
        if not all(self.is_same(e) for e in (loop.lo, loop.hi, loop.step)):
            raise self.refuse(f"the range of '{loop.name}' depends on its iteration")
        body = self.list_of(loop.body)
        match leaving_condition(loop):
            case Fold("or", going):
                body = (If(Fold("or", self.any_of(going)), body),)
        return loop.replace(body=body)

    def any_of(self, lanes: Expr) -> Expr:
        """The lanes for which a condition holds in some iteration."""
        assert isinstance(self.found.hi, Const)
        here = self.with_copies(lanes)
        return reduce(lambda a, b: Op("or", (a, b)),
                      [substitute(here, {self.var: index(n)}) for n in range(self.found.hi.value)])

    def is_same(self, e: Expr) -> bool:
        """Has an expression the same value in all iterations, now and later?"""
        return not mentions((e,), (self.found.name, *self.expanded, *self.named)) and not (
            reads_memory(e) and reads(e) & self.written)

    def with_copies(self, node: N) -> N:
        """A statement or a value in which each iteration has its own variables."""
        @cache
        def go(n: Node) -> Node:
            match n:
                case Var(name=name) if name in self.expanded:
                    return Aref(name, (self.var,), n.type)
            new: Node = n.map(go)
            match new:
                case Aref(buffer=name) | Vref(buffer=name) if name in self.expanded:
                    return new.replace(index=(self.var, *new.index))
            return new
        return cast(N, go(node))


def _from_next_loop(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The first of some statements that is a loop, and those after it."""
    return stmts[next((n for n, stmt in enumerate(stmts) if isinstance(stmt, For)), len(stmts)):]

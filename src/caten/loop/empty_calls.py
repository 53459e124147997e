"""Empty calls: the sizes for which a call does nothing if one of them is 0."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Op, Var, index
from ..core.node import kept
from ..core.program import Bind, Ensure, Program, Require
from .context import Context
from .effects import NOTHING, writes
from .statements import Fail, For, If, Let, Local, LoopProgram, Stmt


def idle_sizes(program: Program, stmts: Sequence[Stmt]) -> tuple[str, ...]:
    """The sizes each of which, if it is 0, provably leaves the caller's arrays unchanged."""
    known, bound = Context.of(program), {b.name for b in program.all(Bind)}
    arrays = frozenset(program.buffers)
    return tuple([n for n in program.sizes if n not in bound and is_idle(
        stmts, known.given(Var(n, "i64") <= index(0)), arrays, _decided_by(program, n))])


def _decided_by(program: Program, size: str) -> frozenset[str]:
    """The sizes that may be 0 because one is, and that itself: those that a condition on the call relates to it. (That
    arrays fit in memory, which is said with quotients, relates most of them, and makes none 0.)"""
    conditions = [r.cond for r in program.all(Require)] + [e.cond for e in program.all(Ensure)]
    operators = [{n.fn for n in c.unique() if isinstance(n, Op)} for c in conditions]
    related = [c.variables for c, used in zip(conditions, operators, strict=True)
               if "floordiv" not in used or not used.isdisjoint(("eq", "ne"))]
    found, before = frozenset((size,)), NOTHING
    while found != before:
        before, found = found, found.union(*[names for names in related if names & found])
    return found


@kept
def idle_sizes_of_kernels(program: LoopProgram) -> tuple[str, ...]:
    """`idle_sizes` of all kernels."""
    return idle_sizes(program, [s for k in program.kernels for s in k.body])


def is_idle(stmts: Sequence[Stmt], context: Context, arrays: frozenset[str], decided: frozenset[str]) -> bool:
    """True if the statements provably write none of the arrays and never fail. `decided`: the names with which loops
    may be shown to be empty, and conditions to hold or fail. (Proofs about others fail, which takes longest.)"""
    for stmt in stmts:
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                here = decided
                if decided & (lo.variables | hi.variables):
                    here |= {stmt.name}
                    up, down = context.proves(step > index(0)), context.proves(step < index(0))
                    if (up and context.proves(hi <= lo)) or (down and context.proves(lo <= hi)):
                        continue
                if not is_idle(body, context.inside(stmt), arrays, here):
                    return False
            case If(cond=cond, then=then, otherwise=otherwise):
                may_decide = bool(cond.variables & decided)
                if not ((is_idle(then, context, arrays, decided) or (may_decide and context.refutes(cond)))
                        and (is_idle(otherwise, context, arrays, decided) or (may_decide and context.proves(cond)))):
                    return False
            case Fail():
                if not context.unreachable:
                    return False
            case Let(name=name, value=value) if value.variables & decided:
                decided |= {name}
            case _:
                if not context.unreachable and not arrays.isdisjoint(writes(stmt)):
                    return False
        context = context.after(stmt)
    return True


def begins_idle(stmts: Sequence[Stmt], size: str) -> bool:
    """True if the outermost loops are themselves empty when the size is 0, so that an early return gains nothing."""
    return all(isinstance(s, For) and s.hi is Var(size, "i64") and s.lo is index(0)
               for s in stmts if isinstance(s, For | If)) and not any(
        isinstance(s, Local) for s in stmts)

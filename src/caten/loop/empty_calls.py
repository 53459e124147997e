"""Empty calls: the sizes for which a call does nothing if one of them is 0."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Var, index
from ..core.node import kept
from ..core.program import Bind, Program
from .context import Context
from .effects import writes
from .statements import Fail, For, If, Local, LoopProgram, Stmt


def idle_sizes(program: Program, stmts: Sequence[Stmt]) -> tuple[str, ...]:
    """The sizes each of which, if it is 0, provably leaves the caller's arrays unchanged."""
    known, bound = Context.of(program), {b.name for b in program.all(Bind)}
    arrays = frozenset(program.buffers)
    return tuple([n for n in program.sizes
                  if n not in bound and is_idle(stmts, known.given(Var(n, "i64") <= index(0)), arrays)])


@kept
def idle_sizes_of_kernels(program: LoopProgram) -> tuple[str, ...]:
    """`idle_sizes` of all kernels."""
    return idle_sizes(program, [s for k in program.kernels for s in k.body])


def is_idle(stmts: Sequence[Stmt], context: Context, arrays: frozenset[str]) -> bool:
    """True if the statements provably write none of the arrays and never fail."""
    for stmt in stmts:
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                up, down = context.proves(step > index(0)), context.proves(step < index(0))
                ended = (up and context.proves(hi <= lo)) or (down and context.proves(lo <= hi))
                if not ended and not is_idle(body, context.inside(stmt), arrays):
                    return False
            case If(cond=cond, then=then, otherwise=otherwise):
                if not ((is_idle(then, context.given(cond), arrays) or context.refutes(cond))
                        and (is_idle(otherwise, context.given(cond, False), arrays) or context.proves(cond))):
                    return False
            case Fail():
                if not context.unreachable:
                    return False
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

"""What stands in front of a loop in C."""
from __future__ import annotations

from functools import lru_cache

from ..core.expr import Const, Var
from ..loop.statements import Fail, For, If, Let, Local, Ref, Stmt, Vref
from . import caches
from .estimate import THRESHOLD, in_floats, work
from .expressions import Expressions
from .scratch import in_block

MOST_COPIES = 64                # of a loop's body that the C compiler is asked for
MOST_TWICE = {"loop": 48, "team": 72}     # lines of a nest that is written for several threads and again for one


def pays(loop: For, expressions: Expressions) -> bool | str:
    """Is a loop's work worth waking other threads? Where only the sizes at the call tell, the condition."""
    total = work(loop)
    if isinstance(total, Const):
        return bool(total.value > THRESHOLD)
    inside = {d.declares()[0] for d in loop.unique() if isinstance(d, (For, Let, Local))}
    if total.variables & inside or any(isinstance(n, Ref) for n in total.unique()):
        return True
    return f"{expressions.text(in_floats(total, expressions.helpers.widest_float))} > {THRESHOLD}"


def together(loop: For) -> tuple[For, ...]:
    """A parallel loop and those alone in it, each in the one before, that are parallel, too: threads share all of their iterations."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, For) or inner.mark != "parallel":
            break
        outer = {loop.name for loop in loops}
        if any(isinstance(n, Ref) or (isinstance(n, Var) and n.name in outer) for e in (inner.lo, inner.hi) for n in e.unique()):
            break                                        # OpenMP must know how many there are before the first
        loops.append(inner)
    return tuple(loops)


def is_for_a_team(loop: For) -> bool:
    """Can all threads go through a loop together, and share the parallel loops in it? Starting threads once is cheaper than for each of these.
    Nothing may be computed in it but inside of parallel loops, and no memory read, which the next of them may write."""
    if loop.mark != "serial" or not any(n.mark == "parallel" for n in loop.walk() if isinstance(n, For)) or caches.streams(loop):
        return False
    return not any(isinstance(n, Fail) for n in loop.walk()) and _is_shared_out(loop)


def _is_shared_out(stmt: Stmt) -> bool:
    match stmt:
        case For(mark="parallel", step=Const()):
            return not any(isinstance(n, Ref) for e in (stmt.lo, stmt.hi) for n in e.walk())
        case For(body=body):
            return not any(isinstance(n, Ref) for e in (stmt.lo, stmt.hi, stmt.step) for n in e.walk()) and all(map(_is_shared_out, body))
        case If(then=then, otherwise=otherwise):
            return not any(isinstance(n, Ref) for n in stmt.cond.walk()) and all(map(_is_shared_out, (*then, *otherwise)))
        case Let(value=value):
            return not any(isinstance(n, Ref) for n in value.walk())
        case Local():
            return in_block(stmt)
    return False


def copies(loop: For) -> int:
    """How many copies of its body a loop marked `unroll` becomes: all, where they are few."""
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and isinstance(loop.step, Const) and loop.step.value:
        count = len(range(loop.lo.value, loop.hi.value, loop.step.value))
        if count <= MOST_COPIES:
            return max(1, count)
    return 4


@lru_cache(maxsize=4096)
def has_vectors(stmt: Stmt) -> bool:
    """Is anything in a statement computed with vectors? In a nest with vectors, a loop without any is the rest that they left: the C compiler is
    asked not to unroll it, which takes a third of its time and gains nothing."""
    match stmt:
        case For(body=body):
            return any(map(has_vectors, body))
        case If(then=then, otherwise=otherwise):
            return any(map(has_vectors, (*then, *otherwise)))
    return any(isinstance(n, Vref) for n in stmt.unique())


def advance(name: str, by: int) -> str:
    """`i++`, `i += 4`, `i -= 1`"""
    return f"{name}++" if by == 1 else f"{name} += {by}" if by > 0 else f"{name} -= {-by}"

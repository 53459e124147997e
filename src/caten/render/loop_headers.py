"""Decide how a loop becomes C: threads, unroll factor, loop header."""
from __future__ import annotations

from functools import lru_cache

from ..core.expr import Const, Expr, Var
from ..loop.statements import Fail, For, If, Incf, Let, Local, Ref, Setf, Stmt, Vref
from . import cache_hints
from .c_expressions import Expressions
from .scratch_memory import is_in_scratch
from .work_estimate import in_floats, work

MAX_UNROLL = 64                # the largest unroll factor
MAX_VERSIONED_LINES = {"loop": 48, "team": 72}     # the longest nest that is versioned: parallel and serial


def parallel_condition(loop: For, expressions: Expressions, threshold: int) -> bool | str:
    """Is a loop's work, of more operations than `threshold`, worth more threads? A C condition where that depends on
    the sizes at the call."""
    total = work(loop)
    if isinstance(total, Const):
        return bool(total.value > threshold)
    inside = {d.declares()[0] for d in loop.unique() if isinstance(d, (For, Let, Local))}
    if total.variables & inside or any(isinstance(n, Ref) for n in total.unique()):
        return True
    return f"{expressions.text(in_floats(total, expressions.helpers.widest_float))} > {threshold}"


def collapsible_loops(loop: For) -> tuple[For, ...]:
    """A perfect nest of parallel loops, for `collapse`: threads share the iterations of all of them."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, For) or inner.mark != "parallel":
            break
        outer = {loop.name for loop in loops}
        if any(isinstance(n, Ref) or (isinstance(n, Var) and n.name in outer) for e in (inner.lo, inner.hi)
               for n in e.unique()):
            break                                        # `collapse` needs a rectangular iteration space
        loops.append(inner)
    return tuple(loops)


def can_share_one_team(loop: For) -> bool:
    """Can one thread team run a serial loop and share the parallel loops in it? One fork is cheaper than one for each
    of them. Outside of the parallel loops the body may compute nothing, and read no memory: the next parallel loop may
    write it."""
    if loop.mark != "serial" or not any(n.mark == "parallel" for n in loop.walk()
                                        if isinstance(n, For)) or cache_hints.has_non_temporal_store(loop):
        return False
    return not any(isinstance(n, Fail) for n in loop.walk()) and _is_shared_out(loop)


def _is_shared_out(stmt: Stmt) -> bool:
    match stmt:
        case For(mark="parallel", step=Const()):
            return not any(isinstance(n, Ref) for e in (stmt.lo, stmt.hi) for n in e.walk())
        case For(body=body):
            return not any(isinstance(n, Ref) for e in (stmt.lo, stmt.hi, stmt.step)
                           for n in e.walk()) and all(map(_is_shared_out, body))
        case If(then=then, otherwise=otherwise):
            return not any(isinstance(n, Ref)
                           for n in stmt.cond.walk()) and all(map(_is_shared_out, (*then, *otherwise)))
        case Let(value=value):
            return not any(isinstance(n, Ref) for n in value.walk())
        case Local():
            return is_in_scratch(stmt)
    return False


def inner_loops_run(loop: For, tiles: frozenset[str]) -> tuple[Expr, ...]:
    """The conditions that the loops directly inside a serial loop run, if they add to one of these register tiles and
    their extents stay the same. Where clang does not know, the accumulators are others after each of these loops than
    in it, and are copied, or spilled."""
    conds: list[Expr] = []
    inner, outer = loop, {loop.name}
    while inner.mark == "serial" and len(inner.body) == 1 and isinstance(only := inner.body[0], For):
        inner = only
        if any(isinstance(n, Ref) or (isinstance(n, Var) and n.name in outer)
               for e in (inner.lo, inner.hi) for n in e.unique()):
            return ()
        if inner.mark == "serial" and not (isinstance(inner.lo, Const) and isinstance(inner.hi, Const)):
            if (runs := inner.has_iterations) is None:
                return ()
            conds.append(runs)
        outer.add(inner.name)
    stored = {n.ref.buffer for n in inner.unique() if isinstance(n, Incf | Setf)} if conds else set()
    return tuple(conds) if stored & tiles else ()


def unroll_factor(loop: For) -> int:
    """The unroll factor of a loop marked `unroll`: its trip count where that is small."""
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and isinstance(loop.step, Const) and loop.step.value:
        count = len(range(loop.lo.value, loop.hi.value, loop.step.value))
        if count <= MAX_UNROLL:
            return max(1, count)
    return 4


@lru_cache(maxsize=4096)
def has_vectors(stmt: Stmt) -> bool:
    """Does a statement contain vectors? In a vectorised nest, a loop without vectors is a tail: unrolling it would take
    the C compiler a third of its time and gain nothing."""
    match stmt:
        case For(body=body):
            return any(map(has_vectors, body))
        case If(then=then, otherwise=otherwise):
            return any(map(has_vectors, (*then, *otherwise)))
    return any(isinstance(n, Vref) for n in stmt.unique())


def render_increment(name: str, by: int) -> str:
    """`i++`, `i += 4`, `i -= 1`"""
    return f"{name}++" if by == 1 else f"{name} += {by}" if by > 0 else f"{name} -= {-by}"

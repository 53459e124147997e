"""GPU verifier: whether the grid, the blocks, the shared arrays and the barriers of a kernel are legal, and whether
threads race.

A device kernel is one nest: grid loops, inside them what the threads of a group share, then block loops, then the
program of one thread. Threads run in any order up to the next barrier. Two of them may access one element, one of them
writing, only with a barrier between.
"""
from __future__ import annotations

from collections.abc import Iterable

from ..core.expr import Const, Expr, Var
from .access_pairs import OTHER, Phases, pairs
from .affine import of_atom
from .context import Context
from .dependence import are_disjoint, before, clash
from .effects import reads
from .integer_sets import Constraint
from .statements import Barrier, Fail, For, If, Kernel, Let, Local, Stmt, is_const, statements_in

MOST_AXES = 3
MOST_THREADS = 1024             # per group, on any device
BOUND = ("grid", "block")
Fault = tuple[Stmt, str]


def is_bound(kernel: Kernel) -> bool:
    """True if the kernel runs in groups of threads."""
    return bool(grid_of(kernel) or block_of(kernel))


def grid_of(kernel: Kernel) -> tuple[For, ...]:
    """The grid loops of a kernel, outermost first."""
    return _nest(kernel.body, "grid")


def block_of(kernel: Kernel) -> tuple[For, ...]:
    """The block loops of a kernel, outermost first."""
    group = group_of(kernel)
    return _nest(group[-1:], "block")


def group_of(kernel: Kernel) -> tuple[Stmt, ...]:
    """The statements of one group: the body of the innermost grid loop."""
    grid = grid_of(kernel)
    return grid[-1].body if grid else kernel.body


def thread_of(kernel: Kernel) -> tuple[Stmt, ...]:
    """The statements of one thread: the body of the innermost block loop."""
    block = block_of(kernel)
    return block[-1].body if block else group_of(kernel)


def has_barrier(stmt: Stmt) -> bool:
    """True if the statement contains a barrier."""
    match stmt:
        case For():
            return any(has_barrier(s) for s in stmt.body)
        case If():
            return any(has_barrier(s) for s in (*stmt.then, *stmt.otherwise))
    return isinstance(stmt, Barrier)


def _nest(body: tuple[Stmt, ...], mark: str) -> tuple[For, ...]:
    found: list[For] = []
    while len(body) == 1 and isinstance(body[0], For) and body[0].mark == mark:
        found.append(body[0])
        body = body[0].body
    return tuple(found)


def structure_fault(kernel: Kernel) -> Fault | None:
    """A statement that may not be where it is, and why; None if the kernel is legal."""
    grid, block = grid_of(kernel), block_of(kernel)
    for nest, mark in ((grid, "grid"), (block, "block")):
        if mark == "block" and len(nest) > MOST_AXES:
            return nest[-1], f"more than {MOST_AXES} block loops"
        inner = [loop.name for loop in nest]
        for loop in nest:
            if not is_const(loop.step, 1) or any(_varies(e, inner) for e in (loop.lo, loop.hi)):
                return loop, f"the bounds of a {mark} loop are the same in all groups, and its step is 1"
    for loop in block:
        if not is_const(loop.lo, 0) or not isinstance(loop.hi, Const):
            return loop, "a block has a constant number of threads, counted from 0"
    stray = next((n for n in statements_in(thread_of(kernel)) if isinstance(n, For) and n.mark in BOUND), None)
    if stray is not None:
        return stray, f"a {stray.mark} loop belongs to the one perfect nest of its kernel: grid loops, then block loops"
    return _local_fault(kernel, block) or _barrier_fault(thread_of(kernel), [loop.name for loop in block],
                                                                  bool(block))


def _local_fault(kernel: Kernel, block: tuple[For, ...]) -> Fault | None:
    group = group_of(kernel)
    for stmt in group[:-1] if block else ():
        if not isinstance(stmt, Let) and not (isinstance(stmt, Local) and stmt.space == "shared"):
            return stmt, "between the grid and the block there are only values and shared arrays"
    own = set(group) if block else set()
    for node in statements_in(kernel.body):
        if isinstance(node, Local) and node.space == "shared" and node not in own:
            return node, "a shared array is declared inside the grid loops and before the block loops"
    return None


def _barrier_fault(stmts: tuple[Stmt, ...], varying: list[str], grouped: bool) -> Fault | None:
    """A barrier that some thread may not reach. `varying`: names that differ between threads."""
    barrier = next((n for n in statements_in(stmts) if isinstance(n, Barrier)), None)
    if barrier is None:
        return None
    if not grouped:
        return barrier, "a barrier is for the threads of a block"
    if any(isinstance(n, Fail) for n in statements_in(stmts)):
        return barrier, "a thread whose check fails would not reach the barrier"
    return _divergent_barrier(stmts, varying)


def _divergent_barrier(stmts: tuple[Stmt, ...], varying: list[str]) -> Fault | None:
    names = list(varying)
    for stmt in stmts:
        holds = any(isinstance(n, Barrier) for n in stmt.unique())
        match stmt:
            case Let(name=name, value=value) if _varies(value, names):
                names.append(name)
            case For(lo=lo, hi=hi, step=step, body=body):
                differs = any(_varies(e, names) for e in (lo, hi, step))
                if holds and differs:
                    return stmt, "a barrier inside a loop that does not run equally often in all threads"
                if holds and (wrong := _divergent_barrier(body, names)) is not None:
                    return wrong
            case If(cond=cond) if holds:
                if _varies(cond, names):
                    return stmt, "a barrier under a condition that does not hold in all threads alike"
                if (wrong := _divergent_barrier((*stmt.then, *stmt.otherwise), names)) is not None:
                    return wrong
    return None


def _varies(expr: Expr, names: Iterable[str]) -> bool:
    """May the value differ between threads or groups? `names`: variables that do."""
    return bool(reads(expr)) or not expr.variables.isdisjoint(names)


# races

def data_race(loop: For, context: Context) -> str | None:
    """Two accesses of different threads to one element, one of them a write, without a barrier between; or None."""
    order, loops = before(loop, context), {n.name: n for n in loop.walk() if isinstance(n, For)}
    for a, b, both in pairs(loop, context):
        if not all(are_disjoint(loop, a, b, both, (*order, *case)) for case in _meetings(a.phases, b.phases, loops)):
            return clash((a, b), loop.name)
    return None


def _meetings(one: Phases, other: Phases, loops: dict[str, For]) -> list[tuple[Constraint, ...]]:
    """The iterations of the common loops in which two threads may be at the two accesses with no barrier between."""
    cases: list[tuple[Constraint, ...]] = []
    same: tuple[Constraint, ...] = ()
    for (name, at, barriers), (copy, there, _) in zip(one, other, strict=False):
        if name != copy:
            break
        if barriers and loops[name].mark not in BOUND:
            gap = of_atom(Var(name + OTHER, "i64")) - of_atom(Var(name, "i64"))
            step = loops[name].step
            for behind, ahead, sign in ((at, there, 1), (there, at, -1)):
                if behind == barriers and ahead == 0:
                    next_one = ((Constraint(gap.shifted(-sign * step.value), equal=True),) if isinstance(step, Const)
                                else ())
                    cases.append((*same, *next_one))
            same = (*same, Constraint(gap, equal=True))
        if at != there:
            return cases
    return [*cases, same]


def thread_conflict(loop: For, context: Context, buffer: str) -> str | None:
    """Two accesses of different threads to one element of a buffer, one of them a write, barriers or not; or None."""
    order = before(loop, context)
    for a, b, both in pairs(loop, context):
        if a.buffer == buffer and not are_disjoint(loop, a, b, both, order):
            return clash((a, b), loop.name)
    return None

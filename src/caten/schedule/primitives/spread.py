"""spread: share the work of one iteration among the threads of a group."""
from __future__ import annotations

from functools import partial
from typing import Any

from ...core.dtypes import DTYPES
from ...core.expr import Const, Expr, Op, Var, index
from ...core.monoids import MONOIDS, identity, is_monoid
from ...core.node import Node, substitute
from ...core.program import Target
from ...core.unique_names import Names
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.dependence import carried_dependence, is_reduction_over
from ...loop.effects import reads, writes
from ...loop.gpu_verifier import MOST_THREADS, data_race, structure_fault
from ...loop.statements import (
    ONE,
    ZERO,
    Aref,
    Barrier,
    Fail,
    For,
    If,
    Incf,
    Let,
    Local,
    LoopProgram,
    Setf,
    Stmt,
    is_const,
)
from ..analysis.loop_queries import (
    Refusing,
    arrays_for_each_thread,
    context_at,
    find,
    loops_in,
    mentions,
    reads_memory,
    refusal,
    replaced,
)
from ..loop_names import with_value
from ..normalize import tidied
from ..step_results import Spread


def spread(program: LoopProgram, loop: str, count: int, name: str = "t") -> tuple[LoopProgram, Spread]:
    """Give each iteration of a loop to a group of COUNT threads (a power of two). Thread t takes the iterations t, t +
    COUNT, t + 2·COUNT … of the loops inside. For a reduction, every thread has a partial sum, and these are added
    pairwise in shared memory. Thread 0 runs the statements that are not loops; local arrays become shared memory.
    Barriers separate conflicting uses of an array.

        (spread i 4)
        (for i 0 M 1 serial                      (for i 0 M 1 grid
          (for j 0 N 1 serial                      (local w_part f32 (4) shared)
            (incf (aref w i) (aref A i j))))       (for t 0 4 1 block
                                                     (local w_own f32 () register)
                                           ->        (setf (aref w_own) 0.0)
                                                     (for jo 0 (floordiv (+ N 3) 4) 1 serial
                                                       (if (< (+ (* 4 jo) t) N)
                                                         ((incf (aref w_own) (aref A i (+ (* 4 jo) t))))))
                                                     (setf (aref w_part t) (aref w_own))
                                                     (barrier)
                                                     (if (< t 2) ((incf (aref w_part t) (aref w_part (+ t 2)))))
                                                     (barrier)
                                                     (if (< t 1) ((incf (aref w_part t) (aref w_part (+ t 1)))))
                                                     (if (= t 0) ((incf (aref w i) (aref w_part 0))))))
    """
    step = f"spread {loop} {count}"
    refuse = partial(refusal, "E536", step)
    target = program.first(Target)
    if target is not None and not target.machine.groups:
        raise refuse("the target has no groups of threads", "take a runtime for a device, such as opencl")
    most = target.machine.group_threads if target is not None else MOST_THREADS
    if count < 2 or count & (count - 1) or count > most:
        raise refuse(f"the threads of a group are a power of two, and on this target {most} at most")
    written = find(program, loop, step)
    found: For = _accumulating(written)
    program = replaced(program, written, found)
    names = Names.of(program)
    spread_out = _Spread(program, found, count, names.fresh(name), names, refuse)
    made = spread_out.group()
    new = replaced(program, found, made)
    kernel = next(k for k in new.kernels if made in loops_in(k))
    wrong = structure_fault(kernel)
    if wrong is not None:
        raise refuse(wrong[1], "separate the kernel before, and bind the loops outside")
    if wide := arrays_for_each_thread(kernel):
        raise refuse(f"every thread would need the array '{wide[0]}' for itself")
    context = context_at(program, found)
    block = made.body[-1]
    assert isinstance(block, For)
    reason = carried_dependence(made, context) or data_race(block, context_at(new, block))
    if reason is not None:
        raise refuse(reason)
    return new, Spread(spread_out.thread.name, spread_out.rounds, tuple(spread_out.arrays))


class _Spread:
    """Collects the shared arrays and the statements of one thread."""

    def __init__(self, program: LoopProgram, found: For, count: int, thread: str, names: Names,
                 refuse: Refusing) -> None:
        self.program, self.found, self.count, self.names, self.refuse = program, found, count, names, refuse
        self.thread = Var(thread, "i64")
        self.shared: list[Local] = []
        self.rounds: dict[str, str] = {}                # the divided loops, and the loops that replace them
        self.arrays: list[str] = []                     # that are new
        self.out: list[Stmt] = []
        self.read: set[str] = set()                     # since the last barrier
        self.written: set[str] = set()

    def group(self) -> For:
        """The grid loop: one group of threads for each iteration."""
        shared_out = 0
        for stmt in self.found.body:
            shared_out += isinstance(stmt, For)
            self.statement(stmt)
        if not shared_out:
            raise self.refuse("there is no loop in it to be shared out")
        block = For(self.thread.name, ZERO, index(self.count), ONE, "block", tidied(tuple(self.out)))
        return self.found.replace(mark="grid", body=(*self.shared, block))

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Local(shape=shape):
                if not all(isinstance(n, Const) for n in shape):
                    raise self.refuse(f"the shape of '{stmt.name}' is not constant, which shared memory needs")
                self.shared.append(stmt.replace(space="shared"))
            case Let():
                self.add(stmt, stmt)
            case For():
                self.loop(stmt)
            case If() if any(isinstance(n, Fail) for n in stmt.unique()):
                self.add(stmt, stmt)                    # every thread checks
            case _:
                self.add(stmt, self.alone(stmt))

    def alone(self, *stmts: Stmt) -> Stmt:
        """Statements for thread 0 only."""
        return If(Op("eq", (self.thread, ZERO)), stmts)

    def add(self, meaning: Stmt, *written: Stmt) -> None:
        """Append statements with the effects of `meaning`, after a barrier if these conflict with earlier ones."""
        r, w = set(reads(meaning)), set(writes(meaning))
        if r & self.written or w & (self.written | self.read):
            self.wait()
        self.read |= r
        self.written |= w
        self.out += written

    def wait(self) -> None:
        self.out.append(Barrier())
        self.read, self.written = set(), set()

    def loop(self, loop: For) -> None:
        """Divide the iterations of a loop among the threads."""
        if not is_const(loop.step, 1) or any(reads_memory(e) for e in (loop.lo, loop.hi)):
            raise self.refuse(f"the range of '{loop.name}' is not known before it runs, or its step is not 1")
        context: Context = context_at(self.program, loop)
        totals = [] if carried_dependence(loop, context) is None else self.totals(loop)
        own: dict[Expr, Expr] = {}
        for total in totals:
            local = Local(self.names.fresh(f"{total.ref.buffer}_own"), total.ref.dtype, (), "register")
            cell = Aref(local.name, (), local.type)
            own[total.ref] = cell
            self.arrays.append(local.name)
            self.out += [local, Setf(cell, identity(total.fn, local.type))]
        outer = Var(self.names.fresh(loop.name + "o"), "i64")
        self.rounds[loop.name] = outer.name
        at = canonical(loop.lo + outer * self.count + self.thread)
        rounds = canonical((loop.hi - loop.lo + (self.count - 1)) // index(self.count))
        body = with_value(_through(loop.body, own), loop, at)
        self.add(loop, For(outer.name, ZERO, rounds, ONE, "serial", (If(at < loop.hi, body),)))
        for total in totals:
            self.tree(total, own[total.ref])

    def totals(self, loop: For) -> list[Incf]:
        """The accumulations of a loop, one for each element. E536 if its iterations depend on each other otherwise."""
        found: dict[Expr, Incf] = {}
        inside = [loop.name, *[n.name for n in loop.walk() if isinstance(n, For | Let)]]
        private = {n.name for n in loop.walk() if isinstance(n, Local)}
        for node in loop.walk():
            if not isinstance(node, Incf) or not isinstance(node.ref, Aref) or node.ref.buffer in private:
                continue
            if not mentions(node.ref, inside) and not reads_memory_in(node.ref):
                before = found.setdefault(node.ref, node)
                if before.fn != node.fn:
                    raise self.refuse(f"{node.ref} takes values by two operators")
        for ref, total in found.items():
            if not is_monoid(total.fn, ref.dtype) or DTYPES[ref.dtype].kind == "complex":
                raise self.refuse(f"'{total.fn}' on {ref.dtype} is not added up by threads")
        if not found or not is_reduction_over(self.program, loop.name):
            raise self.refuse(f"the iterations of '{loop.name}' depend on each other")
        return list(found.values())

    def tree(self, total: Incf, own: Expr) -> None:
        """Add the partial sums of the threads pairwise, and add the total to the element."""
        part = Local(self.names.fresh(f"{total.ref.buffer}_part"), total.ref.dtype, (index(self.count),), "shared")
        self.shared.append(part)
        self.arrays.append(part.name)

        def cell(at: Expr) -> Aref:
            return Aref(part.name, (at,), part.type)
        self.out.append(Setf(cell(self.thread), own))
        half = self.count // 2
        while half:
            self.wait()
            self.out.append(If(self.thread < index(half),
                               (Incf(cell(self.thread), cell(self.thread + half), total.fn),)))
            half //= 2
        last = Incf(total.ref, cell(ZERO), total.fn)
        self.add(last, self.alone(last))


def _accumulating(node: Node) -> Any:
    """`(setf m (max m x))` as `(incf m x max)`, and so with every operator that accumulates."""
    match node:
        case Setf(ref=ref, value=Op(fn=fn, args=(a, b))) if fn in MONOIDS and a is not b and ref in (a, b):
            other = b if a is ref else a
            if not any(n is ref for n in other.unique()):
                return Incf(ref, other, fn)
    return node if isinstance(node, Expr) else node.map(_accumulating)


def reads_memory_in(ref: Aref) -> bool:
    """Does the index of an access read memory?"""
    return any(reads_memory(i) for i in ref.index)


def _through(stmts: tuple[Stmt, ...], own: dict[Expr, Expr]) -> tuple[Stmt, ...]:
    """The statements with the thread's own accumulators."""
    through: tuple[Stmt, ...] = substitute(stmts, own) if own else stmts
    return through

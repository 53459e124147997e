"""Blocks of a long scan, for threads: the total of each block, what is before each block, and the blocks from there.

    s = 0;  for i: s += X[i];  Y[i] = s
    ->  s = 0;  for each chunk:
          for block b:  t[b] = 0;  for i in the block: t[b] += X[i]
          for block b:  before = s;  s += t[b];  t[b] = before
          for block b:  r = t[b];  for i in the block: r += X[i];  Y[i] = r

Threads share the first and the last loop over blocks. What is accumulated is computed twice; a chunk is in cache when
it is read again. A block has a fixed number of elements, so that the result does not depend on the number of threads.
The algorithm is that of Blelloch, Prefix Sums and Their Applications (1990), for arrays longer than there are
processors.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.dtypes import is_float
from ..core.expr import Const, Expr, Op, Var, index
from ..core.monoids import identity
from ..core.node import Node
from ..core.program import Bind, InOrder, Schedule, Target
from ..frozen import frozen
from ..loop.effects import reads, writes, written
from ..loop.statements import ONE, ZERO, Aref, Fail, For, If, Incf, Let, Local, Setf, Stmt
from .inlining import inlined_statements
from .loop_builder import count_of_blocks
from .values import TensorProgram

BLOCK = 1 << 14         # elements of a block
CHUNK = 1 << 20         # elements of a chunk
LONG = 1 << 18          # elements from which threads pay


def shares_scans(program: TensorProgram) -> bool:
    """May threads share the scans of a program? A schedule that is given meets the loops as they are."""
    target = program.first(Target)
    return (target is not None and target.machine.threads and not target.machine.groups and program.opt >= 2
            and program.first(Schedule) is None)


def in_blocks(stmts: tuple[Stmt, ...], program: TensorProgram, fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    """The statements of a kernel, in blocks where it is one scan of many elements. `fresh`: a name that is free, from
    the one that is wanted."""
    scan = _Scan.of(stmts)
    if scan is None or (program.first(InOrder) is not None and not scan.is_exact):
        return stmts
    extent = scan.loop.hi
    if isinstance(extent, Var):
        extent = next((index(b.value) for b in program.all(Bind) if b.name == extent.name), extent)
    if isinstance(extent, Const):
        return scan.blocks(fresh) if extent.value >= LONG else stmts
    return (If(Op("lt", (extent, index(LONG))), stmts, scan.blocks(fresh)),)


@frozen
class _Scan:
    """A loop that accumulates into one scalar. `start`: sets the scalar before the loop. `add`: the accumulation.
    `step`: the statements of an iteration that accumulate, with the names that these use."""

    start: Setf
    loop: For
    add: Incf
    step: tuple[Stmt, ...]

    @classmethod
    def of(cls, stmts: Sequence[Stmt]) -> _Scan | None:
        """The scan that a kernel consists of. None if it is another kernel, or an iteration needs those before for
        more than their total."""
        match stmts:
            case (Local(name, _, ()), Setf(ref=Aref() as acc) as start, For(lo=lo, step=step) as loop) if (
                    acc.buffer == name and lo is ZERO and step is ONE):
                adds = [s for s in loop.body if name in writes(s)]
            case _:
                return None
        if len(adds) != 1 or any(isinstance(n, For | Local | Fail) for s in loop.body for n in s.walk()):
            return None
        match adds[0]:
            case Incf(ref) as add if ref is acc:
                pass
            case If(cond, (Incf(ref) as add,), ()) if ref is acc and name not in reads(cond):
                pass
            case _:
                return None
        needed = _needed(loop.body, adds[0])
        if name in reads(add.value) or any(name in reads(s) for s in needed if s is not adds[0]):
            return None
        return cls(start, loop, add, needed) if _reads_own_elements(loop, needed, name) else None

    @property
    def is_exact(self) -> bool:
        """Is the result the same in any order?"""
        return not (is_float(self.add.ref.dtype) and self.add.fn in ("add", "mul"))

    def blocks(self, fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
        """The loop over chunks, and in it those over blocks."""
        loop, acc, dtype = self.loop, self.add.ref, self.add.ref.dtype
        totals, running = fresh(f"{acc.buffer}_blocks"), Aref(fresh(acc.buffer), (), dtype)
        before, own = Var(fresh(f"{acc.buffer}_before"), dtype), Aref(fresh(acc.buffer), (), dtype)
        chunk = Var(fresh(f"{loop.name}_chunk"), "i64")
        first: Expr = Op("mul", (index(CHUNK), chunk))
        rest = Op("min", (Op("sub", (loop.hi, first)), index(CHUNK)))

        def over_blocks(body: Callable[[Var, Aref], tuple[Stmt, ...]]) -> For:
            block = Var(fresh(f"{loop.name}_block"), "i64")
            return For(block.name, ZERO, count_of_blocks(rest, BLOCK), ONE, "serial",
                       body(block, Aref(totals, (block,), dtype)))

        def over_elements(block: Var, body: tuple[Stmt, ...], into: Aref) -> For:
            start, inner = Op("mul", (index(BLOCK), block)), Var(fresh(loop.name), "i64")
            new: dict[Node, Expr] = {Var(loop.name, "i64"): Op("add", (Op("add", (first, start)), inner)), acc: into}
            length = Op("min", (Op("sub", (rest, start)), index(BLOCK)))
            return For(inner.name, ZERO, length, ONE, "serial", inlined_statements(body, fresh, {}, new))

        def summed(block: Var, total: Aref) -> tuple[Stmt, ...]:
            return Setf(total, identity(self.add.fn, dtype)), over_elements(block, self.step, total)

        def carried(block: Var, total: Aref) -> tuple[Stmt, ...]:
            return Let(before.name, dtype, running), Incf(running, total, self.add.fn), Setf(total, before)

        def scanned(block: Var, total: Aref) -> tuple[Stmt, ...]:
            return Local(own.buffer, dtype, (), "register"), Setf(own, total), over_elements(block, loop.body, own)

        body = (Local(totals, dtype, (index(CHUNK // BLOCK),), "stack"), over_blocks(summed), over_blocks(carried),
                over_blocks(scanned))
        return (Local(running.buffer, dtype, (), "register"), Setf(running, self.start.value),
                For(chunk.name, ZERO, count_of_blocks(loop.hi, CHUNK), ONE, "serial", body))


def _needed(body: Sequence[Stmt], wanted: Stmt) -> tuple[Stmt, ...]:
    """A statement of a body, with the names that it uses."""
    names: set[str] = set()
    found: list[Stmt] = []
    for s in reversed(body):
        if s is wanted or (isinstance(s, Let) and s.name in names):
            found.append(s)
            names |= s.variables
    return tuple(reversed(found))


def _reads_own_elements(loop: For, step: tuple[Stmt, ...], total: str) -> bool:
    """Does what is accumulated not depend on what the loop stores? It may read an element that its own iteration stores
    later."""
    read = (written(loop.body) - {total}) & {name for s in step for name in reads(s)}
    if not read:
        return True
    last = max(n for n, s in enumerate(loop.body) if s in step and reads(s) & read)
    places = {n for s in loop.body for n in s.unique() if isinstance(n, Aref) and n.buffer in read}
    return (not written(loop.body[:last + 1]) & read and len(places) == len(read)
            and all(Var(loop.name, "i64") in p.index for p in places))

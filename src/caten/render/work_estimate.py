"""Estimate the operations of a parallel loop, to decide at run time whether it runs on several threads."""
from __future__ import annotations

import math
from collections.abc import Iterable

from ..core.dtypes import DTYPES
from ..core.expr import Cast, Const, Expr, Op, Var, index, number
from ..core.node import Node, substitute
from ..core.scalars import OPERATORS
from ..loop.statements import Aref, For, If, Incf, Let, Local, LoopProgram, Ref, Repeat, Stmt, Transpose, Vref
from .linear_offsets import folded, plus, times

# Operations below which a parallel loop stays on one thread: 7 to 25 microseconds, a few times what it costs to share a
# loop between threads that wait for work; to wake threads that sleep costs more. Where several kernels follow each
# other, a loop also waits for what another processor has in its cache.
ALONE, AMONG_OTHERS = 3 << 15, 3 << 16
ACCESS = 2                # operations per 16 bytes of a memory access
FUNCTION = 16             # operations of a call of the C library
UNKNOWN = 16              # assumed trip count of a loop with a range read from an array


def threshold(program: LoopProgram) -> int:
    """The operations from which on threads share a loop of this program."""
    return ALONE if len(program.kernels) == 1 and program.first(Repeat) is None else AMONG_OTHERS


def work(loop: For) -> Expr:
    """Operations of a loop, as a formula over the variables outside it."""
    registers = frozenset([n.name for n in loop.unique() if isinstance(n, Local) and n.space == "register"])
    middle = {Var(loop.name, "i64"): (loop.lo + loop.hi) // 2}            # the mean row length of a triangle
    total = folded(times(trips(loop), substitute(operations(loop.body, registers), middle)))
    assert isinstance(total, Expr)
    return total


def operations(stmts: tuple[Stmt, ...], registers: frozenset[str]) -> Expr:
    """Operations of a list of statements; a vector operation counts as one. The trip count of an inner loop is that in
    the first outer iteration. Repeated expressions count once; locals in `registers` and index arithmetic are free."""
    total: Expr = index(0)
    seen: set[Node] = set()
    for stmt in reversed(stmts):
        match stmt:
            case Let(name=name, type=dtype, value=value):
                total = plus(substitute(total, {Var(name, dtype): value}), index(_size((value,), registers, seen)))
            case For() if _is_written_out(stmt):
                total = plus(index(_written_out(stmt, registers)), total)
            case For(name=name, lo=lo, body=body):
                inside = substitute(operations(body, registers), {Var(name, "i64"): lo})
                total = plus(times(trips(stmt), inside), total)
            case If(cond=cond, then=then, otherwise=otherwise):
                arms = plus(operations(then, registers), operations(otherwise, registers))
                total = plus(plus(arms, index(_size((cond,), registers, seen))), total)
            case _:
                parts = [c for c in stmt.children if isinstance(c, Expr)]
                total = plus(index(_cost(stmt, registers) + _size(parts, registers, seen)), total)
    return total


def trips(loop: For) -> Expr:
    """The trip count of a loop."""
    if not isinstance(loop.step, Const) or any(isinstance(n, Ref) for e in (loop.lo, loop.hi) for n in e.unique()):
        return index(UNKNOWN)
    extent = loop.hi if loop.lo is index(0) else loop.hi - loop.lo
    count = folded(extent if loop.step.value == 1 else extent // loop.step)
    assert isinstance(count, Expr)
    return count


def in_floats(expr: Expr, dtype: str) -> Expr:
    """The formula in floating-point arithmetic, which cannot wrap around."""
    match expr:
        case Const(value=value):
            return number(value, dtype)
        case Op(fn="floordiv", args=(x, y)):
            return Op("floor", (Op("div", (in_floats(x, dtype), in_floats(y, dtype))),))
        case Op(fn="add" | "sub" | "mul" | "max" | "min" as fn, args=(x, y)):
            return Op(fn, (in_floats(x, dtype), in_floats(y, dtype)))
    return Cast(dtype, expr)


def _size(exprs: Iterable[Expr], registers: frozenset[str], seen: set[Node]) -> int:
    """Operations of expressions, without nodes in `seen`; adds the nodes there."""
    size = 0
    for node in dict.fromkeys(n for expr in exprs for n in expr.unique()):
        if node in seen:
            continue
        seen.add(node)
        size += _cost(node, registers)
    return size


def _cost(node: Node, registers: frozenset[str]) -> int:
    """Operations of one node without its children."""
    match node:
        case Vref(buffer=buffer, axis=axis) if axis != -1 and buffer not in registers:       # a strided access
            return ACCESS * node.lanes
        case Aref(buffer=buffer) | Vref(buffer=buffer):
            return 0 if buffer in registers else ACCESS * max(1, node.lanes * DTYPES[node.dtype].bytes // 16)
        case Op(fn=fn):
            return 0 if node.dtype == "i64" else FUNCTION if OPERATORS[fn].libm and OPERATORS[fn].ulp > 0.5 else 1
        case Transpose(ref=ref, value=value):                             # the other vectors of both blocks
            return (ref.count - 1) * _cost(value, registers) + (value.count - 1) * _cost(ref, registers)
    return int(isinstance(node, Incf))


def _is_written_out(loop: For) -> bool:
    """Are the loop and all loops inside it unrolled?"""
    return all(n.mark == "unroll" and isinstance(trips(n), Const) for n in loop.unique() if isinstance(n, For))


def _written_out(loop: For, registers: frozenset[str]) -> int:
    """Operations of unrolled loops. An expression that does not depend on a loop variable counts once for all its
    iterations."""
    counts = {n.name: trips(n) for n in loop.unique() if isinstance(n, For)}
    lengths = {name: int(count.value) for name, count in counts.items() if isinstance(count, Const)}
    total = 0
    for node in loop.unique():
        cost = _cost(node, registers)
        names = {n.name for n in node.unique() if isinstance(n, Var)} if cost else set()
        total += cost * math.prod([lengths.get(name, 1) for name in names])
    return total

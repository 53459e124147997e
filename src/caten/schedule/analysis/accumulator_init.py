"""Elimination of initialisation nests: the first partial sum is stored instead of the identity element."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise

from ...core.expr import TRUE, Const, Expr, Op, Var, index
from ...core.monoids import identity
from ...core.program import Scalar
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import ZERO, Aref, For, If, LoopProgram, Setf, Stmt, is_const
from .loop_queries import context_at, largest, mentions, reads_memory, replaced, stride_in, trail, use_count


def beginning(program: LoopProgram, found: For, ref: Aref, axes: Sequence[For], fn: str,
              shape: tuple[Expr, ...]) -> tuple[LoopProgram, Expr]:
    """Remove the nest that sets the whole array of `ref` to the identity element of `fn`. Also returns the condition,
    inside the loops around `found`, that holds for the first of the sums over `axes` of an element. The nest stays
    under the condition that there is no such sum. Raises ValueError with the reason if an element may have no first
    sum, or two."""
    way = trail(program, found)
    around = [stmt for _, stmt in way[:-1] if isinstance(stmt, For)]
    nest = around[0] if around else found
    conds, outside = _conditions(program, way, found), context_at(program, nest)
    blank = _blank(way, ref, shape, identity(fn, ref.dtype), conds, outside)
    if use_count(nest, ref.buffer) > use_count(found, ref.buffer):
        raise ValueError(f"{ref.buffer} is also used outside of '{found.name}'")
    context = context_at(program, found)
    sums = [loop for loop in around if not mentions(ref, (loop.name,))]
    for loop in sums:
        if not _is_of_the_call(program, (loop.lo, loop.hi)) or not is_const(loop.step, 1):
            raise ValueError(f"'{loop.name}' does not sum the same for every element")
    reason = obstacle_to_cover(ref, shape, [*[loop for loop in around if loop not in sums], *axes], context)
    if reason is not None:
        raise ValueError(reason)
    needed = [*map(_not, conds),
              *[Op("le", (loop.hi, loop.lo)) for loop in sums if not outside.proves(Op("lt", (loop.lo, loop.hi)))]]
    at, there = context_at(program, blank), _conditions(program, trail(program, blank), blank)
    needed = [cond for cond in needed if _not(cond) not in there and not at.refutes(cond)]
    stays = (If(_joined("or", needed), (blank,)),) if needed else ()
    first = [Op("eq", (Var(loop.name, "i64"), loop.lo)) for loop in sums]
    return replaced(program, blank, *stays), _joined("and", first) if first else TRUE


def obstacle_to_cover(ref: Aref, shape: tuple[Expr, ...], loops: Sequence[For], context: Context) -> str | None:
    """Why nested loops do not access each element of an array exactly once; None if they do. They do if each index is a
    mixed-radix number whose digits are loops; a digit ends at its radix or, in the last tile, at the edge of the
    array."""
    for loop in loops:
        if not is_const(loop.lo, 0) or not is_const(loop.step, 1):
            return f"'{loop.name}' does not count from 0"
        context = context.inside(loop)
        if sum(1 for i in ref.index if mentions(i, (loop.name,))) != 1:
            return f"'{loop.name}' does not move one index of {ref}"
    for i, extent in zip(ref.index, shape, strict=True):
        digits = [(stride_in(i, loop.name) or 0, loop) for loop in loops if mentions(i, (loop.name,))]
        reason = _not_all(i, extent, sorted(digits, key=lambda d: -d[0]), context)
        if reason is not None:
            return reason
        context = context.given(Op("lt", (i, extent)))
    return None


def _not_all(value: Expr, count: Expr, digits: list[tuple[int, For]], context: Context) -> str | None:
    """Why the digits (stride, loop) do not produce each number below `count` exactly once; None if they do."""
    total: Expr = ZERO
    for stride, loop in digits:
        total = total + Var(loop.name, "i64") * stride
    if not is_const(canonical(value - total), 0) or not digits or digits[-1][0] != 1:
        return f"{value} is not counted by digits"
    left, place = count, 0
    for stride, loop in digits:
        most = largest(loop.hi)
        if place and (most is None or most * stride > place):
            return f"two iterations of '{loop.name}' and of the loops around it meet in one element"
        whole = canonical((left + (stride - 1)) // stride)
        reached = loop.hi is whole or is_const(loop.hi, place // stride)
        if not reached and not context.proves(Op("le", (left, loop.hi * stride))):
            return f"'{loop.name}' does not reach all elements"
        left = canonical(Op("min", (left - Var(loop.name, "i64") * stride, index(stride))))
        place = stride
    return None


def _conditions(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], found: For) -> list[Expr]:
    """The conditions around a loop. Raises ValueError unless they are constant during a call."""
    conds: list[Expr] = []
    for (_, stmt), (_, inner) in pairwise(way):
        if isinstance(stmt, If):
            if not _is_of_the_call(program, (stmt.cond,)):
                raise ValueError(f"'{found.name}' runs only where {stmt.cond}")
            conds.append(stmt.cond if any(s is inner for s in stmt.then) else _not(stmt.cond))
    return conds


def _is_of_the_call(program: LoopProgram, exprs: Iterable[Expr]) -> bool:
    """Is each expression constant during a call?"""
    known = {*program.sizes, *[s.name for s in program.all(Scalar)]}
    return all(not reads_memory(e) and all(n.name in known for n in e.unique() if isinstance(n, Var)) for e in exprs)


def _blank(way: Sequence[tuple[tuple[Stmt, ...], Stmt]], ref: Aref, shape: tuple[Expr, ...], value: Const,
           conds: Sequence[Expr], context: Context) -> For:
    """The earlier nest that sets the whole array to `value` whenever the outermost loop runs, around which `conds`
    hold. Nothing between the two uses the array. Raises ValueError if there is none."""
    outside = [before for n, (before, _) in enumerate(way) if not any(isinstance(s, For) for _, s in way[:n])]
    for before in reversed(outside):
        for other in reversed(before):
            if not use_count(other, ref.buffer):
                continue
            nest = other
            while isinstance(nest, If) and (len(nest.then), nest.otherwise) == (1, ()) \
                    and _holds(nest.cond, conds, context):
                nest = nest.then[0]
            if isinstance(nest, For) and _sets_all(nest, ref.buffer, shape, value):
                return nest
            raise ValueError(f"what uses {ref.buffer} before does not set all of it to {value}")
    raise ValueError(f"nothing before sets {ref.buffer} to {value}")


def _holds(cond: Expr, conds: Sequence[Expr], context: Context) -> bool:
    """Is a condition among `conds`, or implied by the context?"""
    if isinstance(cond, Op) and cond.fn == "or" and any(_holds(part, conds, context) for part in cond.args):
        return True
    return cond in conds or context.proves(cond)


def _sets_all(nest: For, buffer: str, shape: tuple[Expr, ...], value: Const) -> bool:
    """Does a nest only set every element of an array to a value?"""
    loops: list[For] = []
    stmt: Stmt = nest
    while isinstance(stmt, For) and len(stmt.body) == 1:
        loops.append(stmt)
        stmt = stmt.body[0]
    match stmt:
        case Setf(ref=Aref(buffer=name, index=where), value=Const() as given) if name == buffer and given is value:
            extents = {loop.name: loop.hi for loop in loops if is_const(loop.lo, 0) and is_const(loop.step, 1)}
            names = [i.name for i in where if isinstance(i, Var)]
            return (len(set(names)) == len(where) == len(loops) == len(extents)
                    and all(extents.get(name) is extent for name, extent in zip(names, shape, strict=True)))
    return False


def _not(cond: Expr) -> Expr:
    return cond.args[0] if isinstance(cond, Op) and cond.fn == "not" else Op("not", (cond,))


def _joined(fn: str, conds: Sequence[Expr]) -> Expr:
    return reduce(lambda whole, cond: Op(fn, (whole, cond)), conds)

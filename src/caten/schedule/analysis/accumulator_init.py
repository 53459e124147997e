"""Elimination of initialisation nests: the first partial sum is stored, or added to the start."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise

from ...core.expr import TRUE, Const, Expr, Op, Var, index
from ...core.monoids import identity
from ...core.node import substitute
from ...core.program import Scalar
from ...loop import effects
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import ZERO, Aref, For, If, LoopProgram, Setf, Stmt, is_const
from .loop_queries import context_at, largest, mentions, reads_memory, replaced, stride_in, trail, use_count, writes


def beginning(program: LoopProgram, found: For, ref: Aref, axes: Sequence[For], fn: str,
              shape: tuple[Expr, ...]) -> tuple[LoopProgram, Expr, Expr | None]:
    """Remove the nest that sets the whole array of `ref` to the identity element of `fn`, or to a start that depends on
    the element. Also returns the condition, inside the loops around `found`, that holds for the first of the sums over
    `axes` of an element, and the start of the element `ref` (None: the identity element). The nest stays under the
    condition that there is no such sum. Raises ValueError with the reason if an element may have no first sum, or
    two."""
    way = trail(program, found)
    around = [stmt for _, stmt in way[:-1] if isinstance(stmt, For)]
    nest = around[0] if around else found
    conds, outside = conditions_around(program, way, found), context_at(program, nest)
    blank, start = _blank(way, ref, shape, identity(fn, ref.dtype), conds, outside)
    if use_count(nest, ref.buffer) > use_count(found, ref.buffer):
        raise ValueError(f"{ref.buffer} is also used outside of '{found.name}'")
    context = context_at(program, found)
    sums = [loop for loop in around if not mentions(ref, (loop.name,))]
    for loop in sums:
        if not is_of_the_call(program, (loop.lo, loop.hi)) or not is_const(loop.step, 1):
            raise ValueError(f"'{loop.name}' does not sum the same for every element")
    reason = obstacle_to_cover(ref, shape, [*[loop for loop in around if loop not in sums], *axes], context)
    if reason is not None:
        raise ValueError(reason)
    first = [Op("eq", (Var(loop.name, "i64"), loop.lo)) for loop in sums]
    return without(program, blank, conds, sums, outside), joined("and", first) if first else TRUE, start


def without(program: LoopProgram, other: For, conds: Sequence[Expr], sums: Sequence[For],
            outside: Context) -> LoopProgram:
    """The program without a nest whose work is done in the sums over `sums`, around which `conds` hold. The nest stays
    for calls without these sums. `outside`: the context around them."""
    needed = [*map(negated, conds),
              *[Op("le", (loop.hi, loop.lo)) for loop in sums if not outside.proves(Op("lt", (loop.lo, loop.hi)))]]
    at, there = context_at(program, other), conditions_around(program, trail(program, other), other)
    needed = [cond for cond in needed if negated(cond) not in there and not at.refutes(cond)]
    return replaced(program, other, *((If(joined("or", needed), (other,)),) if needed else ()))


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


def conditions_around(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], found: For) -> list[Expr]:
    """The conditions around a loop. Raises ValueError unless they are constant during a call."""
    conds: list[Expr] = []
    for (_, stmt), (_, inner) in pairwise(way):
        if isinstance(stmt, If):
            if not is_of_the_call(program, (stmt.cond,)):
                raise ValueError(f"'{found.name}' runs only where {stmt.cond}")
            conds.append(stmt.cond if any(s is inner for s in stmt.then) else negated(stmt.cond))
    return conds


def is_of_the_call(program: LoopProgram, exprs: Iterable[Expr]) -> bool:
    """Is each expression constant during a call?"""
    known = {*program.sizes, *[s.name for s in program.all(Scalar)]}
    return all(not reads_memory(e) and all(n.name in known for n in e.unique() if isinstance(n, Var)) for e in exprs)


def _blank(way: Sequence[tuple[tuple[Stmt, ...], Stmt]], ref: Aref, shape: tuple[Expr, ...], value: Const,
           conds: Sequence[Expr], context: Context) -> tuple[For, Expr | None]:
    """The earlier nest that sets the whole array whenever the outermost loop runs, around which `conds` hold, and the
    start of the element `ref`, None if it is `value`. Nothing between the two uses the array, or writes what the start
    reads. Raises ValueError if there is none."""
    outside = [n for n in range(len(way)) if not any(isinstance(s, For) for _, s in way[:n])]
    written: set[str] = set(effects.writes(way[outside[-1]][1])) - {ref.buffer}
    for before in [way[n][0] for n in reversed(outside)]:
        for other in reversed(before):
            if not use_count(other, ref.buffer):
                written |= effects.writes(other)
                continue
            nest = other
            while isinstance(nest, If) and (len(nest.then), nest.otherwise) == (1, ()) \
                    and holds(nest.cond, conds, context):
                nest = nest.then[0]
            start = _start(nest, ref, shape, context) if isinstance(nest, For) else None
            if start is None or written & effects.reads(start):
                raise ValueError(f"what uses {ref.buffer} before does not set all of it")
            assert isinstance(nest, For)
            return nest, None if start is value else start
    raise ValueError(f"nothing before sets {ref.buffer}")


def holds(cond: Expr, conds: Sequence[Expr], context: Context) -> bool:
    """Is a condition among `conds`, or implied by the context?"""
    if isinstance(cond, Op) and cond.fn == "or" and any(holds(part, conds, context) for part in cond.args):
        return True
    return cond in conds or context.proves(cond)


def _start(nest: For, ref: Aref, shape: tuple[Expr, ...], context: Context) -> Expr | None:
    """The value to which a nest that only sets every element of an array sets the element `ref`; None for others."""
    match body_of_each(nest, ref, shape, context):
        case (Setf(value=value),) if not use_count(value, ref.buffer):
            return value
    return None


def body_of_each(nest: For, ref: Aref, shape: tuple[Expr, ...], context: Context) -> tuple[Stmt, ...]:
    """The body of a perfect nest for the element `ref`, if the nest visits every element of the array once, and its
    body stores to no other element; otherwise nothing."""
    loops: list[For] = []
    body: tuple[Stmt, ...] = (nest,)
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    found = {s.ref.index for s in writes(body) if isinstance(s.ref, Aref) and s.ref.buffer == ref.buffer}
    extents = {loop.name: loop.hi for loop in loops if is_const(loop.lo, 0) and is_const(loop.step, 1)}
    if len(found) != 1:
        return ()
    (where,) = found
    names = [i.name for i in where if isinstance(i, Var)]
    if not (len(set(names)) == len(where) == len(loops) == len(extents)
            and all(name in extents and (extents[name] is extent or context.proves(Op("le", (extent, extents[name]))))
                    for name, extent in zip(names, shape, strict=True))):
        return ()
    moved: tuple[Stmt, ...] = substitute(body, {Var(name, "i64"): i for name, i in zip(names, ref.index, strict=True)})
    return moved


def negated(cond: Expr) -> Expr:
    return cond.args[0] if isinstance(cond, Op) and cond.fn == "not" else Op("not", (cond,))


def joined(fn: str, conds: Sequence[Expr]) -> Expr:
    return reduce(lambda whole, cond: Op(fn, (whole, cond)), conds)

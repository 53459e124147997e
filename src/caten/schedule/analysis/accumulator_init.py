"""Elimination of initialisation nests: the first partial sum is stored, or added to the start."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise

from ...core.expr import TRUE, Const, Expr, Op, Var, index
from ...core.monoids import identity
from ...core.node import substitute
from ...core.program import Scalar
from ...frozen import frozen
from ...loop import effects
from ...loop.accesses import stride_in
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import ZERO, Aref, For, If, LoopProgram, Setf, Stmt, Vref, is_const
from .loop_queries import context_at, largest, mentions, reads_memory, replaced, trail, use_count, writes


@frozen
class Region:
    """The elements of an array that a nest visits: for each axis the first index and how many follow from there (None:
    just this one)."""

    first: tuple[Expr, ...]
    extents: tuple[Expr | None, ...]

    def within(self, index: Sequence[Expr]) -> list[tuple[Expr, Expr | None]]:
        """The place of an element in the region, with the extents."""
        return [(i if is_const(first, 0) else canonical(i - first), extent)
                for i, first, extent in zip(index, self.first, self.extents, strict=True)]


@frozen
class Begun:
    """What begins sums: `start`, the start of the element (None: the identity element), which holds for the first of
    its sums (`first`). `region`: the elements. `level`: how far down the path to the sums what begins them is."""

    first: Expr
    start: Expr | None
    region: Region
    level: int


def beginning(program: LoopProgram, found: For, ref: Aref, axes: Sequence[For], fn: str,
              shape: tuple[Expr, ...]) -> tuple[LoopProgram, Begun]:
    """Remove the nest that sets the elements of the array of `ref` which are summed up to the identity element of `fn`,
    or to a start that depends on the element. Loops may be around both. The nest stays under the condition that there
    is no sum over `axes` of an element. Raises ValueError with the reason if an element may have no first sum, or
    two."""
    way = trail(program, found)
    blank, level, region, start = _blank(program, way, ref, shape, identity(fn, ref.dtype))
    shared, around = loops_on(way[:level]), loops_on(way[level:-1])
    nest = around[0] if around else found
    conds, outside = conditions_around(program, way[level:], found, shared), context_at(program, nest)
    if use_count(nest, ref.buffer) > use_count(found, ref.buffer):
        raise ValueError(f"{ref.buffer} is also used outside of '{found.name}'")
    sums = [loop for loop in around if not mentions(ref, (loop.name,))]
    for loop in sums:
        if not is_of_the_call(program, (loop.lo, loop.hi), shared) or not is_const(loop.step, 1):
            raise ValueError(f"'{loop.name}' does not sum the same for every element")
    context = reduce(Context.given, conds, outside)
    reason = obstacle_to_cover(ref, region, [*[loop for loop in around if loop not in sums], *axes], context)
    if reason is not None:
        raise ValueError(reason)
    first = [Op("eq", (Var(loop.name, "i64"), loop.lo)) for loop in sums]
    begun = Begun(joined("and", first) if first else TRUE, start, region, level)
    return without(program, blank, conds, sums, outside, shared), begun


def loops_on(way: Sequence[tuple[tuple[Stmt, ...], Stmt]]) -> list[For]:
    """The loops on a path."""
    return [stmt for _, stmt in way if isinstance(stmt, For)]


def without(program: LoopProgram, other: For, conds: Sequence[Expr], sums: Sequence[For],
            outside: Context, shared: Sequence[For]) -> LoopProgram:
    """The program without a nest whose work is done in the sums over `sums`, around which `conds` hold. The nest stays
    for calls without these sums. `outside`: the context around them; `shared`: the loops around both."""
    needed = [*map(negated, conds),
              *[Op("le", (loop.hi, loop.lo)) for loop in sums if not outside.proves(Op("lt", (loop.lo, loop.hi)))]]
    way = trail(program, other)
    inside = next((n + 1 for n in reversed(range(len(way))) if way[n][1] in shared), 0)
    at, there = context_at(program, other), conditions_around(program, way[inside:], other, shared)
    needed = [cond for cond in needed if negated(cond) not in there and not at.refutes(cond)]
    return replaced(program, other, *((If(joined("or", needed), (other,)),) if needed else ()))


def obstacle_to_cover(ref: Aref, region: Region, loops: Sequence[For], context: Context) -> str | None:
    """Why nested loops do not access each element of a region exactly once; None if they do. They do if each index is a
    mixed-radix number whose digits are loops; a digit ends at its radix or, in the last tile, at the edge of the
    region. `context`: around the loops, which may have no iteration."""
    for loop in loops:
        if not is_const(loop.lo, 0) or not is_const(loop.step, 1):
            return f"'{loop.name}' does not count from 0"
        if sum(1 for i in ref.index if mentions(i, (loop.name,))) != 1:
            return f"'{loop.name}' does not move one index of {ref}"
    for i, extent in region.within(ref.index):
        if extent is None:
            if not is_const(i, 0):
                return f"{ref} is another element than the one that is set before"
            continue
        digits = [(stride_in(i, loop.name) or 0, loop) for loop in loops if mentions(i, (loop.name,))]
        reason = _not_all(i, extent, sorted(digits, key=lambda d: -d[0]), context)
        if reason is not None:
            return reason
        context = reduce(Context.inside, [loop for _, loop in digits], context).given(Op("lt", (i, extent)))
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
        context = context.inside(loop)
        left = canonical(Op("min", (left - Var(loop.name, "i64") * stride, index(stride))))
        place = stride
    return None


def conditions_around(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], found: For,
                      shared: Sequence[For]) -> list[Expr]:
    """The conditions around a loop on a path. Raises ValueError unless they are constant during an iteration of the
    `shared` loops."""
    conds: list[Expr] = []
    for (_, stmt), (_, inner) in pairwise(way):
        if isinstance(stmt, If):
            if not is_of_the_call(program, (stmt.cond,), shared):
                raise ValueError(f"'{found.name}' runs only where {stmt.cond}")
            conds.append(stmt.cond if any(s is inner for s in stmt.then) else negated(stmt.cond))
    return conds


def is_of_the_call(program: LoopProgram, exprs: Iterable[Expr], shared: Sequence[For]) -> bool:
    """Is each expression constant during an iteration of the `shared` loops, or without these during a call?"""
    known = {*program.sizes, *[s.name for s in program.all(Scalar)], *[loop.name for loop in shared]}
    return all(not reads_memory(e) and all(n.name in known for n in e.unique() if isinstance(n, Var)) for e in exprs)


def _blank(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], ref: Aref, shape: tuple[Expr, ...],
           value: Const) -> tuple[For, int, Region, Expr | None]:
    """The earlier nest that sets all elements of a region whenever the sums run, the level of the path on which it is,
    the region, and the start of the element `ref`, None if it is `value`. Nothing between the two uses the array, or
    writes what the start reads. Raises ValueError if there is none."""
    written: set[str] = set()
    for level in reversed(range(len(way))):
        before, stmt = way[level]
        written |= effects.writes(stmt) - {ref.buffer}
        for other in reversed(before):
            if not use_count(other, ref.buffer):
                written |= effects.writes(other)
                continue
            shared, around = loops_on(way[:level]), loops_on(way[level:])
            conds = conditions_around(program, way[level:], around[-1], shared)
            context, nest = context_at(program, around[0]), other
            while isinstance(nest, If) and (len(nest.then), nest.otherwise) == (1, ()) \
                    and holds(nest.cond, conds, context):
                nest = nest.then[0]
            found = visited(nest, ref, shape, context) if isinstance(nest, For) else None
            match found:
                case (region, (Setf(value=start),)) if _reads_no_other(start, ref) and not (
                        written & effects.reads(start)) and is_of_the_call(
                            program, [*region.first, *[e for e in region.extents if e is not None]], shared):
                    assert isinstance(nest, For)
                    return nest, level, region, None if start is value else start
            raise ValueError(f"what uses {ref.buffer} before does not set all of it")
    raise ValueError(f"nothing before sets {ref.buffer}")


def _reads_no_other(start: Expr, ref: Aref) -> bool:
    """Does a start read no other element of its array than that which it sets?"""
    return all(n is ref for n in start.unique() if isinstance(n, Aref | Vref) and n.buffer == ref.buffer)


def holds(cond: Expr, conds: Sequence[Expr], context: Context) -> bool:
    """Is a condition among `conds`, or implied by the context?"""
    if isinstance(cond, Op) and cond.fn == "or" and any(holds(part, conds, context) for part in cond.args):
        return True
    return cond in conds or context.proves(cond)


def visited(nest: For, ref: Aref, shape: tuple[Expr, ...], context: Context) -> tuple[Region, tuple[Stmt, ...]] | None:
    """The region of an array that a perfect nest visits, each element once, and its body for the element `ref`, if the
    body stores to no other element; otherwise None."""
    loops: list[For] = []
    body: tuple[Stmt, ...] = (nest,)
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    extents = {loop.name: loop.hi for loop in loops if is_const(loop.lo, 0) and is_const(loop.step, 1)}
    found = {s.ref.index for s in writes(body) if isinstance(s.ref, Aref) and s.ref.buffer == ref.buffer}
    if len(found) != 1 or len(extents) < len(loops):
        return None
    (where,) = found
    moved: dict[str, int] = {}
    first, counts = list[Expr](), list[Expr | None]()
    for axis, (i, extent) in enumerate(zip(where, shape, strict=True)):
        names = [name for name in extents if mentions(i, (name,))]
        start = canonical(i - Var(names[0], "i64")) if names else canonical(i)
        if len(names) > 1 or mentions(start, names) or (names and names[0] in moved):
            return None
        first.append(start)
        count = extents[names[0]] if names else None
        is_whole = count is not None and is_const(start, 0) and context.proves(Op("le", (extent, count)))
        counts.append(extent if is_whole else count)
        moved |= dict.fromkeys(names, axis)
    if len(moved) < len(loops):
        return None
    region = Region(tuple(first), tuple(counts))
    places = [i for i, _ in region.within(ref.index)]
    own: tuple[Stmt, ...] = substitute(body, {Var(name, "i64"): places[axis] for name, axis in moved.items()})
    same = {n: ref for stmt in own for n in stmt.unique() if isinstance(n, Aref) and n.buffer == ref.buffer
            and all(canonical(i) is canonical(j) for i, j in zip(n.index, ref.index, strict=True))}
    return region, substitute(own, same)


def negated(cond: Expr) -> Expr:
    return cond.args[0] if isinstance(cond, Op) and cond.fn == "not" else Op("not", (cond,))


def joined(fn: str, conds: Sequence[Expr]) -> Expr:
    return reduce(lambda whole, cond: Op(fn, (whole, cond)), conds)

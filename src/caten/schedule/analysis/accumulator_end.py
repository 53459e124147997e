"""Epilogues: a nest that maps each sum, moved to where the last part of the sum is in registers."""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import TRUE, Expr, Op, Var
from ...core.node import contains
from ...loop import effects
from ...loop.context import Context
from ...loop.statements import ONE, Aref, For, If, Let, Local, LoopProgram, Setf, Stmt
from .access_bounds import is_inside, shapes
from .accumulator_init import Begun, Region, conditions_around, holds, joined, loops_on, visited, without
from .loop_queries import context_at, mentions, trail, use_count


def ending(program: LoopProgram, found: For, ref: Aref, shape: tuple[Expr, ...], begun: Begun,
           tile: Context) -> tuple[LoopProgram, Expr, tuple[Stmt, ...]]:
    """Remove the nest behind the sums that maps each element that they visit. Also returns the condition, inside
    the loops around `found`, that holds for the last of the sums of an element, and the statements that map the element
    `ref`. The nest stays under the condition that there is no sum. `tile`: the context of an element of the array in
    the sums, which are known to visit each element of the region of `begun` (see `beginning`). Raises ValueError with
    the reason if there is no such nest."""
    way = trail(program, found)
    inside = next((n + 1 for n in reversed(range(begun.level)) if isinstance(way[n][1], For)), 0)
    shared, around = loops_on(way[:inside]), loops_on(way[inside:-1])
    conds = conditions_around(program, way[inside:], found, shared)
    outside = context_at(program, around[0] if around else found)
    nest, body = _epilogue(program, way, inside, ref, shape, begun.region, conds, outside)
    known = shapes(program)
    for access in [n for stmt in body for n in stmt.unique() if isinstance(n, Aref)]:
        if not is_inside(access, known[access.buffer], tile):
            raise ValueError(f"{access} is not proven to stay inside {access.buffer} for each element of a tile")
    sums = [loop for loop in around if not mentions(ref, (loop.name,))]
    last = [Op("eq", (Var(loop.name, "i64"), loop.hi - ONE)) for loop in sums]
    return without(program, nest, conds, sums, outside, shared), joined("and", last) if last else TRUE, body


def _epilogue(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], inside: int, ref: Aref,
              shape: tuple[Expr, ...], region: Region, conds: Sequence[Expr],
              context: Context) -> tuple[For, tuple[Stmt, ...]]:
    """The nest that maps the elements, and its body for the element `ref`: the first statement behind the outermost
    loop of the sums that uses the array. `inside`: the level inside the loops that are around both."""
    top = next(n for n, (_, stmt) in enumerate(way) if n >= inside and isinstance(stmt, For))
    passed = [way[top][1]]
    for level in reversed(range(inside, top + 1)):
        for other in _behind(program, way, level):
            if not use_count(other, ref.buffer):
                passed.append(other)
                continue
            nest = other
            while isinstance(nest, If) and (len(nest.then), nest.otherwise) == (1, ()) \
                    and holds(nest.cond, conds, context):
                nest = nest.then[0]
            found = visited(nest, ref, shape, context) if isinstance(nest, For) else None
            if found is None or found[0] != region or not _maps(found[1], ref):
                raise ValueError(f"what uses {ref.buffer} next does not map each element of it")
            assert isinstance(nest, For)
            _check_move(nest, ref, passed)
            return nest, found[1]
    raise ValueError(f"nothing behind maps {ref.buffer}")


def _behind(program: LoopProgram, way: Sequence[tuple[tuple[Stmt, ...], Stmt]], level: int) -> tuple[Stmt, ...]:
    """The statements behind that of `level` in its list."""
    before, stmt = way[level]
    around = way[level - 1][1] if level else None
    lists = ([around.then, around.otherwise] if isinstance(around, If) else [around.body] if isinstance(around, For)
             else [k.body for k in program.kernels])
    own = next(stmts for stmts in lists if stmts[:len(before) + 1] == (*before, stmt))
    return own[len(before) + 1:]


def _maps(body: tuple[Stmt, ...], ref: Aref) -> bool:
    """Do the statements read the element, then set it once, and store to nothing else but one element of each array
    that no iteration shares?"""
    if not all(isinstance(stmt, Let | Setf) for stmt in body):
        return False
    stores = [n for n, stmt in enumerate(body) if isinstance(stmt, Setf) and stmt.ref is ref]
    if len(stores) != 1 or any(use_count(stmt, ref.buffer) for stmt in body[stores[0] + 1:]):
        return False
    uses = {n for stmt in body for n in stmt.unique() if isinstance(n, Aref) and n.buffer == ref.buffer}
    written = effects.written(body) - {ref.buffer}
    others = {n for stmt in body for n in stmt.unique() if isinstance(n, Aref) and n.buffer in written}
    return (uses == {ref} and sum(contains(stmt, ref) for stmt in body) > 0
            and use_count(body, ref.buffer) > 1
            and all(other.index == ref.index for other in others))


def _check_move(nest: For, ref: Aref, passed: Sequence[Stmt]) -> None:
    """Raise ValueError if a nest cannot be moved before the statements that it follows."""
    read, written = effects.reads(nest), effects.writes(nest) - {ref.buffer}
    for stmt in passed:
        changed = effects.writes(stmt) - {ref.buffer}
        if changed & (read | written) or effects.reads(stmt) & written:
            raise ValueError(f"the nest of '{nest.name}' uses what is stored before it")
        if isinstance(stmt, Let | Local) and (mentions(nest, (stmt.name,)) or use_count(nest, stmt.name)):
            raise ValueError(f"the nest of '{nest.name}' uses '{stmt.name}'")

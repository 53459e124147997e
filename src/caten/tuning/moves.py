"""Schedules beside those of the planners: the nests as written, and single legal moves in all nests that allow them.

    parallel i                             the outermost loops
    unroll j                               short constant loops
    split i; vectorize ii                  the loops of one depth, also those with other loops inside
    split i; split ii; vectorize iii       two vectors at a time, jammed into the loops inside
    reorder i j -> j i; …                  a loop moved inwards first

A planner chooses what is usually best; these find what it does not know. Steps that are refused leave a nest as it is.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..core.dtypes import DTYPES
from ..core.program import Machine
from ..loop.statements import For, LoopProgram, Stmt, statements_in
from ..schedule.analysis.classify import chain_of, outermost, stores_in
from ..schedule.analysis.loop_queries import trip_count
from ..schedule.draft import Draft
from ..schedule.planning import Planning

UNROLLED = 16                  # iterations of the longest loop that is unrolled
DEPTH = 4                      # loops inside these are not tried
Move = Callable[[Draft], object]


def moved(program: LoopProgram, machine: Machine, planning: Callable[[], Planning]) -> Iterator[LoopProgram]:
    """The program as written, and after each move. `planning`: options for each draft; those that fail are left out."""
    yield program
    for move in _moves(program, machine):
        draft = Draft(program, planning=planning())
        draft.attempt(move, "moves alone")
        for loop in _loops(draft.program):
            draft.try_steps(("parallel", loop.name))
        if not draft.planning.faults:
            yield draft.program


def _moves(program: LoopProgram, machine: Machine) -> Iterator[Move]:
    """The moves of a program, the most promising first."""
    yield lambda draft: None                             # threads alone
    depths = range(min(DEPTH, max(map(_depth, _loops(program)), default=0)))
    for depth in depths:
        yield partial(_vectorize, depth=depth, vectors=1, machine=machine)
    for depth in depths:
        yield partial(_vectorize, depth=depth, vectors=1, machine=machine, unrolls=True)
        yield partial(_vectorize, depth=depth, vectors=2, machine=machine)
    yield _unroll
    for depth in depths[:-1]:
        yield partial(_vectorize, depth=depth, vectors=1, machine=machine, inwards=True)


def _vectorize(draft: Draft, depth: int, vectors: int, machine: Machine, unrolls: bool = False,
               inwards: bool = False) -> None:
    """Make vectors of the loops of one depth, in the nests that allow it."""
    for nest in _loops(draft.program):
        for loop in _at_depth(nest, depth):
            draft.attempt(partial(_vectorize_loop, loop=loop, vectors=vectors, machine=machine, inwards=inwards),
                          f"vectors of '{loop.name}'")
    if unrolls:
        _unroll(draft)


def _vectorize_loop(draft: Draft, loop: For, vectors: int, machine: Machine, inwards: bool) -> None:
    if inwards:
        names = chain_of(loop).names
        if len(names) > 1:
            draft.take("reorder", *names[1:], names[0])
    stores = stores_in(tuple(statements_in(loop.body)))
    lanes = machine.vector_bytes // max([DTYPES[s.ref.dtype].bytes for s in stores], default=machine.vector_bytes)
    inner = draft.split(loop.name, lanes * vectors).inner
    if vectors > 1:
        made = draft.split(inner, lanes)
        draft.take("vectorize", made.inner)
        draft.try_steps(("jam", made.outer))
    else:
        draft.take("vectorize", inner)


def _unroll(draft: Draft) -> None:
    """Unroll short constant loops that have no loop inside."""
    for loop in [s for kernel in draft.program.kernels for s in statements_in(kernel.body) if isinstance(s, For)]:
        count = trip_count(loop)
        if loop.mark == "serial" and count is not None and count <= UNROLLED and _depth(loop) == 1:
            draft.try_steps(("unroll", loop.name, "full"))


def _loops(program: LoopProgram) -> list[For]:
    """The outermost loops."""
    return [loop for kernel in program.kernels for loop in outermost(kernel.body)]


def _inner(stmt: Stmt) -> list[For]:
    """The outermost loops inside a loop."""
    return list(outermost(stmt.body)) if isinstance(stmt, For) else []


def _depth(loop: For) -> int:
    """The number of nested loops, this one included."""
    return 1 + max(map(_depth, _inner(loop)), default=0)


def _at_depth(loop: For, depth: int) -> list[For]:
    """The loops of a nest with so many loops around them."""
    return [loop] if depth == 0 else [found for inner in _inner(loop) for found in _at_depth(inner, depth - 1)]

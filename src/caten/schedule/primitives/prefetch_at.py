"""prefetch_at: while one tile is in use, prefetch what a later iteration will pack or read."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

from ...core.dtypes import DTYPES
from ...core.expr import Const, Expr, Var
from ...core.node import Node, substitute
from ...errors import CatenError
from ...loop.accesses import stride_in
from ...loop.affine import canonical
from ...loop.statements import Aref, For, Let, LoopProgram, Prefetch, Setf, Transpose
from ..analysis.classify import fastest_axis
from ..analysis.loop_queries import (
    Refusing,
    accesses,
    enclosing,
    find,
    locals_in,
    loops_in,
    mentions,
    reads_memory,
    refusal,
    replaced,
    trip_count,
    writes,
)
from ..step_results import NOTHING, Made
from .prefetch import MAX_DISTANCE

LINE = 64                     # bytes of a cache line
MOST = 16                     # prefetches in one iteration


def prefetch_at(program: LoopProgram, at: str, loop: str, buffer: str, distance: int) -> tuple[LoopProgram, Made]:
    """While the first LOOP computes with a packed tile of BUFFER, or with BUFFER in place, prefetch the elements that
    will be packed into the tile, or read, COUNT iterations of the second LOOP later.

    Use it where packing (`stage … read`) waits for memory, or where rows are read in place that hardware prefetchers
    do not follow: the transfer then overlaps with the computation before. The second LOOP surrounds both the packing
    and the first LOOP. Each iteration of the first LOOP prefetches the source of the elements that it reads, one
    prefetch for each cache line of 64 bytes. If a loop between the two repeats the same iterations (`j` below), its
    repetitions share the prefetches: each takes a different line in turn. Take this step before `vectorize`.

        (prefetch_at p io B 1)
        (for io 0 M 1 serial                                      (for io 0 M 1 serial
          (local B_tile f32 (8 4 8) scratch)                        (local B_tile f32 (8 4 8) scratch)
          (for p_r … (for y_r … (for x_r …                          (for p_r … (for y_r … (for x_r …
            (setf (aref B_tile p_r y_r x_r)                            (setf (aref B_tile p_r y_r x_r)
                  (aref B p_r (+ (* 4 io) y_r) x_r)))))                      (aref B p_r (+ (* 4 io) y_r) x_r)))))
          (for j 0 N 1 serial                               ->      (for j 0 N 1 serial
            (for p 0 8 1 serial                                       (for p 0 8 1 serial
              (for y 0 4 1 serial                                       (prefetch (aref B p
                (for x 0 8 1 serial … (aref B_tile p y x)))))             (+ (+ (* 4 io) (mod j 4)) 4) 7))
                                                                        (for y 0 4 1 serial
                                                                          (for x 0 8 1 serial … (aref B_tile p y x)))))

    Refused: BUFFER is not read in the first LOOP, or more than one tile of it is; its source does not depend on the
    second LOOP; an index reads memory; a loop inside the first has no constant length; more than 16 prefetches in one
    iteration; a COUNT outside 1 … 1024.
    """
    step = f"prefetch_at {at} {buffer}"

    def refuse(reason: str, hint: str | None = None) -> CatenError:
        return refusal("E530", step, reason, hint)

    inner, outer = find(program, at, step), find(program, loop, step)
    around = enclosing(program, inner)
    if outer not in around:
        raise refuse(f"'{at}' is not inside '{loop}'")
    if not 1 <= distance <= MAX_DISTANCE:
        raise refuse(f"a distance is from 1 to {MAX_DISTANCE} iterations, not {distance}")
    if reads_memory(outer.step):
        raise refuse(f"the step of '{loop}' reads memory")
    place = _read(program, outer, inner, buffer, refuse)
    if not mentions(place, (loop,)):
        raise refuse(f"{place} does not move with '{loop}'")
    later = {Var(loop, "i64"): canonical(Var(loop, "i64") + outer.step * distance)}
    place = place.replace(index=substitute(place.index, later))
    moving = [n for n in loops_in(inner.body) if mentions(place, (n.name,))]
    for n in moving:
        if not isinstance(n.lo, Const) or trip_count(n) is None or n.step != Const(1, "i64"):
            raise refuse(f"the length of '{n.name}' is not constant")
    axis = fastest_axis(program, place)
    assert axis is not None                                          # it moves, so there is an index
    along = [n for n in moving if all(i == axis or not mentions(x, (n.name,)) for i, x in enumerate(place.index))]
    apart = [n for n in moving if n not in along]
    idle = [n for n in around[around.index(outer) + 1:] if not mentions(place, (n.name,)) and n.lo == Const(0, "i64")]
    spots = _in_turn(apart, Var(idle[-1].name, "i64")) if idle else _all(apart)
    asked = [line.replace(index=tuple([canonical(substitute(i, spot)) for i in line.index])) for spot in spots
             for line in _lines(place, axis, along)]
    if len(asked) > MOST:
        raise refuse(f"an iteration would make more than {MOST} prefetches")
    return replaced(program, inner, inner.replace(body=(*map(Prefetch, asked), *inner.body))), NOTHING


def _read(program: LoopProgram, outer: For, inner: For, buffer: str, refuse: Refusing) -> Aref:
    """The element of a buffer that is read in the inner loop, or whose packed copy is, over the loops around that
    read."""
    locals_ = {n.name for n in locals_in(outer)}
    stored, places = {w.ref for w in writes(inner) if not isinstance(w, Transpose)}, dict[Aref, None]()
    for store in [n for n in outer.unique() if isinstance(n, Setf)]:
        sources = [n for n in store.value.unique() if isinstance(n, Aref) and n.buffer == buffer]
        if not sources or not isinstance(store.ref, Aref) or store.ref.buffer not in locals_ - {buffer}:
            continue
        names = [i.name for i in store.ref.index if isinstance(i, Var)]
        if len(set(names)) < len(store.ref.index):
            continue                                                 # one iteration fills several elements
        for use in accesses(inner, store.ref.buffer):
            if isinstance(use, Aref) and use not in stored:
                known: dict[Node, Expr] = dict(zip(store.ref.index, use.index, strict=True))
                places |= dict.fromkeys([n.replace(index=tuple([canonical(substitute(i, known)) for i in n.index]))
                                         for n in sources])
    places = places or dict.fromkeys([n for n in accesses(inner, buffer) if isinstance(n, Aref) and n not in stored])
    if not places:
        raise refuse(f"'{inner.name}' reads neither {buffer} nor a copy of it", "take this step before vectorize")
    if len(places) > 1:
        raise refuse(f"'{inner.name}' reads more than one tile of {buffer}: {', '.join(map(str, list(places)[:3]))}")
    (place,) = places
    if any(reads_memory(i) for i in place.index):
        raise refuse(f"the index of {place} reads memory")
    there = {n.name for n in (*enclosing(program, inner), inner, *loops_in(inner.body))}
    elsewhere = {n.name for n in outer.unique() if isinstance(n, For | Let)} - there
    for name in [n.name for n in place.unique() if isinstance(n, Var) and n.name in elsewhere]:
        raise refuse(f"the index of {place} has the name '{name}', which '{inner.name}' does not know")
    return place


def _length(loop: For) -> int:
    count = trip_count(loop)
    assert count is not None
    return count


def _lines(place: Aref, axis: int, along: Sequence[For]) -> list[Aref]:
    """One access for each cache line that the loops `along` visit, the last line first; only the last line if a stride
    is not constant."""
    last, span = place.index[axis], 1
    strides = [stride_in(last, n.name) for n in along]
    for n, stride in zip(along, strides, strict=True):
        end = n.lo if stride is not None and stride < 0 else canonical(n.hi - 1)
        last = substitute(last, {Var(n.name, "i64"): end})
        span += abs(stride or 0) * max(0, _length(n) - 1)
    if None in strides:
        span = 1
    elements = LINE // max(1, DTYPES[place.dtype].bytes)
    backs = range(0, span, elements)[:MOST + 1]
    return [place.replace(index=tuple([canonical(last - back) if i == axis else x for i, x in enumerate(place.index)]))
            for back in backs]


def _all(apart: Sequence[For]) -> list[dict[Node, Expr]]:
    """All iterations of nested loops."""
    values = [[canonical(n.lo + k) for k in range(_length(n))[:MOST + 1]] for n in apart]
    return [dict(zip([Var(n.name, "i64") for n in apart], spot, strict=True))
            for spot in islice(product(*values), MOST + 1)]


def _in_turn(apart: Sequence[For], turn: Expr) -> list[dict[Node, Expr]]:
    """The iteration of nested loops with number `turn`, modulo the number of iterations."""
    spot: dict[Node, Expr] = {}
    for n in reversed(apart):
        length = _length(n)
        spot[Var(n.name, "i64")] = canonical(n.lo + turn % length) if length > 1 else n.lo
        turn = turn // length if length > 1 else turn
    return [spot]

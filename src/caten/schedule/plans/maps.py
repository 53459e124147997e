"""Plans of maps, nests that store one result per iteration: vectors along the loop in which the stores are
contiguous."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import DTYPES, is_float
from ...frozen import frozen
from ...loop.accesses import stride_in
from ...loop.effects import reads
from ...loop.statements import Aref, Incf, LoopProgram, statements_in
from ..analysis.classify import Chain, contiguous_loop, is_compute_bound, is_gathered, reduction, stored
from ..analysis.loop_queries import mentions
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of, version_if
from .reductions import BLOCK as SUM_BLOCK
from .reductions import TREE
from .reductions import VECTORS as SUM_VECTORS

VECTORS = Parameter("maps.vectors", (1, 2, 4, 8), 1, what="vectors per iteration (unroll factor)")
STREAM = Parameter("maps.stream", (0, 1), 0, what="are results stored with non-temporal stores?")
AHEAD = Parameter("maps.ahead", (0, 1 << 10, 1 << 12), what="prefetch distance of stores in bytes; 0: no prefetch")

ROWS = Parameter("maps.rows", (2, 4, 8), 8, what="short rows in place that are loaded before they are stored")
FEW = 8                         # vectors of a row, for which masks take a large part of the time
PREFETCH_BYTES = 1024           # the distance on machines whose hardware does not prefetch stores
BLOCK = 4096                    # elements of a row that one thread computes at a time


@frozen
class Map:
    """One result per iteration. `row`: the loop in which all stores are contiguous, or the innermost one. `rest`: the
    other loops, outermost first. `compute_bound`: does every element take an elementary function? `rounds`: does it
    also sum up floats? `in_place`: does it read arrays that it stores to? `is_inner`: is the row the innermost loop?"""

    lanes: int
    row: Axis
    rest: tuple[Axis, ...]
    compute_bound: bool = False
    rounds: bool = False
    in_place: bool = False
    is_inner: bool = False


@frozen
class VectorLoop(Plan):
    """A vectorised row loop, unrolled by `vectors`, with a masked tail. `block`: threads share rows in blocks of this
    many elements (0: whole rows). `non_temporal`: results are stored with non-temporal stores; otherwise their cache
    lines are prefetched `prefetch` bytes ahead. `short_tail`: the tail is in shorter vectors, without masks. `reduces`:
    the loop also accumulates, in one partial sum per vector and block; `tree`: these are added as a tree."""

    lanes: int
    vectors: int
    block: int = 0
    non_temporal: bool = False
    prefetch: int = 0
    short_tail: bool = False
    reduces: bool = False
    tree: bool = False


@frozen
class ScalarLoops(Plan):
    """Loops as written; the C compiler optimises them. `parallel_rows`: threads share rows, not the elements of one."""

    parallel_rows: bool = False


@frozen
class OuterLoopVectors(Plan):
    """Outer-loop vectorisation: each lane runs an iteration of one loop, with all loops inside it. `outer_loops`: the
    number of loops of the nest from the outermost down to that one. `single_pass`: those inside it run once. `masked`:
    is the tail a masked vector? `vectors`: so many vectors run in the loops inside together (0: one)."""

    lanes: int
    outer_loops: int
    single_pass: bool = False
    masked: bool = False
    vectors: int = 0


@frozen
class RowsInPlace(Plan):
    """A vector of each of so many rows is loaded before any of them is stored, the last vector of the rows masked."""

    lanes: int
    rows: int


def rows_as_lanes(m: Map, context: PlanContext) -> Version:
    """For rows so short that most lanes of a vector along them would be masked: the rows are the lanes. Of memory-bound
    maps, only where masked stores are expensive: C compilers are better at short rows."""
    if not m.rest or not m.is_inner or not m.row.size or not context.masks_are_cheap(m.lanes):
        raise NotApplicable("there is one row, its length is no size, or masks are expensive")
    if not m.compute_bound and context.masks_are_free:
        raise NotApplicable("it is memory-bound")
    plan = OuterLoopVectors(m.lanes, len(m.rest), masked=m.compute_bound)
    return version_if(plan, ("<=", m.row.size, str(m.lanes * 3 // 8)), "l")


def short_rows(m: Map, context: PlanContext) -> Version:
    """For rows shorter than a vector: they stay scalar, since each would be a single masked vector."""
    if not m.rest or m.compute_bound or not m.row.size:
        raise NotApplicable("there is one row, it is compute-bound, or its length is no size")
    return Version(ScalarLoops(parallel_rows=True), ("<", m.row.size, str(m.lanes)), "w")


def rows_in_place(m: Map, context: PlanContext) -> Version:
    """For functions of rows of a few vectors that are replaced: a masked load waits until the masked store to the row
    before, which is next to it in memory, has left the processor, some 25 ns. So several rows are loaded before they
    are stored."""
    if not m.rest or not m.is_inner or not m.row.size:
        raise NotApplicable("there is one row, or its length is no size")
    if not m.compute_bound or not m.in_place or not context.masks_are_free:
        raise NotApplicable("it is memory-bound or not in place, or masked stores are expensive")
    return version_if(RowsInPlace(m.lanes, context.value(ROWS)), ("<", m.row.size, str(m.lanes * FEW)), "r")


def rows_of_one_block(m: Map, context: PlanContext) -> Version:
    """For rows of a single block: a loop over blocks would cost more than a short row."""
    if not _shares_blocks(m, context):
        raise NotApplicable("threads do not share blocks of rows")
    return Version(_vector_loop(m, context), ("<=", m.row.end, str(BLOCK)), "s")


def vectors(m: Map, context: PlanContext) -> Version:
    """For all rows: vectors. If there may be few rows, threads share blocks of them."""
    return Version(_vector_loop(m, context, BLOCK if _shares_blocks(m, context) else 0))


def vectors_with_reductions(m: Map, context: PlanContext) -> Version:
    """Vectors, with vector accumulators for what the loop also sums. One long row is cut into blocks, so that the
    rounding errors of its sums grow with the length of a block and the number of blocks, and not with their product."""
    block = context.value(SUM_BLOCK) if m.rounds and context.threads and not m.rest else 0
    long = m.row.count is None or m.row.count > block
    return Version(VectorLoop(m.lanes, context.value(SUM_VECTORS), block if long else 0, prefetch=_prefetch(context),
                              reduces=True, tree=bool(context.value(TREE))))


def _shares_blocks(m: Map, context: PlanContext) -> bool:
    """Do threads share blocks of a row? Yes if there may be few rows, and a row may be longer than a block."""
    return len(m.rest) == 1 and context.uses_threads and (m.row.count is None or m.row.count > BLOCK)


def _vector_loop(m: Map, context: PlanContext, block: int = 0) -> VectorLoop:
    stream = bool(context.value(STREAM))
    short_tail = m.in_place and bool(m.rest) and not m.compute_bound and context.masks_are_free
    return VectorLoop(m.lanes, context.value(VECTORS), block, stream, 0 if stream else _prefetch(context), short_tail)


def _prefetch(context: PlanContext) -> int:
    return context.value(AHEAD, 0 if context.machine.fetches_ahead else PREFETCH_BYTES)


def match_map(program: LoopProgram, chain: Chain, context: PlanContext) -> Map:
    """A perfect nest as a map."""
    lanes = context.vector_lanes(chain.body, computed=True)
    found = {contiguous_loop(program, ref, chain.names) for ref in stored(chain)}
    if len(found) != 1:
        again = next((ref for ref in stored(chain) if not mentions(ref, chain.names[-1:])), None)
        raise NotApplicable("the stores have no contiguous loop in common" if again is None else
                            f"each iteration of '{chain.names[-1]}' stores {again} again")
    name = found.pop() or chain.names[-1]              # None if an index is a `let` name, which vectorize sees through
    _check_gathers(program, chain, name)
    axes, row = axes_of(chain), next(a for a in axes_of(chain) if a.name == name)
    return Map(lanes, row, tuple([a for a in axes if a.name != name]), is_compute_bound(chain.body),
               in_place=any(ref.buffer in reads(stmt) for ref in stored(chain) for stmt in chain.body),
               is_inner=name == chain.names[-1])


def _check_gathers(program: LoopProgram, chain: Chain, loop: str) -> None:
    """Refuse a loop that would gather, unless it is compute-bound: lanes are gathered one by one, and C compilers read
    a few short streams better. Strides of two to four in a row are not gathers: they are read as a longer vector."""
    refs: Any = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    far = [ref for ref in refs if is_gathered(program, ref, loop)
           and not (stride_in(ref.index[-1], loop) and DTYPES[ref.dtype].bytes >= 4)]
    if far and not is_compute_bound(chain.body):
        raise NotApplicable(f"{far[0]} is not contiguous in '{loop}'")


def match_map_with_sums(program: LoopProgram, chain: Chain, context: PlanContext) -> Map:
    """A loop that stores a result in every iteration and also accumulates."""
    lanes, loop = context.vector_lanes(chain.body), chain.names[-1]
    sums = [ref.buffer for ref in stored(chain) if not mentions(ref, (loop,))]
    if not chain.is_leaf or reduction(chain) is not None or not sums or len(set(sums)) < len(sums):
        raise NotApplicable(f"'{loop}' does not both store elements and accumulate once into each of some scalars")
    *rest, row = axes_of(chain)
    rounds = any(isinstance(s, Incf) and s.ref.buffer in sums and is_float(s.ref.dtype) and s.fn in ("add", "mul")
                 for s in statements_in(chain.body))
    return Map(lanes, row, tuple(rest), rounds=rounds)


MAPS = NestKind("maps", "Nests that store one result per iteration.", match_map,
                (rows_as_lanes, short_rows, rows_in_place, rows_of_one_block, vectors))
MAPS_WITH_SUMS = NestKind("maps with sums", "Nests that store one result per iteration and also accumulate.",
                          match_map_with_sums, (vectors_with_reductions,))

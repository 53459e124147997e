"""Steps of maps and reductions on CPUs: vector loops, vector accumulators, masked tails."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...core.dtypes import DTYPES
from ...core.expr import Const, Expr, Op
from ...core.text import form_of
from ...frozen import frozen
from ...loop.affine import canonical
from ...loop.effects import reads
from ...loop.statements import Aref
from ..analysis.classify import Chain, Reduction, chain_of, contiguous_loop, is_compute_bound, reduction, stored
from ..analysis.loop_queries import mentions, trip_count
from ..draft import Draft
from ..plans.maps import ScalarLoops, VectorLoop
from ..plans.plan import NotApplicable, PlanContext
from ..plans.reductions import (
    STREAMS,
    ColumnReduction,
    RowByRow,
    RowPerLane,
    RowReduction,
    ScalarAccumulator,
    SingleColumn,
    VectorAccumulator,
)
from ..step_results import Split, Staged
from .common_steps import (
    accumulate,
    check_indices,
    in_shorter_vectors,
    no_scalar_functions,
    pad_masked,
    reorder,
    split_overlapped,
    split_tiles,
    stage_partial_sums,
    unroll_and_jam,
    use_fma,
    vectorize_masked,
    vectorize_sum,
    vectorize_tile,
    vectorize_whole,
)

CHAINS = 4                      # additions at once
MOST_NODES = 256                # of an expression, written out, in a tail that is vectorised with partial sums
MOST_CHOICES = 4                # in it


def emit_vector_loop(draft: Draft, chain: Chain, plan: VectorLoop, context: PlanContext) -> None:
    """Vectorise the row loop. If it also accumulates, each of its vectors has a partial sum."""
    loop = chain.names[-1] if plan.reduces else _row(draft, chain)
    sums = tuple([ref.buffer for ref in stored(chain) if plan.reduces and not mentions(ref, (loop,))])
    rest = [name for name in chain.names if name != loop]
    if rest and chain.names[-1] != loop:
        draft.take("reorder", *rest, loop)
    if plan.reduces and context.threads:
        draft.parallelize_two(*rest)
    if plan.reduces and plan.block:
        blocks_of_sums = split_tiles(draft, loop, plan.block, plan.lanes)
        for name in blocks_of_sums.rest:
            vectorize_row(draft, name, sums, plan.lanes, plan.vectors, context, tree=plan.tree)
        loop = blocks_of_sums.inner
    elif plan.block:                                           # threads share blocks of a row
        name = loop
        blocks = draft.result_of(lambda d: d.split(name, plan.block, "min"), f"the step 'split blocks {loop}'")
        rest, loop = ([*rest, blocks.outer], blocks.inner) if blocks is not None else (rest, loop)
    around = tuple(rest) if context.threads and not plan.reduces else None
    outer = vectorize_row(draft, loop, sums, plan.lanes, plan.vectors, context, around, plan.tree, plan.short_tail)
    if plan.non_temporal:
        for buffer in dict.fromkeys([ref.buffer for ref in stored(chain)]):
            draft.try_steps(("stream", outer, buffer))
    else:
        _prefetch_stores(draft, chain, outer, plan)


def _row(draft: Draft, chain: Chain) -> str:
    """The loop in which all stores are contiguous, or the innermost one."""
    found = {contiguous_loop(draft.program, ref, chain.names) for ref in stored(chain)}
    return (found.pop() if len(found) == 1 else None) or chain.names[-1]


def _prefetch_stores(draft: Draft, chain: Chain, loop: str, plan: VectorLoop) -> None:
    """Prefetch the cache lines of stores to arrays that are not read."""
    read = frozenset().union(*[reads(stmt) for stmt in chain.body])
    for ref in {p.buffer: p for p in stored(chain)}.values():           # one step prefetches all stores to an array
        if plan.prefetch and ref.buffer not in read:
            step = plan.lanes * plan.vectors * DTYPES[ref.dtype].bytes
            draft.try_steps(("prefetch", loop, ref.buffer, max(1, plan.prefetch // step), "write"))


def emit_scalar_loops(draft: Draft, chain: Chain, plan: ScalarLoops, context: PlanContext) -> None:
    """Make loops parallel, and do nothing else."""
    row = _row(draft, chain) if plan.parallel_rows else ""
    if context.threads:
        draft.parallelize_two(*[name for name in chain.names if name != row])


def vectorize_row(draft: Draft, loop: str, sums: tuple[str, ...], lanes: int, count: int, context: PlanContext,
                  around: tuple[str, ...] | None = None, tree: bool = True, short_tail: bool = False) -> str:
    """Vectorise a loop, unrolled by `count` vectors, with a masked tail. The arrays `sums` are accumulated in as many
    vectors, added as a `tree` at the end. Returns the new loop. It is parallel if none of the loops `around` can be
    (None: no threads). With one lane it has scalar accumulators."""
    if lanes == 1:
        chains = _sum_in_chains(draft, loop, sums, count, tree)
        for name in chains.loops:
            draft.take("unroll", name, "full")
        return chains.outer
    whole = split_overlapped(draft, loop, lanes, context) if not sums and count == 1 else None
    if whole is not None:
        if around is not None and not draft.parallelize_two(*around):
            draft.parallelize(whole.outer)
        vectorize_whole(draft, whole)
        if draft.has_loop(loop) and is_compute_bound(draft.loop(loop).body):        # rows shorter than a vector
            vectorize_masked(draft, loop, lanes, context)
        return whole.outer
    length = trip_count(draft.loop(loop))
    if not sums and length is not None and length < lanes and context.masks_are_cheap(lanes):
        if around is not None:
            draft.parallelize_two(*around)
        return vectorize_masked(draft, loop, lanes, context)
    tiles = split_tiles(draft, loop, lanes * count, lanes)
    outer, inner = tiles.outer, tiles.inner
    if around is not None and not draft.parallelize_two(*around):
        draft.parallelize(outer)
    for name in tiles.rest:
        summed = sums and count > 1 and _is_short(draft, name) and draft.attempt(
            partial(_vectorize_masked_sums, loop=name, sums=sums, lanes=lanes, context=context))
        if not summed and not (short_tail and draft.attempt(partial(_vectorize_shorter, loop=name, lanes=lanes))):
            draft.attempt(partial(vectorize_masked, loop=name, lanes=lanes, context=context))
    group, lane = draft.split_exactly(inner, lanes) if draft.loop(inner).hi != Const(lanes, "i64") else ("", inner)
    axes = (group, lane) if group else (lane,)
    vectorize_tile(draft, group, lane, *[stage_partial_sums(draft, outer, buffer, axes, tree) for buffer in sums])
    return outer


def _vectorize_shorter(draft: Draft, loop: str, lanes: int) -> None:
    """Turn a tail into shorter vectors and a few scalars."""
    for tail in in_shorter_vectors(draft, loop, lanes):
        draft.take("vectorize", tail.inner)


def _vectorize_masked_sums(draft: Draft, loop: str, sums: tuple[str, ...], lanes: int, context: PlanContext) -> None:
    """Turn a tail into masked vectors with a vector of partial results: adding up its lanes takes longer than a vector
    of the row, and is done once."""
    outer, lane = pad_masked(draft, _where_not_empty(draft, loop), lanes, context)
    vectorize_tile(draft, "", lane, *[draft.stage(outer, buffer, "partial", "register", lane) for buffer in sums])


def _is_short(draft: Draft, loop: str) -> bool:
    """Is a loop so short that another copy of it costs little? Choices inside choices are long under masks."""
    nodes = [n for n in draft.loop(loop).unique() if isinstance(n, Expr)]
    return (all(n.written_out <= MOST_NODES for n in nodes)
            and sum(isinstance(n, Op) and n.fn == "where" for n in nodes) <= MOST_CHOICES)


def _where_not_empty(draft: Draft, loop: str) -> str:
    """Test whether a loop has an iteration before it, so that a row without a tail does nothing for one."""
    found = draft.loop(loop)
    cond = form_of(Op("lt", (found.lo, found.hi)))
    return loop if draft.is_always(loop, cond) else draft.specialize(loop, cond, "m")[loop]


# -- row reductions --------------------------------------------------------------------------------------------------
def emit_row_reduction(draft: Draft, chain: Chain, plan: RowReduction, context: PlanContext) -> None:
    """Vectorise the innermost summed loop with vector accumulators, or give it scalar ones."""
    total = _reduction(draft, chain)
    reorder(draft, chain, (*total.kept, *total.summed))
    if plan.block and draft.attempt(partial(_reduce_long, total=total, plan=plan, context=context)):
        return
    if plan.rows:
        _reduce_rows_at_once(draft, total, plan, context)
        return
    if context.threads:
        draft.parallelize_two(*total.kept)
    if plan.masked:
        check_indices(draft, total.summed[-1])
        outer, lane = draft.split_whole(total.summed[-1], plan.lanes, "pad")
        vectorize_tile(draft, "", lane, draft.stage(outer, total.out.buffer, "partial", "register", lane))
    else:
        sums = (total.out.buffer,)
        if plan.lanes == 1 and total.kept:
            sums = (_hold(draft, total.summed[-1], total.out.buffer, no_scalar_functions).tile,)
        outer = vectorize_row(draft, total.summed[-1], sums, plan.lanes, plan.vectors, context, tree=plan.tree)
    use_fma(draft, outer, total.out, context)


def _reduce_rows_at_once(draft: Draft, total: Reduction, plan: RowReduction, context: PlanContext) -> None:
    """Reduce several rows at once (unroll-and-jam), and the rest one by one."""
    k = total.summed[-1]
    kept = _hold(draft, k, total.out.buffer, no_scalar_functions)
    rows = draft.split(total.kept[-1], plan.rows)
    if context.threads:
        draft.parallelize_two(*total.kept[:-1], rows.outer)
    vectorize_sum(draft, total.out.replace(buffer=kept.tile), plan.lanes, k, context)
    unroll_and_jam(draft, rows.inner)
    if rows.tail:
        _reduce_row(draft, rows.copies[k], total.out.replace(buffer=rows.arrays[0]), plan, context)


def _reduce_long(draft: Draft, total: Reduction, plan: RowReduction, context: PlanContext) -> None:
    """Reduce one long sum: in several streams if that pays, and the rest in blocks."""
    loop = total.summed[0]
    streams = partial(_reduce_streams, loop=loop, total=total, plan=plan, context=context)
    far = draft.result_of(streams) if plan.stream_distance else None
    if far is None:
        _reduce_blocks(draft, loop, total, plan, context)
    for name in far.rest if far is not None else ():
        if not draft.attempt(partial(_reduce_blocks, loop=name, total=total, plan=plan, context=context)):
            # the number of blocks changes in a loop around; may fail: a short tail of constant length stays scalar
            draft.attempt(partial(_reduce_row, loop=name, out=total.out, plan=plan, context=context))


def _reduce_row(draft: Draft, loop: str, out: Aref, plan: RowReduction, context: PlanContext) -> None:
    """Reduce a sum with vector accumulators on one thread."""
    outer = vectorize_row(draft, loop, (out.buffer,), plan.lanes, plan.vectors, context, tree=plan.tree)
    use_fma(draft, outer, out, context)


def _reduce_blocks(draft: Draft, loop: str, total: Reduction, plan: RowReduction, context: PlanContext) -> None:
    """Reduce blocks of a fixed length, so that the result does not depend on the number of threads, and then the
    tail."""
    blocks = split_tiles(draft, loop, plan.block)
    part = draft.stage(blocks.outer, total.out.buffer, "partial", "scratch", blocks.outer).tile
    draft.take("parallel", blocks.outer)
    for each, buffer in ((blocks.inner, part), *[(name, total.out.buffer) for name in blocks.rest]):
        outer = vectorize_row(draft, each, (buffer,), plan.lanes, plan.vectors, context, tree=plan.tree)
        use_fma(draft, outer, total.out, context)


def _reduce_streams(draft: Draft, loop: str, total: Reduction, plan: RowReduction, context: PlanContext) -> Split:
    """Reduce several distant streams together. Returns the split into blocks of streams and a tail."""
    blocks, stream, each = _split_streams(draft, loop, total.out, plan.stream_distance)
    each, lane = draft.split_exactly(each, plan.lanes)
    draft.take("reorder", each, stream, lane)
    vectorize_tile(draft, stream, lane, stage_partial_sums(draft, each, total.out.buffer, (stream, lane), plan.tree))
    use_fma(draft, each, total.out, context)
    return blocks


def _split_streams(draft: Draft, loop: str, out: Aref, apart: int, along: str = "") -> tuple[Split, str, str]:
    """Split a loop into STREAMS streams, divided among the arrays that it reads, and that move with the loop `along` if
    one is given. Returns the split into blocks, the loop over the streams of a block and the loop along a stream."""
    arrays = {n.buffer for n in draft.loop(loop).unique() if isinstance(n, Aref) and mentions(n, (along or loop,))}
    arrays -= {out.buffer}
    if not 1 <= len(arrays) <= STREAMS // 2:
        raise NotApplicable(f"'{loop}' reads {len(arrays)} arrays")
    count = STREAMS // len(arrays)
    extent = canonical(draft.loop(loop).hi - draft.loop(loop).lo)
    if isinstance(extent, Const) and int(extent.value) < count * apart:
        raise NotApplicable(f"'{loop}' is too short for {count} streams")
    blocks = draft.split(loop, count * apart)
    return blocks, *draft.split_exactly(blocks.inner, apart)


# -- column reductions -----------------------------------------------------------------------------------------------
def emit_column_reduction(draft: Draft, chain: Chain, plan: ColumnReduction, context: PlanContext) -> None:
    """Add several rows at once to contiguous results, block by block."""
    total = _reduction(draft, chain)
    loop, row = _result_loop(draft, total), total.summed[-1]
    rest = tuple([name for name in total.kept if name != loop])
    reorder(draft, chain, (*rest, loop, *total.summed))
    outer, inner = draft.split_whole(loop, plan.block, "min")
    draft.take("reorder", *total.summed, inner)
    if context.threads:
        draft.parallelize_two(*rest, outer)
    if plan.stream_distance:
        steps = partial(_add_distant_rows, out=total.out, row=row, inner=inner, plan=plan, context=context)
        far = draft.result_of(steps)
        if far is not None:
            if not far.tail:
                return
            row, inner = far.tail, far.copies[inner]
    rows = split_tiles(draft, row, plan.rows)
    draft.take("reorder", inner, rows.inner)
    for name in rows.copies.values():                     # the row tail, row by row
        draft.attempt(partial(vectorize_row, loop=name, sums=(), lanes=plan.lanes, count=1, context=context))
    _add_rows(draft, total.out, rows.inner, inner, plan, context)


def _add_distant_rows(draft: Draft, out: Aref, row: str, inner: str, plan: ColumnReduction,
                      context: PlanContext) -> Split:
    """Add distant rows together. Returns the split into blocks of rows and a tail."""
    blocks, stream, each = _split_streams(draft, row, out, plan.stream_distance, inner)
    draft.take("reorder", each, inner, stream)
    _add_rows(draft, out, stream, inner, plan, context)
    return blocks


def _add_rows(draft: Draft, out: Aref, rows: str, inner: str, plan: ColumnReduction, context: PlanContext) -> None:
    """Add the rows of the innermost loop to vectors of results in registers."""
    columns = split_tiles(draft, inner, plan.lanes * plan.vectors, plan.lanes)
    if columns.tail:
        draft.attempt(partial(_add_masked_rows, out=out, columns=columns.tail, rows=columns.copies[rows],
                              lanes=plan.lanes, context=context))
    draft.take("reorder", rows, columns.inner)
    group, lane = draft.split_exactly(columns.inner, plan.lanes)
    vectorize_tile(draft, group, lane, draft.stage(rows, out.buffer, "accumulate", "register", group, lane))
    use_fma(draft, rows, out, context)
    draft.take("unroll", rows)


def _add_masked_rows(draft: Draft, out: Aref, columns: str, rows: str, lanes: int, context: PlanContext) -> None:
    """Add rows to the last columns, masked or shorter vectors in registers."""
    if context.has_masks_for_wider_elements(lanes):
        for tail in in_shorter_vectors(draft, columns, lanes):
            _add_rows_of_lanes(draft, out, tail.inner, rows)
            rows = tail.copies.get(rows, rows)
        return
    if not context.masks_are_cheap(lanes):
        raise NotApplicable(f"the tail '{columns}' stays scalar: vectors have no masks")
    check_indices(draft, columns)
    _add_rows_of_lanes(draft, out, draft.split_whole(columns, lanes, "pad")[1], rows)


def _add_rows_of_lanes(draft: Draft, out: Aref, lane: str, rows: str) -> None:
    draft.take("reorder", lane, rows)
    draft.stage(rows, out.buffer, "accumulate", "register")
    draft.take("vectorize", lane)


def emit_single_column(draft: Draft, chain: Chain, plan: SingleColumn, context: PlanContext) -> None:
    """Remove the loop over the only column and reduce the rest like a row."""
    loop = _result_loop(draft, _reduction(draft, chain))
    others = tuple([name for name in chain.names if name != loop])
    reorder(draft, chain, (*others, loop))
    draft.take("unroll", loop, "full")
    rows = chain_of(draft.loop(others[0]))
    if isinstance(plan.reduction, RowPerLane):
        emit_row_per_lane(draft, rows, plan.reduction, context)
    else:
        emit_row_reduction(draft, rows, plan.reduction, context)


def emit_row_by_row(draft: Draft, chain: Chain, plan: RowByRow, context: PlanContext) -> None:
    """Move the loop over contiguous results innermost."""
    total = _reduction(draft, chain)
    row = _result_loop(draft, total)
    rest = [name for name in total.kept if name != row]
    draft.take("reorder", *rest, *total.summed, row)
    if context.threads:
        draft.parallelize(*rest)


# -- short reductions ------------------------------------------------------------------------------------------------
def emit_scalar_accumulator(draft: Draft, chain: Chain, plan: ScalarAccumulator, context: PlanContext) -> None:
    """Move the summed loops innermost and keep the accumulator in a register."""
    total = _reduction(draft, chain)
    reorder(draft, chain, (*total.kept, *total.summed))
    if total.kept:
        _hold(draft, total.summed[0], total.out.buffer, no_scalar_functions)
    if context.threads:
        draft.parallelize_two(*total.kept)


def emit_row_per_lane(draft: Draft, chain: Chain, plan: RowPerLane, context: PlanContext) -> None:
    """Reduce one row in each lane."""
    total = _reduction(draft, chain)
    reorder(draft, chain, (*total.kept, *total.summed))
    _hold(draft, total.summed[0], total.out.buffer)
    vectorize_outer_loop(draft, total.kept, plan.lanes, context)


def vectorize_outer_loop(draft: Draft, names: tuple[str, ...], count: int, context: PlanContext,
                         masked: bool = False, vectors: int = 0) -> None:
    """Vectorise the last of these loops, with or without a masked tail; threads share the others, or the vectors.
    `vectors`: so many vectors run in the loops inside together (unroll-and-jam)."""
    *outside, last = names
    if (length := trip_count(draft.loop(last))) is not None and length < count:
        vectorize_masked(draft, last, count, context)
        if context.threads:
            draft.parallelize_two(*outside)
        return
    tiles = draft.split(last, count * max(1, vectors))
    group, lane = draft.split_exactly(tiles.inner, count) if vectors > 1 else ("", tiles.inner)
    draft.take("vectorize", lane)
    for name in draft.jam(group) if group else ():
        draft.take("unroll", name)
    tail = draft.result_of(partial(vectorize_masked, loop=tiles.tail, lanes=count, context=context)) if (
        tiles.tail and masked) else None
    if context.threads:
        draft.parallelize_two(*outside, tiles.outer)
        if group and tail is not None and not outside:
            draft.parallelize(tail)


def emit_vector_accumulator(draft: Draft, chain: Chain, plan: VectorAccumulator, context: PlanContext) -> None:
    """Keep each vector of results in a register while all its terms are added."""
    total = _reduction(draft, chain)
    loop = _result_loop(draft, total)
    rest = tuple([name for name in total.kept if name != loop])
    reorder(draft, chain, (*rest, loop, *total.summed))
    held = _hold(draft, total.summed[0], total.out.buffer)
    if plan.vectors > 1:
        vectorize_outer_loop(draft, (*rest, loop), plan.lanes, context, masked=True, vectors=plan.vectors)
        without_edges(draft, *total.summed)
        return
    chains = None if plan.unrolled else draft.result_of(
        partial(_sum_in_chains, loop=total.summed[-1], sums=(held.tile,), count=CHAINS))
    whole = split_overlapped(draft, loop, plan.lanes, context)
    tiles = whole or split_tiles(draft, loop, plan.lanes)
    if context.threads and not draft.parallelize_two(*rest):
        draft.parallelize(tiles.outer)
    if whole is not None:
        vectorize_whole(draft, whole)
    else:
        if tiles.tail:
            draft.attempt(partial(vectorize_masked, loop=tiles.tail, lanes=plan.lanes, context=context))
        draft.take("vectorize", tiles.inner)
    without_edges(draft, *([*rest, tiles.outer] if plan.unrolled else total.summed[:-1] if chains else total.summed))
    use_fma(draft, tiles.outer, total.out, context)
    for name in reversed(total.summed) if plan.unrolled else chains.loops if chains else ():
        draft.take("unroll", name, "full")


def without_edges(draft: Draft, *loops: str) -> None:
    """Split loops, the outermost first, where the conditions in them begin or cease to hold (the padding of a
    convolution): their interior is without masks."""
    for name in loops:
        draft.try_steps(("interior", name))


@frozen
class Chains:
    """Several accumulators of a loop, which is now `outer`; `loops` are those over the accumulators."""

    outer: str
    loops: tuple[str, ...]


def _sum_in_chains(draft: Draft, loop: str, sums: tuple[str, ...], count: int, tree: bool = True) -> Chains:
    """Sum into several accumulators, since each addition waits for the one before."""
    made = draft.split(loop, count)
    loops = [made.inner]
    for buffer in sums:
        loops += stage_partial_sums(draft, made.outer, buffer, (made.inner,), tree).over(made.inner)
    return Chains(made.outer, tuple(loops))


def _hold(draft: Draft, loop: str, buffer: str,
          finish: Callable[[Draft, Staged], None] = lambda draft, sums: None) -> Staged:
    """Keep the accumulator of a loop in a register, and apply an epilogue to it."""
    return accumulate(draft, loop, buffer, keep_conditions=True, finish=finish)


def _reduction(draft: Draft, chain: Chain) -> Reduction:
    """The nest as a reduction. NotApplicable if it is none any more: the condition of a copy may have removed its
    body."""
    total = reduction(chain)
    if total is None:
        raise NotApplicable(f"'{chain.names[0]}' is no longer a reduction")
    return total


def _result_loop(draft: Draft, total: Reduction) -> str:
    """The loop in which the results are contiguous."""
    loop = contiguous_loop(draft.program, total.out, total.kept)
    if loop is None:
        raise NotApplicable(f"{total.out} has no contiguous loop")
    return loop

"""Steps for rows: those that several loops pass over in turn, and short ones that are replaced."""
from __future__ import annotations

from ...loop.effects import reads
from ...loop.statements import Vref
from ..analysis.classify import Chain, chain_of, outermost, stored
from ..analysis.loop_queries import mentions
from ..draft import Draft
from ..plans.maps import OuterLoopVectors, RowsInPlace
from ..plans.plan import PlanContext
from ..plans.row_passes import RowPrefetch, RowsAtOnce
from .common_steps import pad_masked, unroll_and_jam, use_fma, vectorize_masked, vectorize_padded, vectorize_tile
from .vector_loops import vectorize_outer_loop


def emit_outer_loop_vectors(draft: Draft, chain: Chain, plan: OuterLoopVectors, context: PlanContext) -> None:
    """Vectorise a loop that has loops inside it."""
    for loop in outermost(chain.body) if plan.single_pass else ():
        draft.take("unroll", loop.name, "full")
    vectorize_outer_loop(draft, chain.names[:plan.outer_loops], plan.lanes, context, plan.masked,
                         plan.vectors)


def emit_rows_at_once(draft: Draft, chain: Chain, plan: RowsAtOnce, context: PlanContext) -> None:
    """Vectorise the loops along several rows, and interleave the rows (unroll-and-jam)."""
    passes = [loop.name for loop in outermost(chain.body)]
    rows = draft.split(chain.names[-1], plan.rows)
    if context.threads:
        draft.parallelize_two(*chain.names[:-1], rows.outer)
    for name in passes:
        _in_masked_vectors(draft, name, plan.lanes, context)
    unroll_and_jam(draft, rows.inner)
    for name in passes if rows.tail else ():
        _in_masked_vectors(draft, rows.copies[name], plan.lanes, context)


def emit_rows_in_place(draft: Draft, chain: Chain, plan: RowsInPlace, context: PlanContext) -> None:
    """Work on a vector of each of several rows at once, in registers."""
    row, read = chain.names[-1], frozenset().union(*map(reads, chain.body))
    replaced = dict.fromkeys([ref.buffer for ref in stored(chain) if ref.buffer in read])
    rows = draft.split(chain.names[-2], plan.rows)
    outer, lane = pad_masked(draft, row, plan.lanes, context)
    draft.take("reorder", rows.outer, outer, rows.inner, lane)
    if context.threads:
        draft.parallelize_two(*chain.names[:-2], rows.outer)
    tiles = [draft.stage(rows.inner, buffer, "accumulate", "register", rows.inner, lane) for buffer in replaced]
    vectorize_tile(draft, rows.inner, lane, *tiles)
    if rows.tail:
        vectorize_masked(draft, rows.copies[row], plan.lanes, context)


def _in_masked_vectors(draft: Draft, loop: str, lanes: int, context: PlanContext) -> None:
    """Turn the loop along a row into masked vectors, and the scalars that it accumulates into vectors of partial
    results."""
    sums = [ref for ref in stored(chain_of(draft.loop(loop))) if not mentions(ref, (loop,))]
    outer, lane = pad_masked(draft, loop, lanes, context)
    vectorize_padded(draft, outer, lane, *[draft.stage(outer, ref.buffer, "partial", "register", lane) for ref in sums])
    for ref in sums:
        use_fma(draft, outer, ref, context)


def emit_row_prefetch(draft: Draft, chain: Chain, plan: RowPrefetch) -> None:
    """Prefetch the next row of those arrays that are read in vectors by now."""
    row = draft.loop(chain.names[-1])
    vectors = {n.buffer for n in row.unique() if isinstance(n, Vref)}
    for array in [array for array in plan.arrays if array in vectors]:
        draft.try_steps(("prefetch", row.name, array, 1))

"""Steps of matrix products with operands in place."""
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import Any

from ...core.expr import Const, Op, index
from ...core.text import form_of
from ...loop.statements import Aref, Vref
from ..analysis.classify import Chain, Contraction
from ..analysis.loop_queries import loops_in, mentions, trip_count, writes
from ..draft import Draft
from ..plans.contractions import StreamedGemm, UnpackedGemm
from ..plans.plan import NotApplicable, PlanContext
from .common_steps import (
    accumulate,
    no_scalar_functions,
    reorder,
    unroll_and_jam,
    unroll_tile,
    use_fma,
    vectorize_loop,
    vectorize_sum,
)

BLOCK = 4                       # rows and columns that are transposed in registers: more would leave more at the edges
MASKED_VECTORS = 2              # of a tile: a load crosses cache lines even where all of its lanes are off
ACCUMULATORS = 8                # that hide the latency of two multiply-adds per cycle


def emit_unpacked_gemm(draft: Draft, chain: Chain, c: Contraction, plan: UnpackedGemm, context: PlanContext) -> None:
    """Cover the result with register tiles, one height after the other, each with all widths."""
    if plan.transposed:
        c = c.transposed
    i, j, k = c.rows[-1], c.columns[-1], c.sums[-1]
    if plan.columns_outer:
        reorder(draft, chain, (j, i, k))
        _keep_elements(draft, c.out, plan, k, context)
        _panels(draft, plan, j, i, k, context)
        return
    reorder(draft, chain, (*c.batch, i, j, k))
    if plan.transpose_right:
        across, down = (k, j) if plan.lanes_along == "columns" else (j, k)
        tile = draft.stage(i, c.right.buffer, "read", "scratch", across, down)
        draft.attempt(partial(_transpose_copy, down=tile.usual(down)[0], across=tile.usual(across)[0]))
    _keep_elements(draft, c.out, plan, k, context)
    shared = False
    for height in plan.heights:
        if _is_shorter(draft, i, height):
            continue
        rows = draft.split(i, height)
        draft.take("reorder", j, rows.inner)
        if context.threads and not shared:
            draft.parallelize_two(*c.batch, rows.outer)
            shared = True
        _tile_columns(draft, plan, (rows.inner,), j, k, context)
        if not rows.tail:
            return
        i, j, k = rows.tail, rows.copies[j], rows.copies.get(k, "")
    _tile_columns(draft, plan, (), j, k, context)


def _transpose_copy(draft: Draft, down: str, across: str) -> None:
    """Transpose small blocks in registers while the right operand is copied. The copy is contiguous in `down`, which is
    inside `across`. The few rows and columns that are left stay scalar."""
    rows = draft.split(across, BLOCK).inner
    draft.take("reorder", down, rows)
    columns = draft.split(down, BLOCK).inner
    draft.take("reorder", rows, columns)
    draft.take("transpose", rows, columns)


def emit_streamed_gemm(draft: Draft, chain: Chain, c: Contraction, plan: StreamedGemm, context: PlanContext) -> None:
    """Read the right operand in order, a few rows at a time. The results of a block of columns and the left operand are
    packed, so that rows which lie a multiple of a page apart do not evict each other from the cache. The next rows are
    prefetched: each tile reads a piece of several rows, and computes longer than a processor looks ahead."""
    i, j, k = c.rows[-1], c.columns[-1], c.sums[-1]
    tile = UnpackedGemm((plan.rows,), (plan.columns,), plan.lanes, "columns", masked=plan.lanes)
    reorder(draft, chain, (j, k, i))
    made = draft.split(j, plan.columns)
    blocks, tiles = draft.split_whole(made.outer, plan.block, "min")
    if context.threads:
        draft.parallelize(blocks)
    draft.take("reorder", blocks, k, tiles, i, made.inner)
    kept = draft.stage(k, c.out.buffer, "accumulate", "scratch", tiles, i, made.inner)
    for name in kept.usual(made.inner):
        vectorize_loop(draft, name, plan.lanes)
    steps, packed = draft.split(k, plan.depth), c.out.replace(buffer=kept.tile)
    draft.take("reorder", steps.outer, tiles, i, made.inner, steps.inner)
    left = draft.stage(steps.outer, c.left.buffer, "read", "scratch", steps.outer, i, steps.inner)
    for name in left.usual(steps.inner):
        draft.try_steps(("vectorize", name))
    draft.try_steps(("prefetch_at", tiles, steps.outer, c.right.buffer, 1))
    _keep_elements(draft, packed, tile, steps.inner, context)
    _tile_rows(draft, tile, made.inner, i, steps.inner, context)
    if steps.tail:
        column = steps.copies[made.inner]
        draft.take("reorder", steps.copies[tiles], steps.copies[i], column, steps.tail)
        _keep_elements(draft, packed, tile, steps.tail, context)
        _jam_tile(draft, tile, (column,), steps.tail, context, chains=False)           # few rows of B are left
    if made.tail:
        j, k, i = made.tail, made.copies[k], made.copies[i]
        vectors = _most_vectors(tile, plan.rows, (plan.columns,))
        draft.take("reorder", j, i, k)
        _keep_elements(draft, c.out, tile, k, context)
        _tile_rows(draft, tile, draft.split_whole(j, vectors * plan.lanes, "pad")[1], i, k, context)


def _panels(draft: Draft, plan: UnpackedGemm, j: str, i: str, k: str, context: PlanContext) -> None:
    """Cover the result with panels of columns, each with tiles of all heights."""
    for width in plan.widths:
        if _is_shorter(draft, j, width):
            continue
        made = draft.split(j, width)
        if context.threads:
            draft.parallelize(made.outer)
        _tile_rows(draft, plan, made.inner, i, k, context)
        if not made.tail:
            return
        j, i, k = made.tail, made.copies[i], made.copies.get(k, "")
    _tile_rows(draft, plan, draft.split_whole(j, plan.masked, "pad")[1] if plan.masked else "", i, k, context)


def _tile_rows(draft: Draft, plan: UnpackedGemm, column: str, i: str, k: str, context: PlanContext) -> None:
    """Cover the rows of a panel, or of a single column if `column` is empty."""
    if column:
        draft.take("reorder", i, column)
    for height in plan.heights:
        if _is_shorter(draft, i, height):
            continue
        rows = draft.split(i, height)
        _jam_tile(draft, plan, (rows.inner, *([column] if column else [])), k, context)
        if not rows.tail:
            return
        i, column, k = rows.tail, rows.copies[column] if column else "", rows.copies.get(k, "")
    _jam_tile(draft, plan, (column,) if column else (), k, context)


def _tile_columns(draft: Draft, plan: UnpackedGemm, rows: tuple[str, ...], j: str, k: str,
                  context: PlanContext) -> None:
    """Cover the columns of a tile's rows, or of a single row."""
    for width in plan.widths if rows else plan.row_widths:
        if _is_shorter(draft, j, width):
            continue
        made = draft.split(j, width)
        _jam_tile(draft, plan, (*rows, made.inner), k, context)
        if not made.tail:
            return
        j, k, rows = made.tail, made.copies.get(k, ""), tuple([made.copies[name] for name in rows])
    if plan.masked:
        height = trip_count(draft.loop(rows[0])) if rows else 1
        vectors = plan.masked_vectors or _most_vectors(plan, height or 1, plan.widths if rows else plan.row_widths)
        if vectors == 1 and len(plan.widths) == 1:
            two = _needs_two_vectors(draft, plan, j)
            if draft.is_always(j, two):
                vectors = MASKED_VECTORS
            else:
                draft.attempt(partial(_masked_pair, plan=plan, rows=rows, j=j, k=k, cond=two, context=context))
        rows = (*rows, draft.split_whole(j, vectors * plan.masked, "pad")[1])
    _jam_tile(draft, plan, rows, k, context)


def _needs_two_vectors(draft: Draft, plan: UnpackedGemm, j: str) -> Any:
    """The condition that one vector does not hold the last columns."""
    found = draft.loop(j)
    return form_of(Op("lt", (index(plan.masked), found.hi - found.lo)))


def _masked_pair(draft: Draft, plan: UnpackedGemm, rows: tuple[str, ...], j: str, k: str, cond: Any,
                 context: PlanContext) -> None:
    """Compute the last columns as two vectors in calls that need them: their multiply-adds take less time than reading
    the left operand twice."""
    copies = draft.specialize(j, cond, "m")
    column = draft.split_whole(copies[j], MASKED_VECTORS * plan.masked, "pad")[1]
    _jam_tile(draft, plan, (*[copies[name] for name in rows], column), copies[k], context)


def _most_vectors(plan: UnpackedGemm, rows: int, widths: Iterable[int]) -> int:
    """Vectors per row of a masked tile: two if there are accumulators for them, since a row may fill one only. At most
    those of other tiles."""
    return max(1, min(max(widths, default=0) // plan.lanes, ACCUMULATORS // rows, MASKED_VECTORS))


def _keep_elements(draft: Draft, out: Aref, plan: UnpackedGemm, k: str, context: PlanContext) -> None:
    """Keep each element of the result in a register during its sum. Several of them, jammed, are a register tile."""
    scalar = plan.lanes_along == "sum"
    kept = accumulate(draft, k, out.buffer, finish=no_scalar_functions if scalar else lambda draft, sums: None)
    if scalar:
        vectorize_sum(draft, out.replace(buffer=kept.tile), plan.lanes, k, context)


def _jam_tile(draft: Draft, plan: UnpackedGemm, tile: tuple[str, ...], k: str, context: PlanContext,
              chains: bool = True) -> None:
    """Move the loops of a tile, rows first, into the sum over `k` (unroll-and-jam). Lanes along the columns are
    vectorised. `chains`: a tile of few accumulators has several for each element."""
    if plan.lanes_along == "columns":
        *axes, j = tile
        if draft.loop(j).hi != Const(plan.lanes, "i64"):
            group, j = draft.split_exactly(j, plan.lanes)
            axes.append(group)
        (total,) = [s.ref for s in writes(draft.loop(k)) if isinstance(s.ref, Aref)]
        accumulators = prod([trip_count(draft.loop(axis)) or 1 for axis in axes])
        steps = partial(_sum_in_chains, k=k, total=total, accumulators=accumulators, context=context)
        if not chains or not draft.attempt(steps):
            use_fma(draft, k, total, context)
        if not draft.try_steps(("vectorize", j)):                                         # the stores may be strided
            for name in draft.jam(j):
                if not draft.try_steps(("vectorize", name)):
                    draft.take("unroll", name)
        tile = tuple(axes)
    if plan.masked_vectors and len(tile) > 1:
        unroll_and_jam(draft, *reversed(tile))          # vectors outside, so that each is loaded once for all rows
        _load_once(draft)
    else:
        unroll_and_jam(draft, *tile)


def _load_once(draft: Draft) -> None:
    """Load vectors under a mask before the unrolled loop over the rows that they are multiplied with: C compilers load
    several of them for each row."""
    for loop in loops_in(draft.program):
        if loop.mark != "unroll" or (trip_count(loop) or 0) < 2:
            continue
        for buffer in dict.fromkeys([n.buffer for n in loop.unique() if isinstance(n, Vref) and n.mask is not None
                                     and not mentions(n, (loop.name,))]):
            draft.try_steps(("hoist", loop.name, buffer))


def _sum_in_chains(draft: Draft, k: str, total: Aref, accumulators: int, context: PlanContext) -> None:
    """Add up the terms of a sum in several accumulators for each element: a tile of few `accumulators` would wait for
    them."""
    count = ACCUMULATORS // accumulators
    if count < 2:
        raise NotApplicable("the tile has enough accumulators")
    made = draft.split(k, 1 << count.bit_length() - 1)
    chains = draft.stage(made.outer, total.buffer, "tree", "register", made.inner)
    for loop in (made.outer, *([made.tail] if made.tail else [])):
        use_fma(draft, loop, total, context)
    unroll_tile(draft, made.inner, chains)


def _is_shorter(draft: Draft, loop: str, count: int) -> bool:
    """Is it known that a loop has fewer iterations? What is left of a known extent may be less than a tile."""
    known = trip_count(draft.loop(loop))
    return known is not None and known < count

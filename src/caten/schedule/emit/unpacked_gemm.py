"""Steps of matrix products with operands in place."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...core.expr import Const
from ..analysis.classify import Chain, Contraction
from ..analysis.loop_queries import trip_count
from ..draft import Draft
from ..plans.contractions import StreamedGemm, UnpackedGemm
from ..plans.plan import PlanContext
from .common_steps import accumulate_in_registers, reorder, vectorize_loop, vectorize_sum

ACCUMULATORS = 8                # that hide the latency of two multiply-adds per cycle


def emit_unpacked_gemm(draft: Draft, chain: Chain, c: Contraction, plan: UnpackedGemm, context: PlanContext) -> None:
    """Cover the result with register tiles, one height after the other, each with all widths."""
    if plan.transposed:
        c = c.transposed
    i, j, k = c.rows[-1], c.columns[-1], c.sums[-1]
    if plan.columns_outer:
        reorder(draft, chain, (j, i, k))
        _panels(draft, c, plan, j, i, k, context)
        return
    reorder(draft, chain, (*c.batch, i, j, k))
    if plan.transpose_right:
        draft.stage(i, c.right.buffer, "read", "scratch", *((k, j) if plan.lanes_along == "columns" else (j, k)))
    shared = False
    for height in plan.heights:
        if _is_shorter(draft, i, height):
            continue
        rows = draft.split(i, height)
        draft.take("reorder", j, k, rows.inner)
        if context.threads and not shared:
            draft.parallelize_two(*c.batch, rows.outer)
            shared = True
        _tile_columns(draft, c, plan, (rows.inner,), j, k, context)
        if not rows.tail:
            return
        i, j, k = rows.tail, rows.copies[j], rows.copies[k]
    _tile_columns(draft, c, plan, (), j, k, context)


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
    steps = draft.split(k, plan.depth)
    inside = replace(c, out=c.out.replace(buffer=kept.tile))
    draft.take("reorder", steps.outer, tiles, i, made.inner, steps.inner)
    left = draft.stage(steps.outer, c.left.buffer, "read", "scratch", steps.outer, i, steps.inner)
    for name in left.usual(steps.inner):
        draft.try_steps(("vectorize", name))
    draft.try_steps(("prefetch_at", tiles, steps.outer, c.right.buffer, 1))
    _tile_rows(draft, inside, tile, made.inner, i, steps.inner, context)
    if steps.tail:
        column = steps.copies[made.inner]
        draft.take("reorder", steps.copies[tiles], steps.copies[i], column, steps.tail)
        _keep_tile(draft, inside, tile, (column,), steps.tail, context)                # few rows of B are left
    if made.tail:
        j, k, i = made.tail, made.copies[k], made.copies[i]
        vectors = _most_vectors(tile, plan.rows, (plan.columns,))
        column = draft.split_whole(j, vectors * plan.lanes, "pad")[1]
        _tile_rows(draft, c, tile, column, i, k, context)


def _panels(draft: Draft, c: Contraction, plan: UnpackedGemm, j: str, i: str, k: str, context: PlanContext) -> None:
    """Cover the result with panels of columns, each with tiles of all heights."""
    for width in plan.widths:
        if _is_shorter(draft, j, width):
            continue
        made = draft.split(j, width)
        if context.threads:
            draft.parallelize(made.outer)
        _tile_rows(draft, c, plan, made.inner, i, k, context)
        if not made.tail:
            return
        j, i, k = made.tail, made.copies[i], made.copies[k]
    column = draft.split_whole(j, plan.masked, "pad")[1] if plan.masked else ""
    _tile_rows(draft, c, plan, column, i, k, context)


def _tile_rows(draft: Draft, c: Contraction, plan: UnpackedGemm, column: str, i: str, k: str,
               context: PlanContext) -> None:
    """Cover the rows of a panel, or of a single column if `column` is empty."""
    if column:
        draft.take("reorder", i, column, k)
    for height in plan.heights:
        if _is_shorter(draft, i, height):
            continue
        rows = draft.split(i, height)
        _keep_tile(draft, c, plan, (rows.inner, *([column] if column else [])), k, context)
        if not rows.tail:
            return
        i, k = rows.tail, rows.copies[k]
        column = rows.copies[column] if column else ""
    _keep_tile(draft, c, plan, (column,) if column else (), k, context)


def _tile_columns(draft: Draft, c: Contraction, plan: UnpackedGemm, rows: tuple[str, ...], j: str, k: str,
                  context: PlanContext) -> None:
    """Cover the columns of a tile's rows, or of a single row."""
    for width in plan.widths if rows else plan.row_widths:
        if _is_shorter(draft, j, width):
            continue
        made = draft.split(j, width)
        _keep_tile(draft, c, plan, (*rows, made.inner), k, context)
        if not made.tail:
            return
        j, k, rows = made.tail, made.copies[k], tuple([made.copies[name] for name in rows])
    if plan.masked:
        height = trip_count(draft.loop(rows[0])) if rows else 1
        vectors = _most_vectors(plan, height or 1, plan.widths if rows else plan.row_widths)
        rows = (*rows, draft.split_whole(j, vectors * plan.masked, "pad")[1])
    _keep_tile(draft, c, plan, rows, k, context)


def _most_vectors(plan: UnpackedGemm, rows: int, widths: Iterable[int]) -> int:
    """Vectors per row of a masked tile: as many as are computed in the time of one, which waits for its
    multiply-adds. At most those of other tiles."""
    return max(1, min(max(widths, default=0) // plan.lanes, ACCUMULATORS // rows))


def _keep_tile(draft: Draft, c: Contraction, plan: UnpackedGemm, tile: tuple[str, ...], k: str,
               context: PlanContext) -> None:
    """Keep a tile of the result in registers. `tile`: its loops, rows first."""
    if tile:
        draft.take("reorder", k, *tile)
    if plan.lanes_along == "columns":
        _vectorize_columns(draft, c, plan, tile, k)
    else:
        vectorize_sum(draft, c.out, plan.lanes, tile, k, context)


def _vectorize_columns(draft: Draft, c: Contraction, plan: UnpackedGemm, tile: tuple[str, ...], k: str) -> None:
    *rows, j = tile
    several = draft.loop(j).hi != Const(plan.lanes, "i64")
    group, lane = draft.split_exactly(j, plan.lanes) if several else ("", j)
    groups = [group] if several else []
    made = accumulate_in_registers(draft, k, c.out.buffer, *rows, *groups, lane)
    draft.take("vectorize", lane)
    for name in made.over(lane):
        if not draft.try_steps(("vectorize", name)):                                      # the stores may be strided
            draft.take("unroll", name)
    draft.take("contract", k)
    for axis in (*groups, *rows):
        for name in (axis, *made.over(axis)):
            draft.take("unroll", name)


def _is_shorter(draft: Draft, loop: str, count: int) -> bool:
    """Is it known that a loop has fewer iterations? What is left of a known extent may be less than a tile."""
    known = trip_count(draft.loop(loop))
    return known is not None and known < count

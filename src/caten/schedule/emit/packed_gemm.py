"""Steps of a packed GEMM."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.statements import Aref, Vref
from ..analysis.classify import Chain, Contraction
from ..analysis.loop_queries import locals_in, trip_count
from ..draft import Draft
from ..plans.packed_products import PackedGemm
from ..plans.plan import PlanContext
from ..step_results import Staged
from .common_steps import (
    EPILOGUE,
    accumulate,
    prefetch_operands,
    vectorize_copy,
    vectorize_edges,
    vectorize_epilogue,
    vectorize_loop,
)


def emit_packed_gemm(draft: Draft, chain: Chain, c: Contraction, plan: PackedGemm, context: PlanContext) -> None:
    """Tile, pack, vectorise and parallelise: the loops jc, ko (kc), io (mc) around the micro-kernel, as in BLIS."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums[plan.outside:]
    outside, around, lines = (*c.batch, *c.rows[:-1]), c.sums[:plan.outside], c.columns[:-1]
    draft.take("reorder", *outside, i, *around, k, *lines, j, *inner)
    jc, jj = draft.split_whole(j, plan.panel_columns, "min") if plan.panel_columns else ("", j)
    jo, ji = draft.split_whole(jj, plan.columns, "pad")
    ko, ki = draft.split_whole(k, plan.depth, "min")
    io, ii = draft.split_whole(i, plan.panel_rows, "min")
    iio, iii = draft.split_whole(ii, plan.rows, "pad")
    tiles = (iio, jo) if plan.rows_outer else (jo, iio)
    if lines:
        draft.take("reorder", *outside, io, *around, ko, *lines, *tiles, ki, *inner, iii, ji)
    else:
        draft.take("reorder", *outside, jc, *around, ko, io, *tiles, ki, *inner, iii, ji)
    axes = (iio, iii, ki) if plan.pack_along_sum else (iio, ki, *inner, iii)
    left = draft.stage((*lines, *tiles)[0], c.left.buffer, "read", "scratch", *axes)
    right_axes = (*(() if lines else (jo,)), ki, *inner, ji)
    right = draft.stage(iio if lines else io, c.right.buffer, "read", "scratch", *right_axes)
    for panel in (left.tile, right.tile) if lines else (right.tile, left.tile):      # the outer panel first
        draft.try_steps(("precompute", panel))                          # (float) A · B, alpha · A · B
    if context.threads and plan.parallel_panels:
        draft.take("parallel", jc)
        inside = False
    else:
        inside = plan.parallel_product or not draft.parallelize(*c.batch) if context.threads else False
    if inside and draft.parallelize_two(*lines, tiles[0]):
        draft.try_steps(("parallel", tiles[1]))
        draft.parallelize(left.over(axes[0])[0])
        if not lines:
            draft.parallelize(right.over(jo)[0])
    visits = accumulate(draft, ki, c.out.buffer, iii, ji, how="partial",
                                     finish=partial(vectorize_epilogue, column=ji, lanes=plan.lanes, context=context))
    for loop in reversed((*inner, iii)):
        draft.try_steps(("hoist", loop))
    finished = visits.over(ji, *EPILOGUE)
    columns, results = [[name for name in tile.usual(ji) if name not in finished
                         and trip_count(draft.loop(name)) is not None]
                        for tile in (right, visits)]          # not those that stop at the edge of an array
    vectorize_loop(draft, ji, plan.lanes)
    in_blocks = plan.transpose_right and len(columns) == 1 and draft.attempt(
        partial(_transpose_blocks, sum_loop=right.usual(ki)[0], name=columns[0], lanes=plan.lanes))
    for name in () if in_blocks else columns:
        draft.attempt(partial(vectorize_loop, name=name, lanes=plan.lanes))                 # loads may be strided
    for name in results:
        vectorize_loop(draft, name, plan.lanes)
    if plan.pack_along_sum:
        for name in left.over(ki):
            draft.attempt(partial(vectorize_copy, name=name, lanes=plan.lanes))
    if not lines:
        vectorize_edges(draft, right, ji, plan.lanes, context, "fill")
        vectorize_edges(draft, visits, ji, plan.lanes, context, "store")
    if context.machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", ki)
    registers = {n.name for n in locals_in(draft.program) if n.space == "register" and n.shape}
    for name in (iii, *visits.usual(iii)):
        if any(isinstance(n, Aref | Vref) and n.buffer in registers for n in draft.loop(name).unique()):
            draft.take("unroll", name)
    draft.try_steps(("prefetch", tiles[-1], c.out.buffer, 1, "write"))
    prefetch_operands(draft, visits, iii, tiles[-1])
    _prefetch_rows(draft, c.left.buffer, left, iii, plan.prefetch)
    if not in_blocks:
        _prefetch_rows(draft, c.right.buffer, right, ki, plan.prefetch)
    if plan.unroll_inner:
        draft.take("unroll", inner[-1])
    if plan.unroll > 1:
        draft.attempt(partial(_unroll_sum, name=ki, count=plan.unroll))


def _transpose_blocks(draft: Draft, sum_loop: str, name: str, lanes: int) -> None:
    """Pack by transposing blocks of lanes × lanes in registers; what is left of the sum, by strided loads."""
    vectors, lane = draft.split_exactly(name, lanes)
    rows = draft.split(sum_loop, lanes)
    draft.take("reorder", vectors, rows.inner)
    draft.take("transpose", rows.inner, lane)
    draft.take("unroll", vectors)
    if rows.tail:
        draft.take("vectorize", rows.copies[lane])
        draft.take("unroll", rows.copies[vectors])


def _unroll_sum(draft: Draft, name: str, count: int) -> None:
    """Unroll a loop by `count`."""
    draft.take("unroll", draft.split(name, count).inner)


def _prefetch_rows(draft: Draft, buffer: str, packed: Staged, axis: str, distance: int) -> None:
    """Prefetch the rows that are packed next: hardware prefetchers do not follow row strides."""
    for nest in packed.nests:
        if not nest.is_edge and draft.try_steps(("prefetch", nest.loops[axis], buffer, distance)):
            return

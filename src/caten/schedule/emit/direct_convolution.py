"""Steps of a direct convolution: vectors are read from packed lines of the image, wherever a window begins."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.accesses import stride_in
from ..analysis.classify import Chain, Contraction
from ..analysis.loop_queries import loops_in
from ..draft import Draft
from ..plans.convolutions import DirectConvolution
from ..plans.plan import NotApplicable, PlanContext
from .common_steps import (
    EPILOGUE,
    accumulate,
    in_shorter_vectors,
    unroll_usual,
    vectorize_edges,
    vectorize_loop,
)
from .packed_convolution import check_epilogue, drop_edge_conditions, only_setting, transpose_filters, windows_over


def emit_direct_convolution(draft: Draft, chain: Chain, c: Contraction, plan: DirectConvolution,
                            context: PlanContext) -> None:
    """Tile, pack the lines under a row of tiles with their halo, drop the edge conditions if the sum is the same,
    vectorise, parallelise."""
    row, channel, *window = c.rows[-1], *c.sums
    outside, (*images, line, column) = (*c.batch, *c.rows[:-1]), c.columns
    draft.take("reorder", *outside, row, channel, *c.columns, *window)
    if all(stride_in(i, column) != 1 for i in c.right.index):
        raise NotApplicable("neighbouring windows do not begin at neighbouring pixels")
    xo, xi = draft.split_whole(column, plan.width, "pad")
    yo, yi = draft.split_whole(line, plan.lines, "pad")
    co, ci = draft.split_whole(channel, plan.depth, "min")
    oo, oi = draft.split_whole(row, plan.rows, "pad")
    around = (*images, yo)
    draft.take("reorder", *outside, co, *around, oo, xo, ci, *window, oi, yi, xi)
    left = draft.stage(around[0], c.left.buffer, "read", "scratch", oo, ci, *window, oi)
    over_line, over_column = [windows_over(c, window, axis) for axis in (line, column)]
    deeper = [axis for axis in window if axis not in (*over_line, *over_column)]
    right = draft.stage(oo, c.right.buffer, "read", "scratch", ci, *deeper, (yi, *over_line), (xo, xi, *over_column))
    for tile in (left.tile, right.tile):
        draft.try_steps(("precompute", tile))               # the ReLU of the layer before
    sums = accumulate(draft, ci, c.out.buffer, oi, yi, xi, how="partial", keep_conditions=True,
                      finish=partial(check_epilogue, pixels=(yi, xi), lanes=plan.lanes, context=context))
    draft.attempt(partial(transpose_filters, array=c.left.buffer, packed=left, summing=(ci, *window), row=oi,
                          lanes=plan.lanes))
    if context.threads and not draft.parallelize(*c.batch):
        draft.parallelize_two(*around)
    copy = drop_edge_conditions(draft, around[0], right.tile, plan.lanes, constant_window=True)
    for nest in right.nests:
        draft.attempt(partial(_vectorize_lines, channel=nest.loops[ci], line=nest.loops[yi], column=nest.loops[xo],
                              lanes=plan.lanes))
    usual = [nest for nest in sums.usual_nests("begin", "lay", "store", "add", *EPILOGUE) if not nest.is_edge]
    for name in (xi, *[nest.loops[xi] for nest in usual]):
        vectorize_loop(draft, name, plan.lanes)
    if xi in copy:
        draft.attempt(partial(vectorize_loop, name=copy[xi], lanes=plan.lanes))
    vectorize_edges(draft, sums, xi, plan.lanes, context, *EPILOGUE)
    vectorize_edges(draft, only_setting(draft, sums, oi), xi, plan.lanes, context, "store")
    if context.machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *([copy[ci]] if ci in copy else [])):
            draft.take("contract", name)
    unroll_usual(draft, yi, sums, "begin", "lay", "store", "add", *EPILOGUE)
    unroll_usual(draft, oi, sums)
    if plan.unroll_inner:
        draft.take("unroll", window[-1])


def _vectorize_lines(draft: Draft, channel: str, line: str, column: str, lanes: int) -> None:
    """Pack lines of pixels as vectors, and the few pixels of the halo as shorter ones, with channels inside the edge
    conditions, so that these are evaluated once for all."""
    draft.take("reorder", line, column, channel)
    whole = draft.split(column, lanes)
    for part in (whole, *(in_shorter_vectors(draft, whole.tail, lanes) if whole.tail else ())):
        draft.take("reorder", loops_in(draft.loop(part.inner).body)[0].name, part.inner)
        draft.take("vectorize", part.inner)

"""Steps of the gradient of a convolution's weights with lanes along the lines of images."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ..analysis.classify import Chain, Contraction
from ..analysis.loop_queries import trip_count
from ..draft import Draft
from ..plans.convolutions import TapsAtOnce
from ..plans.plan import PlanContext
from .common_steps import vectorize_copy, vectorize_loop, vectorize_tile
from .packed_convolution import drop_edge_conditions


def emit_taps_at_once(draft: Draft, chain: Chain, c: Contraction, plan: TapsAtOnce, context: PlanContext) -> None:
    """Copy the gradient with zeros behind its filters and lines, and the lines of a channel with their halo. Drop the
    edge conditions if the sum is the same, and add up filters × taps in vectors along the lines."""
    row, (*channels, tap_line, tap), (*images, line, column) = c.rows[-1], c.columns, c.sums
    outside = (*c.batch, *c.rows[:-1])
    draft.take("reorder", *outside, *images, *channels, row, tap_line, line, column, tap)
    block, y = draft.split_whole(line, plan.lines, "min")
    vectors, lane = draft.split_whole(column, plan.lanes, "pad")
    filters, i = draft.split_whole(row, plan.rows, "pad")
    tile = (i, tap) if (trip_count(draft.loop(tap)) or 0) <= plan.rows else (tap, i)    # what is kept is the shorter
    draft.take("reorder", *outside, *images, block, *channels, filters, tap_line, y, vectors, *tile, lane)
    around = channels[0] if channels else filters
    gradient = draft.stage(around, c.left.buffer, "read", "scratch", filters, y, vectors, i, lane)
    image = draft.stage(filters, c.right.buffer, "read", "scratch", (y, tap_line), (vectors, lane, tap))
    for staged in (gradient, image):
        draft.try_steps(("precompute", staged.tile))                    # the ReLU of the layer before
    sums = draft.stage(y, c.out.buffer, "partial", "register", i, tap, lane)
    if context.threads and not draft.parallelize_two(*outside) and draft.parallelize(*channels):
        draft.parallelize(gradient.over(filters)[0])
    copy = drop_edge_conditions(draft, around, image.tile, plan.lanes, constant_window=False)
    if context.machine.has_fma and is_float(c.out.dtype):
        for name in (y, *([copy[y]] if y in copy else [])):
            draft.take("contract", name)
    vectorize_tile(draft, "", lane, sums)
    for name in (tap, i, *sums.usual(tap), *sums.usual(i)):
        draft.take("unroll", name)
    for name in gradient.over(lane):
        draft.attempt(partial(vectorize_loop, name=name, lanes=plan.lanes))
    for name in image.over(vectors):
        draft.attempt(partial(vectorize_copy, name=name, lanes=plan.lanes))

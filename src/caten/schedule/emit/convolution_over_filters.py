"""Steps of a convolution whose vectors are filters."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Const, Var
from ..analysis.classify import Chain, Contraction
from ..draft import Draft
from ..plans.convolutions import ConvolutionOverFilters
from ..plans.plan import NotApplicable, PlanContext
from ..staging import Shared
from ..step_results import Nest, Staged
from .common_steps import accumulate, unroll_usual, vectorize_edges, vectorize_loop, vectorize_masked
from .packed_convolution import drop_edge_conditions, transpose_filters, windows_over


def emit_convolution_over_filters(draft: Draft, chain: Chain, c: Contraction, plan: ConvolutionOverFilters,
                                  context: PlanContext) -> None:
    """Accumulate all results of a panel of filters in scratch memory. Tile, pack the filters and the pixels with their
    halo, drop the edge conditions if the sum is the same, and vectorise; transpose the results."""
    (row,), (channel, *window), (*images, line, column) = c.rows, c.sums, c.columns
    panel, j = draft.split_whole(row, plan.panel_filters, "min")
    blocks, inside = images[:-1], images[-1:]
    if images:
        block, image = draft.split_whole(images[-1], plan.images, "min")
        blocks, inside = [*blocks, block], [image]
    draft.take("reorder", *blocks, panel, channel, *window, *inside, line, column, j)
    results = accumulate(draft, channel, c.out.buffer, *inside, line, column, j, how="partial", keep_conditions=True,
                         space="scratch", finish=lambda d, made: None)
    if context.threads:
        for name in (*blocks, panel):
            draft.try_steps(("parallel", name))
    xo, xi = draft.split_whole(column, plan.width, "pad")
    yo, yi = draft.split_whole(line, plan.lines, "pad")
    co, ci = draft.split_whole(channel, plan.depth, "min")
    jo, ji = draft.split_whole(j, plan.filters, "pad")
    around = (*inside, yo, xo)
    draft.take("reorder", co, *around, jo, ci, *window, yi, xi, ji)
    filters = draft.stage(around[0], c.left.buffer, "read", "scratch", jo, ci, *window, ji)
    pixels = draft.stage(jo, c.right.buffer, "read", "scratch", ci, *_with_halo(c, window, {line: yi, column: xi}))
    for tile in (filters.tile, pixels.tile):
        draft.try_steps(("precompute", tile))               # the ReLU of the layer before
    sums = accumulate(draft, ci, results.tile, yi, xi, ji, how="partial", keep_conditions=True)
    transpose_filters(draft, c.left.buffer, filters, (ci, *window), ji, plan.lanes)
    copy = drop_edge_conditions(draft, around[0], pixels.tile, plan.lanes, constant_window=True)
    for nest in pixels.nests:
        draft.attempt(partial(_vectorize_pixels, nest=nest, channel=ci, line=yi, column=xi, lanes=plan.lanes,
                              context=context))
    if context.machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *([copy[ci]] if ci in copy else [])):
            draft.take("contract", name)
    vectors = [ji, *[nest.loops[ji] for nest in sums.usual_nests("begin", "lay", "store", "add")]]
    for name in vectors:
        vectorize_loop(draft, name, plan.lanes)
    if ji in copy:
        draft.attempt(partial(vectorize_loop, name=copy[ji], lanes=plan.lanes))
    vectorize_edges(draft, sums, ji, plan.lanes, context, "store", "add")
    for axis in (xi, yi):
        unroll_usual(draft, axis, sums, "begin", "lay", "store", "add")
    for nest in results.nests:
        if nest.does in ("store", "finish"):
            draft.attempt(partial(_transpose_results, results=results, nest=nest, axes=(j, line, column),
                                  lanes=plan.lanes, context=context))


def _with_halo(c: Contraction, window: Sequence[str], tiles: dict[str, str]) -> list[Shared]:
    """The axes of the packed pixels: of each line or column of a tile, with the axis of the window over it."""
    axes = [(inner, windows_over(c, window, outer)) for outer, inner in tiles.items()]
    return [(inner, *over) if over else inner for inner, over in axes]


def _vectorize_pixels(draft: Draft, nest: Nest, channel: str, line: str, column: str, lanes: int,
                      context: PlanContext) -> None:
    """Pack lines of pixels as vectors, with channels inside the edge conditions, so that these are evaluated once for
    all."""
    names = [nest.loops[axis] for axis in (line, channel, column)]
    if nest.is_edge:
        draft.try_steps(("reorder", *names))
    vectorize_masked(draft, names[-1], lanes, context)


def _transpose_results(draft: Draft, results: Staged, nest: Nest, axes: tuple[str, str, str], lanes: int,
                       context: PlanContext) -> None:
    """Transpose the results of `lanes` filters in registers, all lines as one, and store these in vectors along the
    lines of an image."""
    j, line, column = [nest.loops[axis] for axis in axes]
    if not all(isinstance(draft.loop(name).hi, Var | Const) for name in (line, column)):
        raise NotApplicable("the pixels of an image are not proven to fit an index if its extents are no sizes")
    draft.take("reorder", j, line, column)
    inner = draft.split(j, lanes).inner
    copied = draft.stage(inner, results.tile, "read", "scratch", inner, line, column)
    (filling,) = copied.nests
    pixels = draft.fuse(filling.loops[line], filling.loops[column])
    draft.take("flatten", copied.tile, 1)
    draft.take("flatten", results.tile, len(nest.loops) - 3)
    draft.take("reorder", pixels, filling.loops[inner])
    block = draft.split(pixels, lanes).inner
    draft.take("transpose", block, filling.loops[inner])
    vectorize_masked(draft, column, lanes, context)

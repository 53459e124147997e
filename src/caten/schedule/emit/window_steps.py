"""Steps of sums over windows: the lines of an image are copied with zeros around them."""
from __future__ import annotations

from functools import partial

from ...core.expr import Const
from ..analysis.classify import Chain
from ..analysis.loop_queries import locals_in
from ..draft import Draft
from ..plans.plan import PlanContext
from ..plans.windows import PaddedLines, TapsOfLines, match_window_gradient, match_window_sum
from ..step_results import Staged
from .common_steps import accumulate, use_fma, vectorize_edges, vectorize_loop
from .packed_convolution import drop_edge_conditions


def emit_padded_lines(draft: Draft, chain: Chain, plan: PaddedLines, context: PlanContext) -> None:
    """Copy blocks of lines with their halo, drop the edge conditions if the sum is the same, and keep some lines of
    results in registers while all taps are added."""
    w = match_window_sum(draft.program, chain, context)
    (*lines, column), taps = [n.name for n, _ in w.moves], [tap.name for _, tap in w.moves]
    order = taps[::-1]                      # neighbouring lines of results read the same line at each tap along it
    outside, sums = [axis.name for axis in w.outside], [axis.name for axis in w.sums]
    blocks, rows, inner, xo, vectors, lane = _split(draft, lines, column, plan)
    draft.take("reorder", *outside, *blocks, xo, *rows, vectors, *sums, *order, *inner, lane)
    around = (*rows, vectors)[0]
    over = [(*rows, *inner, taps[0])] if lines else []
    image = draft.stage(around, w.image, "read", "scratch", *over, (vectors, lane, taps[-1]))
    draft.try_steps(("precompute", image.tile))
    _widen_rows(draft, image.tile, plan.lanes)
    held = accumulate(draft, (*sums, *order)[0], w.out.buffer, *inner, lane, how="partial", keep_conditions=True)
    if context.threads:
        draft.parallelize_two(*outside, *blocks)
    copy = drop_edge_conditions(draft, (*blocks, xo)[0], image.tile, plan.lanes, constant_window=True)
    for name in dict.fromkeys((order[0], *([copy[order[0]]] if order[0] in copy else []))):
        use_fma(draft, name, w.out, context)
    nests = held.usual_nests("begin", "lay", "store", "add")
    for name in (lane, *[nest.loops[lane] for nest in nests]):
        vectorize_loop(draft, name, plan.lanes)
    vectorize_edges(draft, held, lane, plan.lanes, context, "store", "add")
    for i in inner:
        for name in [nest.loops[i] for nest in nests]:
            draft.take("unroll", name)
    for name in reversed((*order, *inner)):
        draft.take("unroll", name, "full")
    _copy(draft, image, (*rows, vectors), plan.lanes, context)


def emit_taps_of_lines(draft: Draft, chain: Chain, plan: TapsOfLines, context: PlanContext) -> None:
    """Copy blocks of lines of both operands with zeros around them, drop the edge conditions if the sum is the same,
    and add up a vector for each tap."""
    w = match_window_gradient(draft.program, chain, context)
    (*lines, column), taps = [n.name for n, _ in w.moves], [tap.name for _, tap in w.moves]
    outside, sums = [axis.name for axis in w.outside], [axis.name for axis in w.sums]
    blocks, rows, inner, xo, vectors, lane = _split(draft, lines, column, plan)
    around, first = taps[:0 if plan.all_taps else -1], (*rows, vectors)[0]
    held = taps[len(around):]
    draft.take("reorder", *outside, *sums, *blocks, xo, *around, *rows, vectors, *inner, *held, lane)
    results = draft.stage((*sums, *blocks, xo)[0], w.out.buffer, "partial", "scratch", *taps, lane)
    if context.threads:
        draft.parallelize_two(*outside)
    outer = (*around, first)[0]
    over = [(*rows, *inner, taps[0])] if lines else []
    gradient = draft.stage(outer, w.other, "read", "scratch", *[(*rows, *inner)][:len(lines)], (vectors, lane))
    image = draft.stage(outer, w.image, "read", "scratch", *over, (vectors, lane, taps[-1]))
    for staged in (gradient, image):
        draft.try_steps(("precompute", staged.tile))                    # the ReLU of the layer before
    _widen_rows(draft, image.tile, plan.lanes)
    total = draft.stage(first, results.tile, "partial", "register", *held, lane)
    copy = drop_edge_conditions(draft, first, image.tile, plan.lanes, constant_window=False)
    for name in dict.fromkeys((first, *([copy[first]] if first in copy else []))):
        use_fma(draft, name, w.out, context)
    for name in (lane, *results.over(lane), *total.over(lane)):
        draft.attempt(partial(vectorize_loop, name=name, lanes=plan.lanes))
    for name in held:
        for other in total.usual(name):
            draft.take("unroll", other)
    for name in reversed((*inner, *held)):
        draft.take("unroll", name, "full")
    for staged in (gradient, image):
        _copy(draft, staged, (*rows, vectors), plan.lanes, context)


def _split(draft: Draft, lines: list[str], column: str, plan: PaddedLines | TapsOfLines,
           ) -> tuple[list[str], list[str], list[str], str, str, str]:
    """Split the lines of an image, if it has several, and the columns. Returns the loops over blocks of lines, over
    groups of lines in a block, and over the lines of a group; over blocks of columns, vectors, and their lanes."""
    xo, xi = draft.split_whole(column, plan.width, "min")
    vectors, lane = draft.split_whole(xi, plan.lanes, "pad")
    if not lines:
        return [], [], [], xo, vectors, lane
    block, within = draft.split_whole(lines[0], plan.lines, "min")
    row, i = draft.split_whole(within, plan.rows, "pad")
    return [block], [row], [i], xo, vectors, lane


def _copy(draft: Draft, made: Staged, loops: tuple[str, ...], lanes: int, context: PlanContext) -> None:
    """Copy the lines of a tile in vectors."""
    for nest in made.usual_nests():
        draft.attempt(partial(_copy_lines, loops=[nest.loops[name] for name in loops], lanes=lanes, context=context))


def _widen_rows(draft: Draft, tile: str, lanes: int) -> None:
    """Round the rows of a tile up to whole vectors, one more if they are: the last vector read with a step reaches
    behind what is copied, and needs no mask then."""
    row = next(n for n in locals_in(draft.program.kernels) if n.name == tile).shape[-1]
    if isinstance(row, Const):
        draft.try_steps(("widen", tile, lanes - row.value % lanes))


def _copy_lines(draft: Draft, loops: list[str], lanes: int, context: PlanContext) -> None:
    """Copy vectors of the lines of an image; the lines inside, as the columns beyond an edge are the same in each."""
    *lines, column = loops
    masked = context.masks_are_cheap(lanes)
    made = draft.split(column, lanes, *(["pad"] if masked else []))
    draft.take("reorder", made.outer, *lines, made.inner)
    draft.take("vectorize", made.inner)
    draft.try_steps(*[("interior", line) for line in lines])

"""Steps of the gradient of a convolution's weights: lanes lie along the lines of images, or are channels."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.accesses import conjuncts
from ...loop.statements import For, If
from ..analysis.classify import Chain, Contraction, contiguous_loop
from ..analysis.loop_queries import mentions, trip_count
from ..draft import Draft
from ..plans.convolutions import TapByTap, TapsAtOnce
from ..plans.plan import NotApplicable, PlanContext
from .common_steps import accumulate, unroll_usual, vectorize_copy, vectorize_edges, vectorize_loop, vectorize_tile
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
    unroll_usual(draft, tap, sums)
    unroll_usual(draft, i, sums)
    for name in gradient.over(lane):
        draft.attempt(partial(vectorize_loop, name=name, lanes=plan.lanes))
    for name in image.over(vectors):
        draft.attempt(partial(vectorize_copy, name=name, lanes=plan.lanes))


def emit_tap_by_tap(draft: Draft, chain: Chain, c: Contraction, plan: TapByTap, context: PlanContext) -> None:
    """Accumulate the results of a panel in scratch memory. Transpose the filters, and the pixels with their halo, drop
    the edge conditions if the sum is the same, and add up tiles of filters × channels for each tap."""
    channel = next(n for n in reversed(c.columns) if n not in c.moving)
    moves = _moves(draft, c)[-1 if plan.lines is None else -2:]
    taps, pixels_of = [tap for _, tap in moves], [n for n, _ in moves]
    images = [n for n in c.sums if n not in pixels_of]
    outside = (*c.batch, *c.rows[:-1], *[n for n in c.columns if n not in (channel, *taps)])
    channels, j = draft.split_whole(channel, plan.lanes, "min")
    filters, i = draft.split_whole(c.rows[-1], plan.panel_rows, "min")
    sizes = [plan.width] if plan.lines is None else [plan.lines, plan.width]
    split = [draft.split_whole(n, size, "min") for n, size in zip(pixels_of, sizes, strict=True)]
    around, inside = [block for block, _ in split], [inner for _, inner in split]
    draft.take("reorder", *outside, channels, filters, *images, *around, i, *taps, *inside, j)
    results = accumulate(draft, (*images, *around)[0], c.out.buffer, i, *taps, j, how="partial", keep_conditions=True,
                         space="scratch")
    if context.threads:
        draft.parallelize_two(*outside, channels, filters)
    vector, lane = draft.split_whole(j, plan.lanes, "pad")
    rows, ii = draft.split_whole(i, plan.rows, "pad")
    draft.take("reorder", vector, rows, *taps, *inside, ii, lane)
    gradient = draft.stage(vector, c.left.buffer, "read", "scratch", rows, *inside, ii)
    pixels = draft.stage(rows, c.right.buffer, "read", "scratch", *zip(inside, taps, strict=True), lane)
    for tile in (gradient.tile, pixels.tile):
        draft.try_steps(("precompute", tile))               # the ReLU of the layer before
    sums = accumulate(draft, inside[0], results.tile, ii, lane, how="partial", keep_conditions=True)
    copy = drop_edge_conditions(draft, vector, pixels.tile, plan.lanes, constant_window=False)
    if context.machine.has_fma and is_float(c.out.dtype):
        for name in (inside[0], *([copy[inside[0]]] if inside[0] in copy else [])):
            draft.take("contract", name)
    nests = sums.usual_nests("begin", "lay", "store", "add")
    for name in (lane, *[nest.loops[lane] for nest in nests]):
        vectorize_loop(draft, name, plan.lanes)
    vectorize_edges(draft, sums, lane, plan.lanes, context, "store", "add")
    unroll_usual(draft, ii, sums, "begin", "lay", "store", "add")
    for nest in gradient.usual_nests():
        draft.attempt(partial(_transpose_in_blocks, along=nest.loops[inside[-1]], lanes=plan.lanes))
    usual = pixels.usual_nests()
    edges = [nest for nest in pixels.nests if nest.loops[inside[0]] not in pixels.usual(inside[0])]
    for nest in (*usual, *edges):
        loops = tuple([nest.loops[name] for name in (*inside, lane)])
        if not draft.attempt(partial(_transpose_pixels, loops=loops, lanes=plan.lanes)):
            draft.attempt(partial(vectorize_loop, name=loops[-1], lanes=plan.lanes))


def _moves(draft: Draft, c: Contraction) -> list[tuple[str, str]]:
    """The loops over the lines and columns of images, each with that over the taps along it. The last one is contiguous
    in memory, if one is."""
    found = [(n, tap) for n in c.sums for tap in c.moving
             if any(mentions(i, (n,)) and mentions(i, (tap,)) for i in c.right.index)]
    if not len({n for n, _ in found}) == len({tap for _, tap in found}) == len(found) == len(c.moving):
        raise NotApplicable("the taps of weights do not move along one axis of the image each")
    along = contiguous_loop(draft.program, c.right, c.sums)
    return sorted(found, key=lambda move: move[0] == along)


def _transpose_pixels(draft: Draft, loops: tuple[str, ...], lanes: int) -> None:
    """Transpose the pixels of whole vectors of channels in registers, but for those beyond the edges of the image."""
    conditions = [part for n in draft.loop(loops[0]).unique() if isinstance(n, If) for part in conjuncts(n.cond)]
    for cond in [e for e in dict.fromkeys(conditions) if e.variables.isdisjoint(loops)]:
        copies = draft.specialize_nest(loops, cond, "w")
        loops = tuple([copies[name] for name in loops])
    for name in loops[:-1]:
        draft.try_steps(("interior", name))
    _transpose_in_blocks(draft, loops[-2], lanes)


def _transpose_in_blocks(draft: Draft, along: str, lanes: int) -> None:
    """Transpose blocks of this loop and the one inside it in registers; what is left in smaller ones."""
    while along and lanes >= 2:
        count = trip_count(draft.loop(along))
        if count is not None and count < lanes:
            lanes //= 2
            continue
        made = draft.split(along, lanes)
        inside = draft.loop(made.inner).body[0]
        if not isinstance(inside, For):
            raise NotApplicable(f"a condition is evaluated for each element of '{along}'")
        draft.take("transpose", made.inner, inside.name)
        along, lanes = made.tail, lanes // 2

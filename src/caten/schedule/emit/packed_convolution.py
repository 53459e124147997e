"""Steps of a packed convolution, whose register tile spans several image lines."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Op, Var
from ...loop.affine import linear
from ...loop.statements import Aref, Incf
from ..analysis.classify import Chain, Contraction, fastest_axis
from ..analysis.loop_queries import loops_in, mentions, trip_count
from ..draft import Copies, Draft
from ..plans.convolutions import PackedConvolution
from ..plans.plan import PlanContext
from ..step_results import FinitenessTest, Staged, Unguarded
from .common_steps import (
    EPILOGUE,
    accumulate,
    prefetch_operands,
    unroll_usual,
    vectorize_edges,
    vectorize_loop,
    vectorize_masked,
)

STRIDES = (1, 2)                # of the windows, for which packing has copies if the stride is not constant


def emit_packed_convolution(draft: Draft, chain: Chain, c: Contraction, plan: PackedConvolution,
                            context: PlanContext) -> None:
    """Tile, pack windows with zeros for the halo, drop the edge conditions if the sum is the same, vectorise,
    parallelise."""
    row, channel, *window = c.rows[-1], *c.sums[plan.outside:]
    outside, images = (*c.batch, *c.rows[:-1]), c.sums[:plan.outside]
    draft.take("reorder", *outside, row, *images, channel, *c.columns, *window)
    around, inside = _tile_pixels(draft, c, plan)
    co, ci = draft.split_whole(channel, plan.depth, "min")
    oo, oi = draft.split_whole(row, plan.panel_rows, "min")
    oio, oii = draft.split_whole(oi, plan.rows, "pad")
    draft.take("reorder", *outside, oo, *images, co, *around, oio, ci, *window, oii, *inside)
    left = draft.stage(around[0], c.left.buffer, "read", "scratch", oio, ci, *window, oii)
    right = draft.stage(oio, c.right.buffer, "read", "scratch", ci, *window, *inside)
    for tile in (left.tile, right.tile):
        draft.try_steps(("precompute", tile))               # the ReLU of the layer before
    lanes = min(plan.width, plan.lanes) if len(inside) > 1 else plan.lanes
    sums = accumulate(draft, ci, c.out.buffer, oii, *inside, how="partial", keep_conditions=True,
                                   finish=partial(check_epilogue, pixels=inside, lanes=lanes, context=context))
    in_blocks = plan.transpose_left and draft.attempt(
        partial(transpose_filters, array=c.left.buffer, packed=left, summing=(ci, *window), row=oii, lanes=plan.lanes))
    if context.threads and plan.parallel_filters:
        draft.take("parallel", oo)
    elif context.threads and not draft.parallelize(*c.batch) and draft.parallelize_two(*around):
        draft.parallelize(left.over(oio)[0])
    copy = drop_edge_conditions(draft, around[0], right.tile, plan.lanes, plan.constant_window)
    if inside[-1] in copy:                              # of the copy, only the pixels of a tile are vectors
        draft.try_steps(("vectorize", copy[inside[-1]]))
    summing = (ci, *window)
    steps = summing[-2] if plan.constant_window else summing[-1]       # a window row at once if its length is constant
    draft.try_steps(("prefetch_at", steps, around[max(0, len(around) - 2)], c.right.buffer, 1))
    _vectorize_packing(draft, c, plan, right.over(inside[-1]), window, inside)
    tiles = [inside, *[tuple([nest.loops[axis] for axis in inside]) for nest in sums.usual_nests("begin", "lay")]]
    along = [_fuse_loops(draft, loops) for loops in tiles]
    for name in (right.tile, *sums.arrays) if len(inside) > 1 else ():
        draft.take("flatten", name)
    for name in along:
        vectorize_loop(draft, name, plan.lanes)
    for nest in sums.usual_nests("store", "add", *EPILOGUE):
        *lines, last = [nest.loops[axis] for axis in inside]
        draft.attempt(partial(vectorize_loop, name=last, lanes=lanes))
        for line in lines:
            draft.try_steps(("unroll", line))
    vectorize_edges(draft, sums, inside[-1], lanes, context, *EPILOGUE)
    vectorize_edges(draft, only_setting(draft, sums, inside[0]), inside[-1], lanes, context, "store")
    if context.machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *([copy[ci]] if ci in copy else [])):
            draft.take("contract", name)
    unroll_usual(draft, oii, sums)
    if not context.machine.fetches_ahead:
        draft.try_steps(("prefetch", oio, c.out.buffer, 1, "write"))
    prefetch_operands(draft, sums, oii, oio)
    if not in_blocks:
        draft.try_steps(("prefetch", left.over(oii)[0], c.left.buffer, plan.prefetch))
    if plan.unroll_inner:
        draft.take("unroll", window[-1])


def only_setting(draft: Draft, sums: Staged, axis: str) -> Staged:
    """The nests that set elements and add to none. (Sums at an edge are added one by one: under a mask, each load would
    wait for the store before it, of which it needs a part.) `axis`: the outermost of the tile."""
    loops = {loop.name: loop for loop in loops_in(draft.program)}
    nests = [n for n in sums.nests if axis in n.loops and n.loops[axis] in loops and not any(
        isinstance(s, Incf) for s in loops[n.loops[axis]].walk())]
    return replace(sums, nests=tuple(nests))


def windows_over(c: Contraction, window: Sequence[str], outer: str) -> list[str]:
    """The axes of the window that move over the lines or columns of an image: those `outer` counts tiles of."""
    return [w for w in window if any(mentions(i, (outer,)) and mentions(i, (w,)) for i in c.right.index)]


def transpose_filters(draft: Draft, array: str, packed: Staged, summing: tuple[str, ...], row: str, lanes: int) -> None:
    """Pack filters by transposing blocks in registers. Those of a channel and the next follow each other in memory: the
    loops over channels and windows become one, and so do the axes of the filters and of the tile."""
    (nest,) = packed.usual_nests()
    *outer, along = [nest.loops[name] for name in summing]
    place = len(outer)                                   # of the last two of these axes in the tile
    for loop in reversed(outer):
        read = next(n for n in draft.loop(along).unique() if isinstance(n, Aref) and n.buffer == array)
        axis, inner = [next((k for k, i in enumerate(read.index) if mentions(i, (name,))), -1)
                       for name in (loop, along)]
        along = draft.fuse(loop, along)
        draft.take("flatten", packed.tile, place)
        if axis != inner:                                # but a version before has flattened them
            draft.flatten_argument(array, axis)
        place -= 1
    block, filters = draft.split(along, lanes).inner, nest.loops[row]
    if (trip_count(draft.loop(filters)) or 0) > lanes:
        several, filters = draft.split_exactly(filters, lanes)
        draft.take("reorder", several, block, filters)
    draft.take("transpose", block, filters)


def _tile_pixels(draft: Draft, c: Contraction, plan: PackedConvolution) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the pixels. Returns the loops over tiles and the loops inside one, of one line or several."""
    *others, column = c.columns
    xo, xi = draft.split_whole(column, plan.width, "pad")
    if plan.lines == 1:
        return (*others, xo), (xi,)
    yo, yi = draft.split_whole(others[-1], plan.lines, "pad")
    return (*others[:-1], yo, xo), (yi, xi)


def check_epilogue(draft: Draft, sums: Staged, pixels: tuple[str, ...], lanes: int, context: PlanContext) -> None:
    """Raise NotApplicable or the error of a step if an epilogue cannot be vectorised."""
    trial = draft.on(draft.program)
    for nest in sums.usual_nests(*EPILOGUE):
        if nest.is_edge:
            vectorize_masked(trial, nest.loops[pixels[-1]], lanes, context)
        else:
            vectorize_loop(trial, nest.loops[pixels[-1]], lanes)


def _vectorize_packing(draft: Draft, c: Contraction, plan: PackedConvolution, filling: tuple[str, ...],
                       window: list[str], inside: tuple[str, ...]) -> None:
    """Vectorise the nests that pack windows; `filling`: their innermost loops."""
    depth = 1 + len(window) + len(inside)
    for name in filling:
        for known in (*_copies_by_stride(draft, c, draft.loops_down_to(name, depth)), name):
            lanes = min(plan.width, plan.lanes) if len(inside) > 1 else plan.lanes
            draft.attempt(partial(_pack_vectors, loops=draft.loops_down_to(known, depth), lanes=lanes))


def _copies_by_stride(draft: Draft, c: Contraction, loops: tuple[str, ...]) -> list[str]:
    """Copy a packing nest for each usual constant stride of the windows. Returns the innermost loops of the copies."""
    axis = fastest_axis(draft.program, c.right)
    terms = [m for m in linear(c.right.index[axis]).terms if mentions(m, c.columns[-1:])] if axis is not None else []
    sizes = [v.name for m in terms if len(m) == 2 for v in m if isinstance(v, Var) and v.name != c.columns[-1]]
    made: list[str] = []
    for size in sizes if len(terms) == 1 else ():
        for stride in STRIDES:
            copies = draft.result_of(partial(_copy_for_stride, loop=loops[0], size=size, stride=stride))
            made += [copies[loops[-1]]] if copies is not None and loops[-1] in copies else []
    return made


def _copy_for_stride(draft: Draft, loop: str, size: str, stride: int) -> Copies:
    """Copy a nest for one stride of the windows."""
    return draft.specialize(loop, ("=", size, str(stride)), f"_{stride}")


def _pack_vectors(draft: Draft, loops: tuple[str, ...], lanes: int) -> None:
    """Vectorise a packing nest, with channels inside the edge conditions, so that these are evaluated once for all."""
    channel, *others, last = loops
    if any(isinstance(n, Op) and n.fn == "where" for n in draft.loop(last).unique()):
        draft.try_steps(("reorder", *others, channel, last))
    vectorize_loop(draft, last, lanes)


def _fuse_loops(draft: Draft, loops: tuple[str, ...]) -> str:
    """Fuse the lines of a tile into one loop over its pixels."""
    first, *others = loops
    for other in others:
        first = draft.fuse(first, other)
    return first


def drop_edge_conditions(draft: Draft, around: str, packed: str, lanes: int, constant_window: bool) -> Copies:
    """Drop the conditions that packed zeros make redundant. If a weight is infinite or NaN, a copy with conditions
    runs. Returns the loops of that copy."""
    made = draft.result_of(lambda d: d.take("unguard", around, packed), f"the step 'unguard {around} {packed}'")
    if not isinstance(made, Unguarded):
        return {}
    for test in made.tests:
        draft.attempt(partial(_vectorize_test, test=test, lanes=lanes, constant_window=constant_window))
    return dict(made.copies)


def _vectorize_test(draft: Draft, test: FinitenessTest, lanes: int, constant_window: bool) -> None:
    """Add up what is tested in a vector, or one for each tap of a window row."""
    first, others, last = test.loops[0], test.loops[-2:-1] if constant_window else (), test.loops[-1]
    if not constant_window and trip_count(draft.loop(last)) is None:
        last = draft.split_whole(last, lanes, "pad")[1]
    sums = draft.stage(first, test.total, "partial", "register", *others, last)
    for name in (last, *sums.over(last, "begin")):
        filters = trip_count(draft.loop(name)) or lanes
        draft.attempt(partial(vectorize_loop, name=name, lanes=min(lanes, filters)))
    for name in [name for other in others for name in (other, *sums.over(other))]:
        draft.try_steps(("unroll", name))

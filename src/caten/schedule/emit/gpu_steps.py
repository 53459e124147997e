"""Steps of GPU plans: grids of blocks of threads."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.statements import For
from ..analysis.classify import Chain, Contraction, chain_of, contiguous_loop, stored
from ..analysis.loop_queries import trip_count
from ..draft import Draft
from ..plans.gpu import GroupPerRow, GroupReduction, SharedGemm, SharedTranspose, ThreadPerElement
from ..plans.plan import PlanContext
from .common_steps import reorder
from .transpose_steps import order_transpose


def emit_thread_per_element(draft: Draft, chain: Chain, plan: ThreadPerElement, context: PlanContext) -> None:
    """Bind independent loops to the grid; neighbouring threads store contiguous elements."""
    if plan.outermost:
        chain = Chain(chain.loops[:1], chain.loops[0].body)
    stores, free = stored(chain), plan.loops
    fast = next((n for ref in stores if (n := contiguous_loop(draft.program, ref, free)) is not None), free[-1])
    others = tuple([n for n in free if n != fast])
    summed = [n for n in chain.names if n not in free]
    reorder(draft, chain, (*others, fast, *summed))
    extent, count = trip_count(draft.loop(fast)), plan.threads
    if extent is not None and extent > 0:
        count = min(count, 1 << (extent - 1).bit_length())
    outer, inner = draft.split_whole(fast, count, "pad") if extent != count else ("", fast)
    for name in (*others, *([outer] if outer else [])):
        draft.take("bind", name, "grid")
    draft.take("bind", inner, "block")
    if summed and len(stores) == 1:
        draft.try_steps(("hoist", summed[0]))
        draft.try_steps(("stage", summed[0], stores[0].buffer, "accumulate", "register"))


def emit_group_per_row(draft: Draft, chain: Chain, plan: GroupPerRow, context: PlanContext) -> None:
    """Bind rows to blocks and spread the loops inside over the threads."""
    *outside, row = chain.names[:plan.row_loops]
    for name in outside:
        draft.take("bind", name, "grid")
    draft.take("spread", row, plan.threads)


def emit_group_reduction(draft: Draft, chain: Chain, plan: GroupReduction, context: PlanContext) -> None:
    """Reduce blocks in one kernel, and the partial sums in the next."""
    (out,) = stored(chain)
    outer, _ = draft.split_whole(chain.names[0], plan.block, "pad")
    kernel = next(k.name for k in draft.program.kernels if draft.loop(outer) in k.body)
    draft.take("stage", outer, out.buffer, "partial", "scratch", outer)
    draft.take("separate", kernel)
    draft.take("spread", outer, plan.threads)
    match next(k for k in draft.program.kernels if k.name == kernel).body:       # the first kernel keeps the name
        case (For(name=name),):
            chain, each = chain_of(draft.loop(name)), ThreadPerElement((name,), plan.threads)
            draft.attempt(partial(emit_thread_per_element, chain=chain, plan=each, context=context))


def emit_shared_transpose(draft: Draft, chain: Chain, plan: SharedTranspose, context: PlanContext) -> None:
    """Load tiles by rows into shared memory and store them by columns."""
    t, rest = order_transpose(draft, chain)
    tall, down = draft.split_whole(t.down, plan.size, "pad")
    wide, across = draft.split_whole(t.across, plan.size, "pad")
    steps, side = draft.split_exactly(across, plan.columns)
    draft.take("reorder", tall, wide, side, down, steps)
    for name in (*rest, tall, wide):
        draft.take("bind", name, "grid")
    for name in (side, down):
        draft.take("bind", name, "block")
    tile = draft.stage(steps, t.value.buffer, "read", "shared", down, steps, side).tile
    draft.try_steps(("flatten", tile), ("widen", tile, 1))                     # an odd row stride avoids bank conflicts


def emit_shared_gemm(draft: Draft, chain: Chain, c: Contraction, plan: SharedGemm, context: PlanContext) -> None:
    """Stage operand tiles in shared memory and a register tile of the result in every thread."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums
    outside = (*c.batch, *c.rows[:-1], *c.columns[:-1])
    draft.take("reorder", *outside, i, j, k, *inner)
    io, ii = draft.split_whole(i, plan.rows, "pad")
    jo, ji = draft.split_whole(j, plan.columns, "pad")
    ko, ki = draft.split_whole(k, plan.depth, "min")
    down, row = draft.split_exactly(ii, plan.thread_rows)
    column, across = draft.split_exactly(ji, plan.threads_across)
    draft.take("reorder", *outside, io, jo, down, across, ko, ki, *inner, row, column)
    for name in (*outside, io, jo):
        draft.take("bind", name, "grid")
    for name in (down, across):
        draft.take("bind", name, "block")
    draft.take("stage", ki, c.left.buffer, "read", "shared", ki, *inner, down, row)
    draft.take("stage", ki, c.right.buffer, "read", "shared", ki, *inner, column, across)
    made = draft.stage(ko, c.out.buffer, "partial", "register", row, column)
    if is_float(c.out.dtype):
        draft.take("contract", ko)
    for name in (row, column, *[name for nest in made.nests if not nest.is_edge for name in nest.loops.values()]):
        draft.try_steps(("unroll", name))

"""Steps of GPU plans: grids of blocks of threads."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.statements import For
from ..analysis.classify import Chain, Contraction, chain_of, contiguous_loop, reduction, stored
from ..analysis.loop_queries import trip_count
from ..draft import Draft
from ..flattening import Pair, fuse_pairs, pair_of
from ..plans.gpu import (
    ColumnsInBlocks,
    GroupPerRow,
    GroupReduction,
    SharedGemm,
    SharedTranspose,
    ThreadPerElement,
    independent_loops,
)
from ..plans.plan import NotApplicable, PlanContext
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
    chain = _dense_loops(draft, chain)
    outer = chain.names[0]                    # of several, each iteration of the outermost is a block's
    if len(chain.loops) == 1:
        outer, _ = draft.split_whole(outer, plan.block, "pad")
    kernel = _partial_sums(draft, outer, out.buffer, (outer,))
    draft.take("spread", outer, plan.threads)
    _each_element(draft, (kernel,), plan.threads, context)


def _dense_loops(draft: Draft, chain: Chain) -> Chain:
    """Fuse the loops of a reduction as far as its arrays are dense."""
    for at in reversed(range(len(chain.loops) - 1)):     # innermost first: inside the others, which run at least once
        pair = pair_of(draft.program, chain, chain.loops[at], chain.loops[at + 1], gains=True, most=len(chain.loops))
        fused = None if pair is None else draft.result_of(partial(_fuse, pair=pair))
        if fused is None:
            break
        chain = chain_of(draft.loop(chain.names[0] if at else fused))
    return chain


def _fuse(draft: Draft, pair: Pair) -> str:
    """Fuse two dense loops, where that needs no condition on their number of iterations."""
    was = any(pair.outer in kernel.body for kernel in draft.program.kernels)
    (fused,) = fuse_pairs(draft, [pair])
    if was and not any(draft.loop(fused) in kernel.body for kernel in draft.program.kernels):
        raise NotApplicable("the number of iterations may be too large")
    return fused


def emit_columns_in_blocks(draft: Draft, chain: Chain, plan: ColumnsInBlocks, context: PlanContext) -> None:
    """Reduce blocks of rows in one kernel, and the partial sums in the next."""
    (out,), total = stored(chain), reduction(chain)
    kept = total.kept if total else ()
    (row,) = (name for name in chain.names if name not in kept)
    outer, inner = draft.split_whole(row, plan.block, "pad")
    draft.take("reorder", outer, *kept, inner)
    kernels = [k.name for k in draft.program.kernels]
    first = _partial_sums(draft, outer, out.buffer, (outer, *kept))
    made = [k.name for k in draft.program.kernels if k.name not in kernels]
    _each_element(draft, (first, *made), plan.threads, context)


def _partial_sums(draft: Draft, outer: str, array: str, axes: tuple[str, ...]) -> str:
    """Make the partial sums of an array a kernel of their own. Returns the kernel before it, which sets them to 0."""
    kernel = next(k.name for k in draft.program.kernels if draft.loop(outer) in k.body)
    draft.take("stage", outer, array, "partial", "scratch", *axes)
    draft.take("separate", kernel)
    return kernel                                                                # the first kernel keeps the name


def _each_element(draft: Draft, kernels: tuple[str, ...], threads: int, context: PlanContext) -> None:
    """Bind the independent loops of kernels."""
    for kernel in kernels:
        match next(k for k in draft.program.kernels if k.name == kernel).body:
            case (For(name=name),):
                chain = chain_of(draft.loop(name))
                free = independent_loops(draft.program, chain)
                each = ThreadPerElement(free, threads)
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

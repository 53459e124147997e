"""Nests of groups and threads, as steps."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Const
from ...loop.affine import canonical
from ...loop.statements import For
from ..analysis.classify import Chain, Contraction, chain_of, contiguous_loop, stored
from ..draft import Draft
from ..plans.devices import Elements, GroupRows, GroupSum, SharedTiles, SharedTurn
from ..plans.plan import Given
from .turns import in_order
from .vectors import ordered


def elements(draft: Draft, chain: Chain, plan: Elements, given: Given) -> None:
    """Neighbouring threads store neighbouring elements."""
    if plan.outermost:
        chain = Chain(chain.loops[:1], chain.loops[0].body)
    stores, free = stored(chain), plan.free
    fast = next((n for ref in stores if (n := contiguous_loop(draft.program, ref, free)) is not None), free[-1])
    others = tuple([n for n in free if n != fast])
    summed = [n for n in chain.names if n not in free]
    ordered(draft, chain, (*others, fast, *summed))
    extent = canonical(draft.loop(fast).hi - draft.loop(fast).lo)
    count = min(plan.threads, 1 << (extent.value - 1).bit_length()) if isinstance(extent, Const) and extent.value > 0 else plan.threads
    outer, inner = draft.pair(fast, count, "pad") if extent != Const(count, "i64") else ("", fast)
    for name in (*others, *([outer] if outer else [])):
        draft.take("bind", name, "grid")
    draft.take("bind", inner, "block")
    if summed and len(stores) == 1:
        draft.tries(("hoist", summed[0]))
        draft.tries(("stage", summed[0], stores[0].buffer, "accumulate", "register"))


def rows(draft: Draft, chain: Chain, plan: GroupRows, given: Given) -> None:
    """A group for every row."""
    *outside, row = chain.names[:plan.outside]
    for name in outside:
        draft.take("bind", name, "grid")
    draft.take("spread", row, plan.threads)


def long_sum(draft: Draft, chain: Chain, plan: GroupSum, given: Given) -> None:
    """Parts in groups, and then the parts."""
    (place,) = stored(chain)
    outer, _ = draft.pair(chain.names[0], plan.part, "pad")
    kernel = next(k.name for k in draft.program.kernels if draft.loop(outer) in k.body)
    draft.take("stage", outer, place.buffer, "partial", "scratch", outer)
    draft.take("separate", kernel)
    draft.take("spread", outer, plan.threads)
    match next(k for k in draft.program.kernels if k.name == kernel).body:       # the first part, which has the name
        case (For(name=name),):
            draft.attempts(partial(elements, chain=chain_of(draft.loop(name)), plan=Elements((name,), plan.threads), given=given))


def turned(draft: Draft, chain: Chain, plan: SharedTurn, given: Given) -> None:
    """A tile is read row by row into shared memory and stored column by column from there."""
    t, rest = in_order(draft, chain)
    tall, down = draft.pair(t.down, plan.size, "pad")
    wide, across = draft.pair(t.across, plan.size, "pad")
    steps, side = draft.halves(across, plan.columns)
    draft.take("reorder", tall, wide, side, down, steps)
    for name in (*rest, tall, wide):
        draft.take("bind", name, "grid")
    for name in (side, down):
        draft.take("bind", name, "block")
    tile = draft.stage(steps, t.value.buffer, "read", "shared", down, steps, side).tile
    draft.tries(("flatten", tile), ("widen", tile, 1))                     # rows an odd number of cells apart: a column lies in all banks


def tiles(draft: Draft, chain: Chain, c: Contraction, plan: SharedTiles, given: Given) -> None:
    """Tiles of both operands in shared memory, a tile of the result in the registers of every thread."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums
    outside = (*c.batch, *c.rows[:-1], *c.columns[:-1])
    draft.take("reorder", *outside, i, j, k, *inner)
    io, ii = draft.pair(i, plan.rows, "pad")
    jo, ji = draft.pair(j, plan.columns, "pad")
    ko, ki = draft.pair(k, plan.depth, "min")
    down, row = draft.halves(ii, plan.height)
    column, across = draft.halves(ji, plan.across)
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
        draft.tries(("unroll", name))

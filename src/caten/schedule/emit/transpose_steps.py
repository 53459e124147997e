"""Steps of transposes on CPUs."""
from __future__ import annotations

from ..analysis.classify import Chain
from ..draft import Draft
from ..plans.plan import NotApplicable, PlanContext
from ..plans.transposes import BlockedTranspose, ShortAxisInside, Transposition, short_loop, transposition
from .common_steps import reorder, vectorize_copy


def emit_blocked_transpose(draft: Draft, chain: Chain, plan: BlockedTranspose, context: PlanContext) -> None:
    """Transpose tile by tile in register blocks, directly or through a local array."""
    t, rest = order_transpose(draft, chain)
    tall, down = draft.split_whole(t.down, plan.down, "min")
    wide, across = draft.split_whole(t.across, plan.across, "min")
    draft.take("reorder", tall, wide, down, across)
    if context.threads:
        draft.parallelize(*rest, tall)
    if not plan.non_temporal:
        _transpose_blocks(draft, down, across, plan.lanes)
        return
    draft.take("reorder", across, down)
    tile = draft.stage(across, t.value.buffer, "read", "scratch", across, down)
    rows, columns = tile.usual(across)[0], tile.usual(down)[0]
    draft.take("reorder", columns, rows)
    _transpose_blocks(draft, columns, rows, plan.lanes)
    vectorize_copy(draft, down, plan.lanes)
    draft.take("stream", across, t.out.buffer)


def emit_short_axis_inside(draft: Draft, chain: Chain, plan: ShortAxisInside, context: PlanContext) -> None:
    """Move the loop over the short axis innermost."""
    t = transposition(draft.program, chain)
    short = None if t is None else short_loop(t, context)
    if short is None:
        raise NotApplicable(f"'{chain.names[0]}' is no longer a transpose with a short axis")
    others = tuple([n for n in chain.names if n != short])
    reorder(draft, chain, (*others, short))
    if context.threads:
        draft.parallelize_two(*others)


def order_transpose(draft: Draft, chain: Chain) -> tuple[Transposition, tuple[str, ...]]:
    """Move the two loops of a transpose innermost. Returns the transpose and the other loops."""
    t = transposition(draft.program, chain)
    if t is None:
        raise NotApplicable(f"'{chain.names[0]}' is no longer a transpose")
    rest = tuple([n for n in chain.names if n not in (t.down, t.across)])
    reorder(draft, chain, (*rest, t.down, t.across))
    return t, rest


def _transpose_blocks(draft: Draft, down: str, across: str, lanes: int) -> None:
    """Transpose blocks of lanes × lanes in registers. `across` is inside `down`. Tails stay scalar."""
    rows = draft.split(down, lanes).inner
    draft.take("reorder", across, rows)
    draft.take("transpose", draft.split(across, lanes).inner, rows)

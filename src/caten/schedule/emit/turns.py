"""Copies that turn rows into columns, as steps."""
from __future__ import annotations

from ..analysis.classify import Chain
from ..draft import Draft
from ..plans.plan import Given, NotApplicable
from ..plans.transposes import Transposition, Turned, transposition
from .vectors import neighbours, ordered


def turned(draft: Draft, chain: Chain, plan: Turned, given: Given) -> None:
    """Tiles, each in blocks from where it is read to where it is stored, or by way of a local array."""
    t, rest = in_order(draft, chain)
    tall, down = draft.pair(t.down, plan.tall, "min")
    wide, across = draft.pair(t.across, plan.wide, "min")
    draft.take("reorder", tall, wide, down, across)
    if given.threads:
        draft.thread(*rest, tall)
    if not plan.beyond:
        _blocks(draft, down, across, plan.lanes)
        return
    draft.take("reorder", across, down)
    tile = draft.stage(across, t.value.buffer, "read", "scratch", across, down)
    rows, columns = tile.usual(across)[0], tile.usual(down)[0]
    draft.take("reorder", columns, rows)
    _blocks(draft, columns, rows, plan.lanes)
    neighbours(draft, down, plan.lanes)
    draft.take("stream", across, t.out.buffer)


def in_order(draft: Draft, chain: Chain) -> tuple[Transposition, tuple[str, ...]]:
    """What is turned, with its two loops innermost, and the other loops."""
    t = transposition(draft.program, chain)
    if t is None:
        raise NotApplicable(f"'{chain.names[0]}' is no transposition any more")
    rest = tuple([n for n in chain.names if n not in (t.down, t.across)])
    ordered(draft, chain, (*rest, t.down, t.across))
    return t, rest


def _blocks(draft: Draft, down: str, across: str, lanes: int) -> None:
    """Two loops, `across` inside `down`, as blocks of lanes × lanes in registers; their edges stay plain loops."""
    rows = draft.split(down, lanes).inner
    draft.take("reorder", across, rows)
    draft.take("transpose", draft.split(across, lanes).inner, rows)

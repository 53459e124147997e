"""Products whose operands are used where they lie, as steps."""
from __future__ import annotations

from ...core.dtypes import is_float
from ...core.expr import Const
from ..analysis.classify import Chain, Contraction
from ..draft import Draft
from ..plans.plan import Given
from ..plans.products import Tiles
from .vectors import ordered, summed


def tiles(draft: Draft, chain: Chain, c: Contraction, plan: Tiles, given: Given) -> None:
    """Tiles of the result in registers: of one height after the other, and of each all widths."""
    if plan.transposed:
        c = c.turned
    i, j, k = c.rows[-1], c.columns[-1], c.sums[-1]
    ordered(draft, chain, (*c.batch, i, j, k))
    if plan.turned:
        draft.stage(i, c.right.buffer, "read", "scratch", *((k, j) if plan.along == "columns" else (j, k)))
    for n, height in enumerate(plan.heights):
        rows = draft.split(i, height)
        draft.take("reorder", j, k, rows.inner)
        if given.threads and n == 0:
            draft.thread_two(*c.batch, rows.outer)
        _columns(draft, c, plan, (rows.inner,), j, k, given)
        if not rows.tail:
            return
        i, j, k = rows.tail, rows.copies[j], rows.copies[k]
    _columns(draft, c, plan, (), j, k, given)


def _columns(draft: Draft, c: Contraction, plan: Tiles, rows: tuple[str, ...], j: str, k: str, given: Given) -> None:
    """All columns of a tile's rows, or of a single one."""
    for width in plan.widths if rows else plan.alone:
        made = draft.split(j, width)
        _tile(draft, c, plan, (*rows, made.inner), k, given)
        if not made.tail:
            return
        j, k, rows = made.tail, made.copies[k], tuple([made.copies[name] for name in rows])
    if plan.masked:
        _, lane = draft.pair(j, plan.masked, "pad")
        rows = (*rows, lane)
    _tile(draft, c, plan, rows, k, given)


def _tile(draft: Draft, c: Contraction, plan: Tiles, cells: tuple[str, ...], k: str, given: Given) -> None:
    """A tile of the result in registers."""
    if cells:
        draft.take("reorder", k, *cells)
    (_along_columns if plan.along == "columns" else _along_the_sum)(draft, c, plan, cells, k, given)


def _along_columns(draft: Draft, c: Contraction, plan: Tiles, cells: tuple[str, ...], k: str, given: Given) -> None:
    *rows, j = cells
    several = draft.loop(j).hi != Const(plan.lanes, "i64")
    group, lane = draft.halves(j, plan.lanes) if several else ("", j)
    made = summed(draft, k, c.out.buffer, *rows, *([group] if several else []), lane)
    draft.take("vectorize", lane)
    for name in made.over(lane):
        if not draft.tries(("vectorize", name)):                                          # what is stored may lie apart
            draft.take("unroll", name)
    draft.take("contract", k)
    for cell in (*([group] if several else []), *rows):
        for name in (cell, *made.over(cell)):
            draft.take("unroll", name)


def _along_the_sum(draft: Draft, c: Contraction, plan: Tiles, cells: tuple[str, ...], k: str, given: Given) -> None:
    """A vector of partial sums for each element of the tile."""
    made = draft.split(k, plan.lanes)
    tile = draft.stage(made.outer, c.out.buffer, "partial", "register", *cells, made.inner)
    for lane in (made.inner, *tile.over(made.inner)):
        draft.take("vectorize", lane)
    for cell in cells:
        for loop in (cell, *tile.over(cell)):
            draft.take("unroll", loop)
    if given.machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", made.outer)
    if made.tail and given.masks_are_cheap:
        _, lane = draft.pair(made.tail, plan.lanes, "pad")
        draft.take("vectorize", lane)
        for cell in cells:
            draft.take("unroll", made.copies[cell])


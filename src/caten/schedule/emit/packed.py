"""Contractions in packed tiles, as steps."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...loop.statements import Aref, Vref
from ..analysis.classify import Chain, Contraction
from ..analysis.nests import locals_in
from ..draft import Draft
from ..made import Staged
from ..plans.plan import Given
from ..plans.products import Packed
from .vectors import has_constant_length, neighbours, summed, vectors


def packed(draft: Draft, chain: Chain, c: Contraction, plan: Packed, given: Given) -> None:
    """Tile, pack and vectorise, on several threads where there are."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums
    outside, beside = (*c.batch, *c.rows[:-1]), c.columns[:-1]
    draft.take("reorder", *outside, i, k, *beside, j, *inner)
    jc, jj = draft.pair(j, plan.panels, "min") if plan.panels else ("", j)
    jo, ji = draft.pair(jj, plan.columns, "pad")
    ko, ki = draft.pair(k, plan.depth, "min")
    io, ii = draft.pair(i, plan.panel, "min")
    iio, iii = draft.pair(ii, plan.rows, "pad")
    tiles = (iio, jo) if plan.order else (jo, iio)
    if beside:
        draft.take("reorder", *outside, io, ko, *beside, *tiles, ki, *inner, iii, ji)
    else:
        draft.take("reorder", *outside, jc, ko, io, *tiles, ki, *inner, iii, ji)
    axes = (iio, iii, ki) if plan.packs_along else (iio, ki, *inner, iii)
    left = draft.stage((*beside, *tiles)[0], c.left.buffer, "read", "scratch", *axes)
    right_axes = (*(() if beside else (jo,)), ki, *inner, ji)
    right = draft.stage(iio if beside else io, c.right.buffer, "read", "scratch", *right_axes)
    for panel in (left.tile, right.tile) if beside else (right.tile, left.tile):      # the outer one first
        while draft.tries(("precompute", panel)):                   # (float) A · B, alpha · A · B
            pass
    if given.threads and (plan.shared or not draft.thread(*c.batch)) and draft.thread(*beside, tiles[0]):
        draft.tries(("parallel", tiles[1]))
        draft.thread(left.over(axes[0])[0])
        if not beside:
            draft.thread(right.over(jo)[0])
    visits = summed(draft, ki, c.out.buffer, iii, ji, how="partial")
    for loop in reversed((*inner, iii)):
        draft.tries(("hoist", loop))
    columns = [name for name in right.usual(ji) if has_constant_length(draft, name)]
    results = [name for name in visits.usual(ji) if has_constant_length(draft, name)]
    vectors(draft, ji, plan.lanes)
    for name in columns:
        draft.attempts(partial(vectors, name=name, lanes=plan.lanes))                 # what is read may lie in steps
    for name in results:
        vectors(draft, name, plan.lanes)
    if plan.packs_along and (left.has_whole_tiles or not right.has_whole_tiles):     # what is rare beside whole tiles stays plain
        draft.attempts(partial(neighbours, name=left.usual(ki)[0], lanes=plan.lanes))
    if given.machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", ki)
    registers = {n.name for n in locals_in(draft.program) if n.space == "register" and n.shape}
    for name in (iii, *visits.usual(iii)):
        if any(isinstance(n, Aref | Vref) and n.buffer in registers for n in draft.loop(name).unique()):
            draft.take("unroll", name)
    draft.tries(("prefetch", tiles[-1], c.out.buffer, 1, "write"))
    _fetch(draft, c.left.buffer, left, iii, plan.ahead)
    _fetch(draft, c.right.buffer, right, ki, plan.ahead)
    if plan.steps:
        draft.take("unroll", inner[-1])
    if plan.unroll > 1:
        draft.attempts(partial(_written_out, name=ki, count=plan.unroll))


def _written_out(draft: Draft, name: str, count: int) -> None:
    """Several iterations of a loop at a time."""
    draft.take("unroll", draft.split(name, count).inner)


def _fetch(draft: Draft, buffer: str, made: Staged, axis: str, ahead: int) -> None:
    """Ask early for rows that are packed soon: what lies in steps of a row no machine guesses."""
    for nest in made.nests:
        if not nest.is_edge and draft.tries(("prefetch", nest.loops[axis], buffer, ahead)):
            return

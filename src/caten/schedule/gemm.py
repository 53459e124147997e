"""The recipe for contractions: tiles of the result in registers, both operands packed.

After Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008): a panel of the left operand and one of the right are copied so
that the innermost loops read them in a row; a tile of the result stays in registers while they run.
"""
from __future__ import annotations

from functools import partial
from math import prod

from ..core.dtypes import is_float
from ..core.expr import Const
from ..core.program import Machine
from ..loop.affine import canonical
from ..loop.statements import Aref, If, Vref
from .analysis.classify import Contraction, contiguous_loop
from .analysis.nests import locals_in
from .draft import Draft, NotApplicable
from .made import Staged
from .tiles import gemm_tile

PANELS = 32                     # of the right operand, packed at once
ROWS_AHEAD = 4                  # asked for while a row is packed
MOST_STEPS = 8                  # of an inner sum, written out


def gemm(draft: Draft, c: Contraction, machine: Machine, threads: bool, shared: bool = False) -> None:
    """Tile, pack and vectorise, on several threads if `threads`: those share a batch, or each product in it if `shared`."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums
    tile = gemm_tile(machine, c.out.dtype, products(draft, inner), draft.choice)
    by_rows = not inner and contiguous_loop(draft.program, c.left, (*c.rows, *c.sums)) == k         # does its memory run along the sum?
    outside, beside = (*c.batch, *c.rows[:-1]), c.columns[:-1]
    draft.take("reorder", *outside, i, k, *beside, j, *inner)
    jc, jj = ("", j) if beside else draft.pair(j, draft.choice("gemm.panels", PANELS) * tile.columns, "min")
    jo, ji = draft.pair(jj, tile.columns, "pad")
    ko, ki = draft.pair(k, tile.depth, "min")
    io, ii = draft.pair(i, tile.panel, "min")
    iio, iii = draft.pair(ii, tile.rows, "pad")
    tiles = (iio, jo) if not beside and draft.choice("gemm.order", 0) else (jo, iio)
    if beside:
        draft.take("reorder", *outside, io, ko, *beside, *tiles, ki, *inner, iii, ji)
    else:
        draft.take("reorder", *outside, jc, ko, io, *tiles, ki, *inner, iii, ji)
    axes = (iio, iii, ki) if by_rows else (iio, ki, *inner, iii)
    left = draft.stage((*beside, *tiles)[0], c.left.buffer, "read", "scratch", *axes)
    right_axes = (*(() if beside else (jo,)), ki, *inner, ji)
    right = draft.stage(iio if beside else io, c.right.buffer, "read", "scratch", *right_axes)
    for packed in (left.tile, right.tile) if beside else (right.tile, left.tile):     # the outer one first
        while draft.tries(("precompute", packed)):                   # (float) A · B, alpha · A · B
            pass
    if threads and (shared or not draft.thread(*c.batch)) and draft.thread(*beside, tiles[0]):
        draft.thread(left.over(axes[0])[0])
        if not beside:
            draft.thread(right.over(jo)[0])
    visits = summed(draft, ki, c.out.buffer, iii, ji)
    for loop in reversed((*inner, iii)):
        draft.tries(("hoist", loop))
    columns = [name for name in right.usual(ji) if has_constant_length(draft, name)]
    results = [name for name in visits.usual(ji) if has_constant_length(draft, name)]
    _vectors(draft, ji, tile.lanes)
    for name in columns:
        draft.attempts(partial(_vectors, name=name, lanes=tile.lanes))                # what is read may lie in steps
    for name in results:
        _vectors(draft, name, tile.lanes)
    if by_rows and (left.has_whole_tiles or not right.has_whole_tiles):              # what is rare beside whole tiles stays plain
        draft.attempts(partial(_copies, name=left.usual(ki)[0], lanes=tile.lanes))
    if machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", ki)
    registers = {n.name for n in locals_in(draft.program) if n.space == "register" and n.shape}
    for name in (iii, *visits.usual(iii)):
        if any(isinstance(n, Aref | Vref) and n.buffer in registers for n in draft.loop(name).unique()):
            draft.take("unroll", name)
    draft.tries(("prefetch", tiles[-1], c.out.buffer, 1, "write"))
    _fetch(draft, c.left.buffer, left, iii)
    _fetch(draft, c.right.buffer, right, ki)
    if inner and products(draft, inner[-1:]) in range(2, draft.choice("gemm.steps", MOST_STEPS) + 1):
        draft.take("unroll", inner[-1])
    if (count := draft.choice("gemm.unroll", 1)) > 1:
        draft.attempts(partial(_written_out, name=ki, count=count))


def summed(draft: Draft, loop: str, buffer: str, *axes: str, how: str = "partial", asking: bool = False) -> Staged:
    """Sums in registers; where a nest before only sets what they are added to, the first of them does, and they are staged as `how` says where there
    is no such nest, or where, unless `asking`, conditions would stay around the sum."""
    return (draft.tried(partial(_begun, loop=loop, buffer=buffer, axes=axes, asking=asking))
            or draft.stage(loop, buffer, how, "register", *axes))


def _begun(draft: Draft, loop: str, buffer: str, axes: tuple[str, ...], asking: bool) -> Staged:
    staged = draft.stage(loop, buffer, "begin", "register", *axes)
    if not asking and any(isinstance(n, If) for n in draft.loop(loop).unique()):
        raise NotApplicable(f"a condition is asked for every product of '{loop}'")
    return staged


def _written_out(draft: Draft, name: str, count: int) -> None:
    """Several iterations of a loop at a time."""
    draft.take("unroll", draft.split(name, count).inner)


def _fetch(draft: Draft, buffer: str, packed: Staged, axis: str) -> None:
    """Ask early for rows that are packed soon: what lies in steps of a row no machine guesses."""
    ahead = draft.choice("gemm.ahead", ROWS_AHEAD)
    for nest in packed.nests:
        if not nest.is_edge and draft.tries(("prefetch", nest.loops[axis], buffer, ahead)):
            return


def has_constant_length(draft: Draft, name: str) -> bool:
    """False of a loop over as many columns of a tile as there are."""
    return isinstance(canonical(draft.loop(name).hi - draft.loop(name).lo), Const)


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop over the columns of a tile as vectors side by side."""
    outer, inner = draft.halves(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def _copies(draft: Draft, name: str, lanes: int) -> None:
    """A loop that copies neighbours as vectors, and what is left one by one."""
    draft.take("vectorize", draft.split(name, lanes).inner)


def products(draft: Draft, loops: list[str]) -> int:
    """How many iterations constant loops have together."""
    extents = [canonical(loop.hi - loop.lo) for loop in map(draft.loop, loops)]
    return prod([e.value for e in extents if isinstance(e, Const)])

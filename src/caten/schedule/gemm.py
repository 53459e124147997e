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
from ..errors import error
from ..loop.affine import canonical
from ..loop.statements import Aref, If, Vref
from .classify import Contraction, contiguous_loop
from .draft import Draft
from .nests import locals_in, loops_in
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
    jc, jj = ((), j) if beside else draft.take("split", j, draft.choice("gemm.panels", PANELS) * tile.columns, "min")
    jo, ji = draft.take("split", jj, tile.columns, "pad")
    ko, ki = draft.take("split", k, tile.depth, "min")
    io, ii = draft.take("split", i, tile.panel, "min")
    iio, iii = draft.take("split", ii, tile.rows, "pad")
    tiles = (iio, jo) if not beside and draft.choice("gemm.order", 0) else (jo, iio)
    if beside:
        draft.take("reorder", *outside, io, ko, *beside, *tiles, ki, *inner, iii, ji)
    else:
        draft.take("reorder", *outside, jc, ko, io, *tiles, ki, *inner, iii, ji)
    axes = (iio, iii, ki) if by_rows else (iio, ki, *inner, iii)
    before = {n.name for n in locals_in(draft.program)}
    panels = (
        *draft.take("stage", (*beside, *tiles)[0], c.left.buffer, "read", "scratch", *axes),
        *(draft.take("stage", iio, c.right.buffer, "read", "scratch", ki, *inner, ji) if beside else
          draft.take("stage", io, c.right.buffer, "read", "scratch", jo, ki, *inner, ji)),
    )
    for packed in [n.name for n in locals_in(draft.program) if n.name not in before]:
        while draft.tries(("precompute", packed)):                   # (float) A · B, alpha · A · B
            pass
    if threads and (shared or not draft.thread(*c.batch)) and draft.thread(*beside, tiles[0]):
        draft.thread(panels[0])
        if not beside:
            draft.thread(next(name for name in panels if name.startswith(f"{jo}_r")))
    visits = summed(draft, ki, c.out.buffer, iii, ji)
    for loop in reversed((*inner, iii)):
        draft.tries(("hoist", loop))
    made = [name for name in (*panels, *visits) if not is_rare(name, (*panels, *visits)) and has_whole_tiles(draft, name, ji)]
    for name in (ji, *[name for name in made if name.startswith(f"{ji}_")]):
        if name == ji or not name.startswith(f"{ji}_r"):
            _vectors(draft, name, tile.lanes)
        else:
            draft.attempts(partial(_vectors, name=name, lanes=tile.lanes))            # what is read may lie in steps
    if by_rows:
        for row in [name for name in made if name.startswith(f"{ki}_r")][:1]:
            draft.attempts(partial(_copies, name=row, lanes=tile.lanes))
    if machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", ki)
    registers = {n.name for n in locals_in(draft.program) if n.space == "register" and n.shape}
    for name in (iii, *[name for name in made if name.startswith(f"{iii}_")]):
        if any(isinstance(n, Aref | Vref) and n.buffer in registers for n in draft.loop(name).unique()):
            draft.take("unroll", name)
    _fetch(draft, c, tiles[-1], panels)
    if inner and products(draft, inner[-1:]) in range(2, draft.choice("gemm.steps", MOST_STEPS) + 1):
        draft.take("unroll", inner[-1])
    if (count := draft.choice("gemm.unroll", 1)) > 1:
        draft.attempts(partial(_written_out, name=ki, count=count))


def summed(draft: Draft, loop: str, buffer: str, *axes: str, how: str = "partial", asking: bool = False) -> tuple[str, ...]:
    """Sums in registers; where a nest before only sets what they are added to, the first of them does, and they are staged as `how` says where there
    is no such nest, or where, unless `asking`, conditions would stay around the sum. The new loops."""
    before = {loop.name for loop in loops_in(draft.program)}
    if not draft.attempts(partial(_begun, loop=loop, buffer=buffer, axes=axes, asking=asking)):
        draft.take("stage", loop, buffer, how, "register", *axes)
    return tuple([loop.name for loop in loops_in(draft.program) if loop.name not in before])


def _begun(draft: Draft, loop: str, buffer: str, axes: tuple[str, ...], asking: bool) -> None:
    draft.take("stage", loop, buffer, "begin", "register", *axes)
    if not asking and any(isinstance(n, If) for n in draft.loop(loop).unique()):
        raise error("E511", f"a condition is asked for every product of '{loop}'")


def _written_out(draft: Draft, name: str, count: int) -> None:
    """Several iterations of a loop at a time."""
    _, inner, *_ = draft.take("split", name, count)
    draft.take("unroll", inner)


def _fetch(draft: Draft, c: Contraction, tiles: str, panels: tuple[str, ...]) -> None:
    """Ask early for what lies in steps of a row, where no machine guesses it: the next tile of the result, and rows that are packed soon."""
    ahead = draft.choice("gemm.ahead", ROWS_AHEAD)
    draft.tries(("prefetch", tiles, c.out.buffer, 1, "write"))
    for buffer, name in ((c.left.buffer, c.rows[-1]), (c.right.buffer, c.sums[0])):
        for loop in panels:
            if loop.startswith(name) and loop.rstrip("_0123456789").endswith("i_r") and draft.tries(("prefetch", loop, buffer, ahead)):
                break


def is_rare(loop: str, made: tuple[str, ...]) -> bool:
    """Is it a loop over the edge of a tile, where another one is over whole tiles? These stay scalar."""
    name, _, suffix = loop.rpartition("_")
    while suffix.isdigit():
        name, _, suffix = name.rpartition("_")
    return suffix in ("re", "we") and any(other.startswith(f"{name}_{suffix[0]}") and not other.startswith(f"{name}_{suffix}") for other in made)


def has_whole_tiles(draft: Draft, name: str, columns: str) -> bool:
    """False of a loop over as many columns of a tile as there are."""
    return not name.startswith(f"{columns}_") or isinstance(canonical(draft.loop(name).hi - draft.loop(name).lo), Const)


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop over the columns of a tile as vectors side by side."""
    outer, inner = draft.halves(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def _copies(draft: Draft, name: str, lanes: int) -> None:
    """A loop that copies neighbours as vectors, and what is left one by one."""
    _, inner, *_ = draft.take("split", name, lanes)
    draft.take("vectorize", inner)


def products(draft: Draft, loops: list[str]) -> int:
    """How many iterations constant loops have together."""
    extents = [canonical(loop.hi - loop.lo) for loop in map(draft.loop, loops)]
    return prod([e.value for e in extents if isinstance(e, Const)])

"""The recipe for contractions: tiles of the result in registers, both operands packed.

After Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008): a panel of the left operand and one of the right are copied so
that the innermost loops read them in a row; a tile of the result stays in registers while they run.
"""
from __future__ import annotations

from ..core.dtypes import is_float
from ..core.program import Machine
from ..loop.statements import Aref, Local, Vref
from .classify import Contraction
from .draft import Draft
from .tiles import gemm_tile


def gemm(draft: Draft, c: Contraction, machine: Machine, threads: bool) -> None:
    """Tile, pack and vectorise, on several threads if `threads`."""
    tile, i, j, k = gemm_tile(machine, c.out.dtype), c.rows[-1], c.columns[-1], c.sums[-1]
    outside = (*c.batch, *c.rows[:-1], *c.columns[:-1])
    sums = c.sums[:-1]
    draft.take("reorder", *outside, i, *c.sums, j)
    jo, ji = draft.take("split", j, tile.columns, "pad")
    ko, ki = draft.take("split", k, tile.depth, "min")
    io, ii = draft.take("split", i, tile.panel, "min")
    iio, iii = draft.take("split", ii, tile.rows, "pad")
    draft.take("reorder", *outside, io, *sums, ko, jo, iio, ki, iii, ji)
    if threads:
        draft.thread(*outside, io)
    panels = [
        *draft.take("stage", jo, c.left.buffer, "read", "scratch", iio, ki, iii),
        *draft.take("stage", iio, c.right.buffer, "read", "scratch", ki, ji),
    ]
    visits = draft.take("stage", ki, c.out.buffer, "partial", "register", iii, ji)
    edges = tuple([f"{loop}_{edge}" for loop in (iio, iii, ki, ji) for edge in ("re", "we")])             # these loops stay scalar
    made = [name for name in (*panels, *visits) if not name.startswith(edges)]
    for name in (ji, *[name for name in made if name.startswith(f"{ji}_")]):
        _vectors(draft, name, tile.columns // 2)
    if machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", ki)
    registers = {n.name for n in draft.program.unique() if isinstance(n, Local) and n.space == "register" and n.shape}
    for name in (iii, *[name for name in made if name.startswith(f"{iii}_")]):
        if any(isinstance(n, Aref | Vref) and n.buffer in registers for n in draft.loop(name).unique()):       # only numbers address registers
            draft.take("unroll", name, "full")


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop over the columns of a tile as vectors side by side."""
    outer, inner = draft.take("split", name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer, "full")

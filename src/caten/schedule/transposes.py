"""The recipe for copies that turn rows into columns: blocks of them in vector registers, whole lines of memory at a time.

The loops are renamed here by what they do: `down` steps through neighbours where the copy stores, `across` where it reads.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..core.dtypes import DTYPES
from ..core.program import Machine
from ..loop.statements import Aref, LoopProgram, Setf
from .classify import Chain, contiguous_loop
from .draft import Draft

MOST_LANES = 16
DOWN, ACROSS = 512, 256          # bytes of a tile's columns and rows


@dataclass(frozen=True)
class Transposition:
    """A copy whose stores are contiguous in the loop `down` and whose reads in `across`, inside the loops `rest`."""

    out: Aref
    value: Aref
    down: str
    across: str
    rest: tuple[str, ...]


def transposition(program: LoopProgram, chain: Chain) -> Transposition | None:
    """The nest as a transposition of two of its axes, whatever the order of its loops."""
    match chain.body:
        case (Setf(ref=Aref() as out, value=Aref() as value),) if out.buffer != value.buffer and DTYPES[out.dtype].bytes <= 8:
            pass
        case _:
            return None
    down, across = contiguous_loop(program, out, chain.names), contiguous_loop(program, value, chain.names)
    if down is None or across is None or down == across:
        return None
    return Transposition(out, value, down, across, tuple([n for n in chain.names if n not in (down, across)]))


def transposes(draft: Draft, t: Transposition, machine: Machine, threads: bool) -> None:
    """Tiles of some rows of lines; in them the blocks that fit the registers, along the rows that are read; edges by plain loops."""
    size = DTYPES[t.out.dtype].bytes
    lanes = min(machine.vector_bytes // size, MOST_LANES)
    draft.take("reorder", *t.rest, t.down, t.across)
    do, di = draft.take("split", t.down, DOWN // size, "min")
    ao, ai = draft.take("split", t.across, ACROSS // size, "min")
    draft.take("reorder", do, ao, di, ai)
    if threads:
        draft.thread(*t.rest, do)
    _blocks(draft, di, ai, lanes)


def _blocks(draft: Draft, down: str, across: str, lanes: int) -> None:
    """Two loops, `across` inside `down`, as blocks of lanes × lanes."""
    _, rows, *_ = draft.take("split", down, lanes)
    draft.take("reorder", across, rows)
    _, columns, *_ = draft.take("split", across, lanes)
    draft.take("transpose", columns, rows)

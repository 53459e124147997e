"""The recipe for copies that turn rows into columns: blocks of them in vector registers, whole lines of memory at a time.

Two loops are told by what they do: `down` steps through neighbours where the copy stores, `across` where it reads. What fits the caches is stored
block by block. What does not is turned tile by tile in a local array, and stored from there in runs that are long enough for stores past the caches,
wherever in its line a row begins: without them every line that is stored would be fetched before. Rows shorter than a tile are left to the caches:
a line that is stored in parts, past them and not, takes hundreds of cycles.
"""
from __future__ import annotations

from functools import partial, reduce
from operator import mul

from ..core.dtypes import DTYPES, is_complex
from ..core.expr import FALSE, Const, Expr, index
from ..core.program import Machine
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.statements import Aref, LoopProgram, Setf
from .analysis.classify import Chain, contiguous_loop
from .draft import Draft
from .tidy import normal

MOST_LANES = 16
FITS = 16                        # arrays this many times as large as the last known cache are taken not to fit any
TILE = (1024, 256)               # bytes of a tile's columns and rows


@frozen
class Transposition:
    """A copy whose stores are contiguous in the loop `down` and whose reads in `across`; `loops` are all, in their present order."""

    out: Aref
    value: Aref
    down: str
    across: str
    loops: tuple[str, ...]


def transposition(program: LoopProgram, chain: Chain) -> Transposition | None:
    """The nest as a transposition of two of its axes, whatever the order of its loops."""
    match chain.body:
        case (Setf(ref=Aref() as out, value=Aref() as value),) if out.buffer != value.buffer and DTYPES[out.dtype].bits in (8, 16, 32, 64):
            pass
        case _:
            return None
    down, across = contiguous_loop(program, out, chain.names), contiguous_loop(program, value, chain.names)
    return None if down is None or across is None or down == across else Transposition(out, value, down, across, chain.names)


def transposes(draft: Draft, t: Transposition, machine: Machine, threads: bool) -> None:
    """Tiles, for copies that fit the caches and for those that do not."""
    rest, size = [n for n in t.loops if n not in (t.down, t.across)], DTYPES[t.out.dtype].bytes
    lanes = min(machine.vector_bytes // size, MOST_LANES)
    fits, tall_bytes = draft.choice("transposes.fits", FITS), draft.choice("transposes.down", TILE[0])
    extents = {loop.name: canonical(loop.hi - loop.lo) for loop in map(draft.loop, t.loops)}
    large = normal((index(fits * machine.cache_bytes[-1] // size) < reduce(mul, extents.values())) & (index(tall_bytes // size) <= extents[t.down]))
    if (order := (*rest, t.down, t.across)) != t.loops:
        draft.take("reorder", *order)
    tall, down = draft.pair(t.down, tall_bytes // size, "min")
    wide, across = draft.pair(t.across, draft.choice("transposes.across", TILE[1]) // size, "min")
    draft.take("reorder", tall, wide, down, across)
    if threads:
        draft.thread(*rest, tall)
    if is_complex(t.out.dtype):
        large = FALSE                                     # no vectors of them are stored one by one
    if not isinstance(large, Const):
        draft.attempts(partial(_large, t=t, outermost=(*rest, tall)[0], large=large, loops=(down, across), lanes=lanes))
    elif large.value:
        return _beyond(draft, t, (down, across), lanes)
    return _blocks(draft, down, across, lanes)


def _large(draft: Draft, t: Transposition, outermost: str, large: Expr, loops: tuple[str, str], lanes: int) -> None:
    """A copy of the nest for arrays that do not fit the caches."""
    copies = draft.special(outermost, large)
    down, across = loops
    _beyond(draft, t, (copies[down], copies[across]), lanes)


def _beyond(draft: Draft, t: Transposition, loops: tuple[str, str], lanes: int) -> None:
    """The tile turned in a local array, and stored from there row by row, past the caches."""
    down, across = loops
    draft.take("reorder", across, down)
    turned = draft.stage(across, t.value.buffer, "read", "scratch", across, down)
    rows, columns = turned.usual(across)[0], turned.usual(down)[0]
    draft.take("reorder", columns, rows)
    _blocks(draft, columns, rows, lanes)
    draft.take("vectorize", draft.split(down, lanes).inner)
    draft.take("stream", across, t.out.buffer)


def _blocks(draft: Draft, down: str, across: str, lanes: int) -> None:
    """Two loops, `across` inside `down`, as blocks of lanes × lanes in registers; their edges stay plain loops."""
    rows = draft.split(down, lanes).inner
    draft.take("reorder", across, rows)
    draft.take("transpose", draft.split(across, lanes).inner, rows)

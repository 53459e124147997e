"""Plans of copies that turn rows into columns: blocks of them in vector registers, whole lines of memory at a time.

Two loops are told by what they do: `down` steps through neighbours where the copy stores, `across` where it reads. What fits the caches is stored
block by block. What does not is turned tile by tile in a local array, and stored from there in runs that are long enough for stores past the caches,
wherever in its line a row begins: without them every line that is stored would be fetched before. Rows shorter than a tile are left to the caches:
a line that is stored in parts, past them and not, takes hundreds of cycles.
"""
from __future__ import annotations

from functools import reduce
from operator import mul

from ...core.dtypes import DTYPES, is_complex
from ...core.expr import FALSE, Const, Expr, index
from ...frozen import frozen
from ...loop.affine import canonical
from ...loop.statements import Aref, LoopProgram, Setf
from ..analysis.classify import Chain, contiguous_loop
from ..tidy import normal
from .parameters import Parameter
from .plan import Family, Given, NotApplicable, Plan, Version

FITS = Parameter("transposes.fits", (1, 16, 64), 16, what="times the last known cache: what is larger is taken not to fit any")
DOWN = Parameter("transposes.down", (512, 1024, 2048), 1024, what="bytes of a tile's columns")
ACROSS = Parameter("transposes.across", (128, 256, 512), 256, what="bytes of a tile's rows")

MOST_LANES = 16


@frozen
class Transposition:
    """A copy whose stores are contiguous in the loop `down` and whose reads in `across`; `loops` are all, in their present order. `extents`: how
    often each of them runs."""

    out: Aref
    value: Aref
    down: str
    across: str
    loops: tuple[str, ...]
    extents: tuple[Expr, ...]


@frozen
class Turned(Plan):
    """Tiles of `tall` × `wide` elements in blocks of `lanes` × `lanes`; `beyond`: stored past the caches, from a local array."""

    tall: int
    wide: int
    lanes: int
    beyond: bool = False


def beyond_the_caches(t: Transposition, given: Given) -> Version:
    """For arrays that do not fit the caches."""
    size, last = DTYPES[t.out.dtype].bytes, given.machine.cache_bytes[-1]
    column = t.extents[t.loops.index(t.down)]
    large = normal((index(given(FITS) * last // size) < reduce(mul, t.extents)) & (index(_turned(t, given).tall) <= column))
    if large == FALSE or is_complex(t.out.dtype):
        raise NotApplicable("it fits the caches, or no vectors of its elements are stored one by one")
    return Version(_turned(t, given, beyond=True), None if isinstance(large, Const) else large)


def blocks(t: Transposition, given: Given) -> Version:
    """For arrays that fit the caches."""
    return Version(_turned(t, given))


def _turned(t: Transposition, given: Given, beyond: bool = False) -> Turned:
    size = DTYPES[t.out.dtype].bytes
    return Turned(given(DOWN) // size, given(ACROSS) // size, min(given.machine.vector_bytes // size, MOST_LANES), beyond)


def transposition(program: LoopProgram, chain: Chain) -> Transposition | None:
    """The nest as a transposition of two of its axes, whatever the order of its loops."""
    match chain.body:
        case (Setf(ref=Aref() as out, value=Aref() as value),) if out.buffer != value.buffer and DTYPES[out.dtype].bits in (8, 16, 32, 64):
            pass
        case _:
            return None
    down, across = contiguous_loop(program, out, chain.names), contiguous_loop(program, value, chain.names)
    if down is None or across is None or down == across:
        return None
    return Transposition(out, value, down, across, chain.names, tuple([canonical(loop.hi - loop.lo) for loop in chain.loops]))


def transposed(program: LoopProgram, chain: Chain, given: Given) -> Transposition:
    """A perfect nest as a transposition."""
    found = transposition(program, chain)
    if found is None:
        raise NotApplicable("it is no copy that turns rows into columns")
    return found


TRANSPOSES = Family("transposes", "Copies that turn rows into columns.", transposed, (beyond_the_caches, blocks))

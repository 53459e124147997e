"""Plans of transposes: square blocks in vector registers, whole cache lines at a time.

Two loops matter: stores are contiguous in `down`, loads in `across`. If the arrays fit the cache, blocks are stored
directly. Otherwise a tile is transposed into a local array and stored from there in long runs with non-temporal stores,
which do not fetch the lines they write, wherever in its line a row begins. Rows shorter than a tile use ordinary
stores: a cache line written partly by non-temporal stores costs hundreds of cycles.
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
from ..normalize import normal
from .parameters import Parameter
from .plan import NestKind, NotApplicable, Plan, PlanContext, Version

FITS = Parameter("transposes.fits", (1, 16, 64), 16, what="multiple of the last known cache above which nothing fits")
DOWN = Parameter("transposes.down", (512, 1024, 2048), 1024, what="bytes of a tile along the stores")
ACROSS = Parameter("transposes.across", (128, 256, 512), what="bytes of a tile along the loads")
FAR_AHEAD, NEAR = 256, 128      # of these, where the hardware fetches many streams ahead or few

MAX_LANES = 16
SHORT_BYTES = 4                 # longest axis of single bytes that is short: C compilers shuffle no more of them well


@frozen
class Transposition:
    """A copy whose stores are contiguous in the loop `down` and whose loads are contiguous in `across`. `loops`: all
    loops in their present order. `extents`: their trip counts."""

    out: Aref
    value: Aref
    down: str
    across: str
    loops: tuple[str, ...]
    extents: tuple[Expr, ...]


@frozen
class BlockedTranspose(Plan):
    """Tiles of `down` × `across` elements in register blocks of `lanes` × `lanes`. `non_temporal`: tiles go through a
    local array and are stored with non-temporal stores."""

    down: int
    across: int
    lanes: int
    non_temporal: bool = False


@frozen
class ShortAxisInside(Plan):
    """The loop over a short axis is innermost: the C compiler unrolls it, and shuffles what it loads or stores."""


def short_axis(t: Transposition, context: PlanContext) -> Version:
    """For an axis of known size below a vector (points, colours): blocks would have no full vectors."""
    if short_loop(t, context) is None:
        raise NotApplicable("both axes fill vectors, or their sizes are not known")
    return Version(ShortAxisInside())


def short_loop(t: Transposition, context: PlanContext) -> str | None:
    """The loop of the two whose known extent is below a vector, if there is one."""
    most = SHORT_BYTES if DTYPES[t.out.dtype].bytes == 1 else _lanes(t, context) - 1
    extents = dict(zip(t.loops, t.extents, strict=True))
    return next((loop for loop in (t.across, t.down)
                 if isinstance(count := extents[loop], Const) and count.value <= most), None)


def larger_than_cache(t: Transposition, context: PlanContext) -> Version:
    """For arrays larger than the cache: non-temporal stores."""
    size, last = DTYPES[t.out.dtype].bytes, context.machine.cache_bytes[-1]
    column, plan = t.extents[t.loops.index(t.down)], _plan(t, context, non_temporal=True)
    large = normal((index(context.value(FITS) * last // size) < reduce(mul, t.extents)) & (index(plan.down) <= column))
    if large == FALSE or is_complex(t.out.dtype):
        raise NotApplicable("it fits the cache, or its elements have no vector stores")
    return Version(plan, None if isinstance(large, Const) else large)


def fits_cache(t: Transposition, context: PlanContext) -> Version:
    """For arrays that fit the cache: ordinary stores."""
    return Version(_plan(t, context))


def _plan(t: Transposition, context: PlanContext, non_temporal: bool = False) -> BlockedTranspose:
    size = DTYPES[t.out.dtype].bytes
    across = context.value(ACROSS, FAR_AHEAD if context.machine.fetches_ahead else NEAR)
    return BlockedTranspose(context.value(DOWN) // size, across // size, _lanes(t, context), non_temporal)


def _lanes(t: Transposition, context: PlanContext) -> int:
    return min(context.machine.vector_bytes // DTYPES[t.out.dtype].bytes, MAX_LANES)


def transposition(program: LoopProgram, chain: Chain) -> Transposition | None:
    """The nest as a transpose of two axes, whatever its loop order; None if it is none."""
    match chain.body:
        case (Setf(ref=Aref() as out, value=Aref() as value),) if (
                out.buffer != value.buffer and DTYPES[out.dtype].bits in (8, 16, 32, 64)):
            pass
        case _:
            return None
    down, across = contiguous_loop(program, out, chain.names), contiguous_loop(program, value, chain.names)
    if down is None or across is None or down == across:
        return None
    extents = tuple([canonical(loop.hi - loop.lo) for loop in chain.loops])
    return Transposition(out, value, down, across, chain.names, extents)


def match_transpose(program: LoopProgram, chain: Chain, context: PlanContext) -> Transposition:
    """A perfect nest as a transpose."""
    found = transposition(program, chain)
    if found is None:
        raise NotApplicable("it is not a transpose")
    return found


TRANSPOSES = NestKind("transposes", "Copies that swap rows and columns.", match_transpose,
                      (short_axis, larger_than_cache, fits_cache))

"""Plans of nests that store a result in every iteration: vectors along the loop whose elements are neighbours where they are stored."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import DTYPES
from ...frozen import frozen
from ...loop.statements import Aref, LoopProgram
from ..analysis.classify import Chain, computes_much, contiguous_loop, is_gathered, reduction, stored
from ..analysis.nests import mentions, stride_in
from .parameters import Parameter
from .plan import Axis, Family, Given, NotApplicable, Plan, Version, axes_of
from .sums import TREE
from .sums import VECTORS as SUM_VECTORS

VECTORS = Parameter("maps.vectors", (1, 2, 4, 8), 1, what="vectors computed at once, one after the other")
STREAM = Parameter("maps.stream", (0, 1), 0, what="are results stored past the caches?")
AHEAD = Parameter("maps.ahead", (0, 1 << 10, 1 << 12), what="bytes between a store and what is asked for; 0: nothing is asked for")

ASKED = 1024                    # such bytes, where the machine does not fetch ahead
PIECE = 4096                    # elements of a row that one thread computes at a time


@frozen
class Map:
    """One result per element. `row`: the loop along which all stores go to neighbours, or the innermost; `rest`: the others, from the outermost.
    `computes`: is there an elementary function of every element?"""

    lanes: int
    row: Axis
    rest: tuple[Axis, ...]
    computes: bool = False


@frozen
class Sweep(Plan):
    """Vectors along a row, `vectors` at once, what is left of it in vectors with masks. `pieces`: threads share rows in pieces of so many elements
    (0: whole rows); `stream`: results are stored past the caches, or, without it, asked for so many bytes `ahead`. `sums`: the innermost loop adds
    something up as well, in as many partial sums, which are added up as a `tree` where that is asked for."""

    lanes: int
    vectors: int
    pieces: int = 0
    stream: bool = False
    ahead: int = 0
    sums: bool = False
    tree: bool = False


@frozen
class AsWritten(Plan):
    """Loops as they are, of which C compilers make what can be made. `rows`: threads share rows, not what is inside them."""

    rows: bool = False


def short_rows(m: Map, given: Given) -> Version:
    """For rows that do not fill a vector, as they are written: of each there would be one vector with a mask."""
    if not m.rest or m.computes or not m.row.size:
        raise NotApplicable("there is one row, much is computed in it, or its end is no size")
    return Version(AsWritten(rows=True), ("<", m.row.size, str(m.lanes)), "w")


def rows_of_one_piece(m: Map, given: Given) -> Version:
    """For rows of one piece: asking for the pieces of each would cost more than a short row."""
    if not _in_pieces(m, given):
        raise NotApplicable("no threads share pieces of rows")
    return Version(_sweep(m, given), ("<=", m.row.end, str(PIECE)), "s")


def vectors(m: Map, given: Given) -> Version:
    """Vectors along all rows, in pieces that threads share where they may be few, or one."""
    return Version(_sweep(m, given, PIECE if _in_pieces(m, given) else 0))


def vectors_with_sums(m: Map, given: Given) -> Version:
    """Vectors, and as many partial sums of what is added up on the way."""
    return Version(Sweep(m.lanes, given(SUM_VECTORS), ahead=_ahead(given), sums=True, tree=bool(given(TREE))))


def _in_pieces(m: Map, given: Given) -> bool:
    """Do threads share rows in pieces? There may be few rows, or one, and there is one piece of what is known to be short."""
    return len(m.rest) == 1 and given.shares and (m.row.count is None or m.row.count > PIECE)


def _sweep(m: Map, given: Given, pieces: int = 0) -> Sweep:
    stream = bool(given(STREAM))
    return Sweep(m.lanes, given(VECTORS), pieces, stream, 0 if stream else _ahead(given))


def _ahead(given: Given) -> int:
    return given(AHEAD, 0 if given.machine.fetches_ahead else ASKED)


def map_(program: LoopProgram, chain: Chain, given: Given) -> Map:
    """A perfect nest as a map."""
    lanes = given.vectors_of(chain.body)
    found = {contiguous_loop(program, place, chain.names) for place in stored(chain)}
    if len(found) != 1:
        raise NotApplicable("the stores have no contiguous loop in common")
    name = found.pop() or chain.names[-1]              # None where an index is a named value, which vectorize sees through
    _check_gathers(program, chain, name)
    axes = axes_of(chain)
    return Map(lanes, next(a for a in axes if a.name == name), tuple([a for a in axes if a.name != name]), computes_much(chain.body))


def _check_gathers(program: LoopProgram, chain: Chain, loop: str) -> None:
    """Elements that lie apart are gathered one by one, which pays where much is computed from them. C compilers read a few short streams side by
    side. What lies two, three or four elements apart in a row is read as a longer vector."""
    refs: Any = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    far = [ref for ref in refs if is_gathered(program, ref, loop) and not (stride_in(ref.index[-1], loop) and DTYPES[ref.dtype].bytes >= 4)]
    if far and not computes_much(chain.body):
        raise NotApplicable(f"the elements of {far[0]} that '{loop}' steps through are no neighbours")


def map_with_sums(program: LoopProgram, chain: Chain, given: Given) -> Map:
    """A loop that stores a result in every iteration, and adds something up on the way."""
    lanes, loop = given.vectors_of(chain.body), chain.names[-1]
    sums = [place.buffer for place in stored(chain) if not mentions(place, (loop,))]
    if not chain.is_leaf or reduction(chain) is not None or not sums or len(set(sums)) < len(sums):
        raise NotApplicable(f"'{loop}' does not add something to single places, once to each, beside what it stores")
    *rest, row = axes_of(chain)
    return Map(lanes, row, tuple(rest))


MAPS = Family("maps", "Nests that store a result for each element.", map_, (short_rows, rows_of_one_piece, vectors))
MAPS_WITH_SUMS = Family("maps with sums", "Nests that store a result for each element, and add something up on the way.", map_with_sums,
                        (vectors_with_sums,))

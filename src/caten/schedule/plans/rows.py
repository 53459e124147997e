"""Plans of rows that several loops pass over, one after the other (a softmax, a layer norm), and of loops whose inner loops cannot be vectors."""
from __future__ import annotations

from ...core.elementary.table import FORMS
from ...core.expr import Const, Op, Var
from ...core.program import Buffer
from ...frozen import frozen
from ...loop.affine import canonical
from ...loop.statements import Aref, For, LoopProgram
from ..analysis.classify import Chain, chain_of, computes_much, contiguous_loop, is_gathered, outermost, stored
from ..analysis.nests import loops_in, mentions
from .maps import AsWritten
from .parameters import Parameter
from .plan import Axis, Family, Given, NotApplicable, Plan, Version, axes_of

AHEAD = Parameter("rows.ahead", (0, 1), what="does a pass over a row ask for the next one?")


@frozen
class Passes:
    """Loops over rows (`outside`), and loops that each go once along a row of `length` elements. `gathers`: would lanes across the rows read what
    lies apart?"""

    lanes: int
    outside: tuple[Axis, ...]
    length: str
    computes: bool
    gathers: bool = False


@frozen
class LanesAcross(Plan):
    """The iterations of the innermost loop of a chain as lanes, each of which runs all loops inside it for itself. `single`: those run once."""

    lanes: int
    single: bool = False


@frozen
class Ahead(Plan):
    """The pass that asks for the next row, and the arrays of which it reads a row that nothing in the nest writes."""

    loop: str
    arrays: tuple[str, ...]


def rows_of_one(p: Passes, given: Given) -> Version:
    """For rows of one element: there is nothing to pass over, and the rows are the lanes of vectors."""
    if not given.threads:
        raise NotApplicable("the nest around it has plans for them")
    return Version(LanesAcross(p.lanes, single=True), ("=", p.length, "1"), "one")


def short_rows(p: Passes, given: Given) -> Version:
    """For rows that do not fill a vector (two, where much is computed): what they read lies a row apart."""
    return Version(LanesAcross(p.lanes), ("<", p.length, str(p.lanes * (2 if p.computes else 1))), "w")


def gathering(p: Passes, given: Given) -> Version:
    """Where lanes would gather what they read and little is computed: C compilers do better with rows of a constant length."""
    if p.computes or not p.gathers:
        raise NotApplicable("much is computed, or lanes read neighbours")
    return Version(AsWritten())


def serial_inside(p: Passes, given: Given) -> Version:
    """Where the loops inside are short, or step through no memory."""
    return Version(LanesAcross(p.lanes))


def passes(program: LoopProgram, chain: Chain, given: Given) -> Passes:
    """Loops inside a chain that go over equally many elements, which only the call knows how many are."""
    inner = list(outermost(chain.body))
    if len({loop.hi for loop in inner}) != 1 or not all(isinstance(loop.hi, Var) and loop.lo == Const(0, "i64") for loop in inner):
        raise NotApplicable("the loops inside do not all go over so many elements as a size says")
    if not all(len(chain_of(loop).loops) == 1 and chain_of(loop).is_leaf for loop in inner) or mentions(inner[0].hi, chain.names):
        raise NotApplicable("there are loops in the loops inside, or these are not equally long in every row")
    return Passes(_lanes(chain, given), axes_of(chain), str(inner[0].hi), computes_much(chain.body))


def serial(program: LoopProgram, chain: Chain, given: Given) -> Passes:
    """A chain that ends in a loop that may fill vectors, and holds loops that are short or do not step through memory."""
    lanes, inner, axes = _lanes(chain, given), loops_in(chain.body), axes_of(chain)
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    if not inner or _is_short(axes[-1].count, lanes) or not all(
            _is_short(_count(loop), lanes) or not any(contiguous_loop(program, ref, (loop.name,)) for ref in refs) for loop in inner):
        raise NotApplicable("there is a loop inside that may fill vectors, or the last around it never does")
    return Passes(lanes, axes, "", computes_much(chain.body), any(is_gathered(program, ref, axes[-1].name) for ref in refs))


def ahead(program: LoopProgram, chain: Chain, given: Given) -> Ahead | None:
    """Which pass asks for what the next row reads, where several do: the last that reads what nothing in the row writes, because then all of the row
    is in the cache already. A machine that fetches ahead by itself is asked only where the pass computes much."""
    written, found, computes = {place.buffer for place in stored(chain)}, None, False
    inner = list(outermost(chain.body))
    for loop in inner if len(inner) > 1 else []:
        arrays = tuple(dict.fromkeys([ref.buffer for ref in _along(program, chain, loop) if ref.buffer not in written]))
        if arrays:
            found, computes = Ahead(loop.name, arrays), any(isinstance(n, Op) and n.fn in FORMS for n in loop.unique())
    return found if found is not None and given(AHEAD, int(computes or not given.machine.fetches_ahead)) else None


def _along(program: LoopProgram, chain: Chain, loop: For) -> list[Aref]:
    """The accesses of a pass that go along a row of an array."""
    refs = [n for n in loop.walk() if isinstance(n, Aref) and isinstance(program.buffers.get(n.buffer), Buffer) and mentions(n, chain.names[-1:])]
    return [ref for ref in refs if contiguous_loop(program, ref, (loop.name,)) is not None]


def _lanes(chain: Chain, given: Given) -> int:
    lanes = given.lanes([n.dtype for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    if lanes < 2:
        raise NotApplicable("the machine has no vectors of its elements")
    return lanes


def _count(loop: For) -> int | None:
    extent = canonical(loop.hi - loop.lo)
    return int(extent.value) if isinstance(extent, Const) else None


def _is_short(count: int | None, lanes: int) -> bool:
    """Does a loop never fill a vector?"""
    return count is not None and count < lanes


PASSES = Family("rows", "Rows that several loops pass over, one after the other: a softmax, a layer norm. What is left is planned loop by loop.",
                passes, (rows_of_one, short_rows), for_all=False)
SERIAL = Family("lanes across", "Loops around loops that cannot be vectors: short ones, and such as do not step through memory.", serial,
                (gathering, serial_inside))

"""The recipe for nests whose innermost loops are too short for vectors, or cannot be vectors: the lanes lie across the loop around them.

Every lane runs the inner loops for itself, in step with the others; what they read lies a row apart. A softmax of three columns has three elements
in a vector of sixteen otherwise, and the loop of a recurrence has no vectors at all.
"""
from __future__ import annotations

from functools import partial

from ..core.elementary.table import FORMS
from ..core.expr import Const, Op, Var
from ..loop.affine import canonical
from ..loop.statements import Aref, For, LoopProgram
from .analysis.classify import Chain, Reduction, contiguous_loop
from .analysis.nests import loops_in, mentions
from .draft import Copies, Draft, NotApplicable
from .made import Staged


def is_short(loop: For, lanes: int) -> bool:
    """Does the loop never fill a vector?"""
    extent = canonical(loop.hi - loop.lo)
    return isinstance(extent, Const) and int(extent.value) < lanes


def short_rows(draft: Draft, chain: Chain, passes: list[For], lanes: int, threads: bool) -> None:
    """A copy of a nest of passes over rows, for rows that do not fill a vector (two, where much is computed)."""
    copies = draft.special(chain.names[0], ("<", str(passes[0].hi), str(lanes * (2 if computes_much(chain.body) else 1))), "w")
    _lanes_of(draft, [copies[name] for name in chain.names], lanes, threads)


def lanes_across(draft: Draft, chain: Chain, lanes: int, threads: bool) -> None:
    """The iterations of the innermost loop of a chain as lanes, with all loops inside it. What lies a row apart is gathered, which pays where much is
    computed; else C compilers do better with rows of a constant length."""
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    if not computes_much(chain.body) and any(is_gathered(draft.program, ref, chain.names[-1]) for ref in refs):
        if threads:
            draft.thread_two(*chain.names)
        return
    _lanes_of(draft, list(chain.names), lanes, threads)


def is_serial_inside(program: LoopProgram, chain: Chain, lanes: int) -> bool:
    """Are the loops inside a chain short, or none that step through memory, so that vectors along them do not pay, and does the chain end in a loop
    that may fill vectors?"""
    inner = loops_in(chain.body)
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    return bool(inner) and not is_short(chain.loops[-1], lanes) and all(
        is_short(loop, lanes) or not any(contiguous_loop(program, ref, (loop.name,)) for ref in refs) for loop in inner)


def short_rows_as_written(draft: Draft, chain: Chain, row: str, lanes: int, threads: bool) -> None:
    """A copy of a nest for rows that do not fill a vector, as it is written: of each there would be one vector with a mask."""
    copies = _copy_for_short(draft, chain, row, lanes)
    if threads:
        draft.thread_two(*[copies[name] for name in chain.names if name != row])


def _copy_for_short(draft: Draft, chain: Chain, row: str, count: int) -> Copies:
    """A copy of a nest for calls in which one of its loops has less iterations."""
    last = draft.loop(row)
    if not isinstance(last.hi, Var) or last.lo != Const(0, "i64"):
        raise NotApplicable(f"the end of '{row}' is no size")
    return draft.special_nest(chain.names, ("<", str(last.hi), str(count)), "w")


def row_by_row(draft: Draft, total: Reduction, row: str, threads: bool) -> None:
    """Rows that never fill a vector are added one after the other, as they lie in memory, of which C compilers keep the sums in registers."""
    rest = [name for name in total.kept if name != row]
    draft.take("reorder", *rest, *total.summed, row)
    if threads:
        draft.thread(*rest)


def short_sums(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Sums of rows that never fill a vector: each in a lane where much is computed, else as they are written, of which C compilers make vectors of
    neighbouring rows."""
    if not is_short(draft.loop(total.summed[-1]), lanes):
        raise NotApplicable(f"'{total.summed[-1]}' fills vectors")
    if computes_much(chain.body):
        _sums(draft, chain, total, {name: name for name in chain.names}, lanes, threads)
        return
    order = (*total.kept, *total.summed)
    if order != chain.names:
        draft.take("reorder", *order)
    if total.kept:
        held(draft, total.summed[0], total.out.buffer)
    if threads:
        draft.thread_two(*total.kept)


def short_sums_copied(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """A copy of a nest of sums of rows, for rows that do not fill two vectors."""
    names = _copy_for_short(draft, chain, total.summed[-1], 2 * lanes)
    _sums(draft, chain, total, names, lanes, threads)


def _sums(draft: Draft, chain: Chain, total: Reduction, names: Copies, lanes: int, threads: bool) -> None:
    if not total.kept or contiguous_loop(draft.program, total.out, total.kept) != total.kept[-1]:
        raise NotApplicable(f"{total.out} is no row of sums")
    order = [names[name] for name in (*total.kept, *total.summed)]
    if tuple(order) != tuple([names[name] for name in chain.names]):
        draft.take("reorder", *order)
    held(draft, order[len(total.kept)], total.out.buffer)
    _lanes_of(draft, order[:len(total.kept)], lanes, threads)


def _lanes_of(draft: Draft, names: list[str], lanes: int, threads: bool) -> None:
    *outside, last = names
    tiles = draft.split(last, lanes)
    draft.take("vectorize", tiles.inner)
    if threads:
        draft.thread_two(*outside, tiles.outer)


def is_gathered(program: LoopProgram, ref: Aref, name: str) -> bool:
    """Does an access move with a loop, and not from neighbour to neighbour?"""
    return mentions(ref, (name,)) and contiguous_loop(program, ref, (name,)) is None


def computes_much(nodes: object) -> bool:
    """Is there an elementary function of every element? It pays for gathering what it is computed from."""
    stmts = nodes if isinstance(nodes, tuple) else (nodes,)
    return any(isinstance(n, Op) and n.fn in FORMS for s in stmts for n in s.unique())


def held(draft: Draft, loop: str, buffer: str, *axes: str) -> Staged:
    """The elements of a buffer that a loop adds to are held in registers meanwhile: they begin with what is added, where a nest before only sets them
    to the neutral value, which is left out then."""
    begun = draft.tried(partial(_begun, loop=loop, buffer=buffer, axes=axes))
    return begun or draft.stage(loop, buffer, "accumulate", "register", *axes)


def _begun(draft: Draft, loop: str, buffer: str, axes: tuple[str, ...]) -> Staged:
    """Registers that begin with what is added."""
    return draft.stage(loop, buffer, "begin", "register", *axes)

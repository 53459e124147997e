"""The recipe for rows that several loops pass over, one after the other: a softmax, a layer norm.

While it computes, one of the passes asks for what the next row reads: the last that reads what nothing in the row writes, because then all of the
row is in the cache already. A machine that fetches ahead by itself is asked only where the pass computes much. Rows of one element get a nest of
their own, whose vectors lie across the rows.
"""
from __future__ import annotations

from ..core.elementary.table import FORMS
from ..core.expr import Const, Op, Var
from ..core.program import Machine
from ..frozen import frozen
from ..loop.statements import Aref, For, LoopProgram, Vref
from .analysis.classify import Chain, chain_of, contiguous_loop, stores_in
from .analysis.nests import mentions
from .draft import Draft
from .tiles import lanes_of


def rows_of_one(draft: Draft, chain: Chain, passes: list[For], machine: Machine, threads: bool) -> None:
    """A copy of the nest for rows of one element: there is nothing to pass over, and the rows are the lanes of vectors."""
    lanes = lanes_of(machine, [n.dtype for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    copies = draft.special(chain.names[0], ("=", str(passes[0].hi), "1"), "one")
    for loop in [loop for loop in passes if loop.name in copies]:
        draft.take("unroll", copies[loop.name], "full")
    *outside, last = [copies[name] for name in chain.names]
    tiles = draft.split(last, lanes)
    draft.take("vectorize", tiles.inner)
    if threads:
        draft.thread(*outside, tiles.outer)


def are_rows(chain: Chain, passes: list[For]) -> bool:
    """Are the loops inside passes over equally many elements, which only the call knows how many are?"""
    return (len({loop.hi for loop in passes}) == 1 and all(isinstance(loop.hi, Var) and loop.lo == Const(0, "i64") for loop in passes)
            and all(len(chain_of(loop).loops) == 1 and chain_of(loop).is_leaf for loop in passes) and not mentions(passes[0].hi, chain.names))


@frozen
class Ahead:
    """The pass that asks for the next row, the arrays of which it reads a row that nothing in the nest writes, and whether it computes much: an
    elementary function of every element."""

    loop: str
    arrays: tuple[str, ...]
    computes: bool


def ahead(program: LoopProgram, chain: Chain, passes: list[For]) -> Ahead | None:
    """What is asked for, where several passes read rows."""
    written = {store.ref.buffer for store in stores_in(chain.body) if isinstance(store.ref, Aref)}
    found = None
    for loop in passes if len(passes) > 1 else []:
        arrays = tuple(dict.fromkeys([ref.buffer for ref in _along(program, chain, loop) if ref.buffer not in written]))
        found = Ahead(loop.name, arrays, any(isinstance(n, Op) and n.fn in FORMS for n in loop.unique())) if arrays else found
    return found


def ask(draft: Draft, chain: Chain, what: Ahead, machine: Machine) -> None:
    """Ask for the next row of the arrays that are read in vectors by now, which only that pass does."""
    if not draft.choice("rows.ahead", int(what.computes or not machine.fetches_ahead)):
        return
    row = draft.loop(chain.names[-1])
    vectors = {n.buffer for n in row.unique() if isinstance(n, Vref)}
    for array in [array for array in what.arrays if array in vectors]:
        draft.tries(("prefetch", row.name, array, 1))


def _along(program: LoopProgram, chain: Chain, loop: For) -> list[Aref]:
    """The accesses of a pass that go along a row of an array."""
    refs = [n for n in loop.walk() if isinstance(n, Aref) and n.buffer in program.buffers and mentions(n, chain.names[-1:])]
    return [ref for ref in refs if contiguous_loop(program, ref, (loop.name,)) is not None]

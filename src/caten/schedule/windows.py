"""The recipe for sums of a few elements each, a window or a short list of terms: the terms are written out, and vectors lie across the results."""
from __future__ import annotations

from functools import partial
from math import prod

from ..core.expr import Const, Expr
from ..loop.affine import canonical
from ..loop.statements import Aref, For
from .across import held, is_gathered
from .analysis.classify import Chain, Reduction, contiguous_loop
from .draft import Draft, NotApplicable
from .streams import contracted, cut, masked

MOST_TERMS = 32                 # of a sum that is written out


def windows(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Vectors of results, each in a register while its terms are added."""
    loop = contiguous_loop(draft.program, total.out, total.kept)
    if loop is None:
        raise NotApplicable(f"{total.out} has no contiguous loop")
    terms = prod([_count(draft.loop(name)) for name in total.summed])
    if not 1 <= terms <= MOST_TERMS:
        raise NotApplicable(f"sums of {terms} terms are not written out")
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    if far := [ref for ref in refs if is_gathered(draft.program, ref, loop)]:
        raise NotApplicable(f"the elements of {far[0]} that '{loop}' steps through are no neighbours")
    rest = [name for name in total.kept if name != loop]
    if (*rest, loop, *total.summed) != chain.names:
        draft.take("reorder", *rest, loop, *total.summed)
    held(draft, total.summed[0], total.out.buffer)
    tiles = cut(draft, loop, lanes)
    if threads and not draft.thread_two(*rest):
        draft.thread(tiles.outer)
    if tiles.tail:
        draft.attempts(partial(masked, loop=tiles.tail, lanes=lanes))
    draft.take("vectorize", tiles.inner)
    contracted(draft, tiles.outer, total.out)
    for name in reversed(total.summed):
        draft.take("unroll", name, "full")


def _count(loop: For) -> int:
    """How often a loop runs, where that is a number; else more often than is written out."""
    extent: Expr = canonical(loop.hi - loop.lo)
    return int(extent.value) if isinstance(extent, Const) else MOST_TERMS + 1

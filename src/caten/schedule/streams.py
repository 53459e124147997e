"""The recipes for nests that memory bounds: one result per element, and sums along and across memory."""
from __future__ import annotations

from ..errors import error
from ..loop.statements import LoopProgram
from .classify import Chain, Reduction, contiguous_loop, stores_in
from .draft import Draft

MAPS_AT_ONCE = 1                # vectors that a map computes one after the other
SUMS_AT_ONCE = 4                # vectors that a sum along memory is spread over, to hide the latency of an addition
COLUMNS_AT_ONCE = 4             # vectors of results that a sum across memory keeps in registers


def maps(draft: Draft, chain: Chain, lanes: int, threads: bool) -> None:
    """Vectors along the loop that is contiguous in what is stored."""
    loop = _contiguous_in_stores(draft.program, chain)
    rest = [name for name in chain.names if name != loop]
    if rest and chain.names[-1] != loop:
        draft.take("reorder", *rest, loop)
    outer, inner, *_ = draft.take("split", loop, lanes * draft.choice("maps.vectors", MAPS_AT_ONCE))
    if threads:
        draft.thread(*rest, outer)
    group, lane = draft.take("split", inner, lanes) if draft.choice("maps.vectors", MAPS_AT_ONCE) > 1 else ("", inner)
    draft.take("vectorize", lane)
    if group:
        draft.take("unroll", group)
    if draft.choice("maps.stream", 0):
        for buffer in dict.fromkeys([store.ref.buffer for store in stores_in(chain.body)]):  # type: ignore[attr-defined]   # stores_in gives Arefs
            draft.tries(("stream", outer, buffer))


def sums_along(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Several vectors of partial sums along the innermost summed loop, added up by a fixed tree at its end."""
    loop = total.summed[-1]
    order = (*total.kept, *total.summed)
    if order != chain.names:
        draft.take("reorder", *order)
    if threads:
        draft.thread(*total.kept)
    outer, inner, *_ = draft.take("split", loop, lanes * draft.choice("sums.vectors", SUMS_AT_ONCE))
    group, lane = draft.take("split", inner, lanes)
    made = draft.take("stage", outer, total.out.buffer, "partial", "register", group, lane)
    for name in (lane, *[n for n in made if n.startswith(f"{lane}_")]):
        draft.take("vectorize", name)
    for name in (group, *[n for n in made if n.startswith(f"{group}_")]):
        draft.take("unroll", name)


def sums_across(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Several vectors of neighbouring results in registers while the summed loops run."""
    loop = contiguous_loop(draft.program, total.out, total.kept)
    if loop is None:
        raise error("E511", f"{total.out} has no contiguous loop")
    rest = tuple([name for name in total.kept if name != loop])
    order = (*rest, loop, *total.summed)
    if order != chain.names:
        draft.take("reorder", *order)
    outer, inner, *_ = draft.take("split", loop, lanes * draft.choice("columns.vectors", COLUMNS_AT_ONCE))
    draft.take("reorder", outer, *total.summed, inner)
    if threads:
        draft.thread(*rest, outer)
    group, lane = draft.take("split", inner, lanes)
    made = draft.take("stage", total.summed[0], total.out.buffer, "accumulate", "register", group, lane)
    for name in (lane, *[n for n in made if n.startswith(f"{lane}_")]):
        draft.take("vectorize", name)
    for name in (group, *[n for n in made if n.startswith(f"{group}_")]):
        draft.take("unroll", name)


def _contiguous_in_stores(program: LoopProgram, chain: Chain) -> str:
    """The loop along which every store goes to neighbouring elements."""
    found = {contiguous_loop(program, store.ref, chain.names) for store in stores_in(chain.body)}  # type: ignore[arg-type]   # stores_in gives Arefs
    if len(found) != 1:
        raise error("E513", "the stores have no contiguous loop in common")
    return found.pop() or chain.names[-1]              # None where an index is a named value, which vectorize sees through

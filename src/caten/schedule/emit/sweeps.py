"""Maps and sums in vectors, as steps."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import DTYPES
from ...core.expr import Const
from ...loop.affine import canonical
from ...loop.effects import reads
from ...loop.statements import Aref
from ..analysis.classify import Chain, Reduction, chain_of, contiguous_loop, reduction, stored
from ..analysis.nests import mentions
from ..draft import Draft
from ..made import Split
from ..plans.maps import AsWritten, Sweep
from ..plans.plan import Given, NotApplicable
from ..plans.sums import STREAMS, ColumnSum, Held, Lanes, RowByRow, SumAcross, SumAlong, Terms
from .vectors import as_vectors, check_indices, contracted, cut, masked, ordered, parts, summed


def swept(draft: Draft, chain: Chain, plan: Sweep, given: Given) -> None:
    """A row in vectors; where the innermost loop adds something up as well, in as many partial sums."""
    loop = chain.names[-1] if plan.sums else _row(draft, chain)
    sums = tuple([place.buffer for place in stored(chain) if plan.sums and not mentions(place, (loop,))])
    rest = [name for name in chain.names if name != loop]
    if rest and chain.names[-1] != loop:
        draft.take("reorder", *rest, loop)
    if plan.sums and given.threads:
        draft.thread_two(*rest)
    if plan.pieces and (pieces := draft.tried(partial(_pieces, loop=loop, count=plan.pieces))) is not None:
        rest, loop = [*rest, pieces.outer], pieces.inner
    outer = sweep(draft, loop, sums, plan.lanes, plan.vectors, given, tuple(rest) if given.threads and not plan.sums else None, plan.tree)
    if plan.stream:
        for buffer in dict.fromkeys([place.buffer for place in stored(chain)]):
            draft.tries(("stream", outer, buffer))
    else:
        _ask(draft, chain, outer, plan)


def _row(draft: Draft, chain: Chain) -> str:
    """The loop along which all stores go to neighbours, or the innermost."""
    found = {contiguous_loop(draft.program, place, chain.names) for place in stored(chain)}
    return (found.pop() if len(found) == 1 else None) or chain.names[-1]


def _pieces(draft: Draft, loop: str, count: int) -> Split:
    """Rows in pieces that threads share."""
    return draft.split(loop, count, "min")


def _ask(draft: Draft, chain: Chain, loop: str, plan: Sweep) -> None:
    """Ask early for what is stored without being read, in every iteration: a line that comes too late is waited for."""
    read = frozenset().union(*[reads(stmt) for stmt in chain.body])
    for place in {p.buffer: p for p in stored(chain)}.values():           # one step asks for all that is stored to an array
        if plan.ahead and place.buffer not in read:
            step = plan.lanes * plan.vectors * DTYPES[place.dtype].bytes
            draft.tries(("prefetch", loop, place.buffer, max(1, plan.ahead // step), "write"))


def as_written(draft: Draft, chain: Chain, plan: AsWritten, given: Given) -> None:
    """Threads share the loops; nothing else is done."""
    row = _row(draft, chain) if plan.rows else ""
    if given.threads:
        draft.thread_two(*[name for name in chain.names if name != row])


def sweep(draft: Draft, loop: str, sums: tuple[str, ...], lanes: int, count: int, given: Given, around: tuple[str, ...] | None = None,
          tree: bool = True) -> str:
    """Vectors along a loop, `count` at once, and what is left of it in vectors with masks; the arrays `sums` are added up in as many
    vectors, which a tree adds up at the end. The name of the new loop, which is parallel where none of those `around` may be (None: no threads)."""
    tiles = cut(draft, loop, lanes * count, lanes)
    outer, inner = tiles.outer, tiles.inner
    if around is not None and not draft.thread_two(*around):
        draft.thread(outer)
    for name in tiles.rest:
        draft.attempts(partial(masked, loop=name, lanes=lanes, given=given))
    group, lane = draft.halves(inner, lanes) if draft.loop(inner).hi != Const(lanes, "i64") else ("", inner)
    as_vectors(draft, group, lane, *[parts(draft, outer, buffer, tuple([n for n in (group, lane) if n]), tree) for buffer in sums])
    return outer


# -- sums along memory ------------------------------------------------------------------------------------------------------------------------------
def summed_along(draft: Draft, chain: Chain, plan: SumAlong, given: Given) -> None:
    """Vectors of partial sums along the innermost summed loop."""
    sums_along(draft, chain, _sum(draft, chain), plan, given)


def sums_along(draft: Draft, chain: Chain, total: Reduction, plan: SumAlong, given: Given) -> None:
    """The same of a sum that is known."""
    ordered(draft, chain, (*total.kept, *total.summed))
    if plan.block and draft.attempts(partial(_long, total=total, plan=plan, given=given)):
        return
    if given.threads:
        draft.thread_two(*total.kept)
    if plan.masked:
        check_indices(draft, total.summed[-1])
        outer, lane = draft.pair(total.summed[-1], plan.lanes, "pad")
        as_vectors(draft, "", lane, draft.stage(outer, total.out.buffer, "partial", "register", lane))
    else:
        outer = sweep(draft, total.summed[-1], (total.out.buffer,), plan.lanes, plan.vectors, given, tree=plan.tree)
    contracted(draft, outer, total.out, given)


def _long(draft: Draft, total: Reduction, plan: SumAlong, given: Given) -> None:
    """One long sum: as far streams of memory, where that pays, and what they leave in blocks."""
    loop = total.summed[0]
    far = draft.tried(partial(_far_parts, loop=loop, total=total, plan=plan, given=given)) if plan.apart else None
    if far is None:
        _in_blocks(draft, loop, total, plan, given)
    for name in far.rest if far is not None else ():               # a few elements of a sum whose length is known are left as they are
        draft.attempts(partial(_in_blocks, loop=name, total=total, plan=plan, given=given))


def _in_blocks(draft: Draft, loop: str, total: Reduction, plan: SumAlong, given: Given) -> None:
    """Blocks of a fixed length, which threads may share without changing a bit, and what is left after the last."""
    blocks = cut(draft, loop, plan.block)
    part = draft.stage(blocks.outer, total.out.buffer, "partial", "scratch", blocks.outer).tile
    draft.take("parallel", blocks.outer)
    for each, buffer in ((blocks.inner, part), *[(name, total.out.buffer) for name in blocks.rest]):
        outer = sweep(draft, each, (buffer,), plan.lanes, plan.vectors, given, tree=plan.tree)
        contracted(draft, outer, total.out, given)


def _far_parts(draft: Draft, loop: str, total: Reduction, plan: SumAlong, given: Given) -> Split:
    """Streams, so many elements apart, are added up together: the blocks of them, and what is left."""
    blocks, stream, each = _streams(draft, loop, total.out, plan.apart)
    each, lane = draft.halves(each, plan.lanes)
    draft.take("reorder", each, stream, lane)
    as_vectors(draft, stream, lane, parts(draft, each, total.out.buffer, (stream, lane), plan.tree))
    contracted(draft, each, total.out, given)
    return blocks


def _streams(draft: Draft, loop: str, out: Aref, apart: int) -> tuple[Split, str, str]:
    """A loop cut into streams, as many of each array that it reads as make STREAMS together: the blocks, the loop over the streams of one, and that
    along one of these."""
    arrays = reads(draft.loop(loop)) - {out.buffer}
    if not 1 <= len(arrays) <= STREAMS // 2:
        raise NotApplicable(f"'{loop}' reads {len(arrays)} arrays")
    count = STREAMS // len(arrays)
    extent = canonical(draft.loop(loop).hi - draft.loop(loop).lo)
    if isinstance(extent, Const) and int(extent.value) < count * apart:
        raise NotApplicable(f"'{loop}' is too short for {count} streams")
    blocks = draft.split(loop, count * apart)
    return blocks, *draft.halves(blocks.inner, apart)


# -- sums across memory -----------------------------------------------------------------------------------------------------------------------------
def summed_across(draft: Draft, chain: Chain, plan: SumAcross, given: Given) -> None:
    """Several rows at once are added to neighbouring results, block by block of these."""
    total = _sum(draft, chain)
    loop, row = _results(draft, total), total.summed[-1]
    rest = tuple([name for name in total.kept if name != loop])
    ordered(draft, chain, (*rest, loop, *total.summed))
    outer, inner = draft.pair(loop, plan.block, "min")
    draft.take("reorder", *total.summed, inner)
    if given.threads:
        draft.thread_two(*rest, outer)
    if plan.apart:
        far = draft.tried(partial(_far_rows, out=total.out, row=row, inner=inner, plan=plan, given=given))
        if far is not None:
            if not far.tail:
                return
            row, inner = far.tail, far.copies[inner]
    rows = cut(draft, row, plan.rows)
    draft.take("reorder", inner, rows.inner)
    for name in rows.copies.values():                     # the last rows, one by one
        draft.attempts(partial(sweep, loop=name, sums=(), lanes=plan.lanes, count=1, given=given))
    _side_by_side(draft, total.out, rows.inner, inner, plan, given)


def _far_rows(draft: Draft, out: Aref, row: str, inner: str, plan: SumAcross, given: Given) -> Split:
    """Streams of rows, so many rows apart, are added together: the blocks of them, and the rows that are left."""
    blocks, stream, each = _streams(draft, row, out, plan.apart)
    draft.take("reorder", each, inner, stream)
    _side_by_side(draft, out, stream, inner, plan, given)
    return blocks


def _side_by_side(draft: Draft, out: Aref, rows: str, inner: str, plan: SumAcross, given: Given) -> None:
    """The rows of the innermost loop are added to vectors of results."""
    columns = cut(draft, inner, plan.lanes * plan.vectors, plan.lanes)
    if columns.tail:
        draft.attempts(partial(_edge_across, out=out, columns=columns.tail, rows=columns.copies[rows], lanes=plan.lanes, given=given))
    draft.take("reorder", rows, columns.inner)
    group, lane = draft.halves(columns.inner, plan.lanes)
    as_vectors(draft, group, lane, draft.stage(rows, out.buffer, "accumulate", "register", group, lane))
    contracted(draft, rows, out, given)
    draft.take("unroll", rows)


def _edge_across(draft: Draft, out: Aref, columns: str, rows: str, lanes: int, given: Given) -> None:
    """The last columns as vectors with masks, in registers while the rows are added."""
    if not given.masks_are_cheap:
        raise NotApplicable(f"the rest of '{columns}' is best left as it is")
    check_indices(draft, columns)
    _, lane = draft.pair(columns, lanes, "pad")
    draft.take("reorder", lane, rows)
    draft.stage(rows, out.buffer, "accumulate", "register")
    draft.take("vectorize", lane)


def column(draft: Draft, chain: Chain, plan: ColumnSum, given: Given) -> None:
    """The only column is left out, and what remains is summed along its rows."""
    loop = _results(draft, _sum(draft, chain))
    others = tuple([name for name in chain.names if name != loop])
    ordered(draft, chain, (*others, loop))
    draft.take("unroll", loop, "full")
    summed_along(draft, chain_of(draft.loop(others[0])), plan.sums, given)


def row_by_row(draft: Draft, chain: Chain, plan: RowByRow, given: Given) -> None:
    """The loop over neighbouring results innermost."""
    total = _sum(draft, chain)
    row = _results(draft, total)
    rest = [name for name in total.kept if name != row]
    draft.take("reorder", *rest, *total.summed, row)
    if given.threads:
        draft.thread(*rest)


# -- sums of a few elements -------------------------------------------------------------------------------------------------------------------------
def held(draft: Draft, chain: Chain, plan: Held, given: Given) -> None:
    """The summed loops innermost, their sum in a register."""
    total = _sum(draft, chain)
    ordered(draft, chain, (*total.kept, *total.summed))
    if total.kept:
        _held(draft, total.summed[0], total.out.buffer)
    if given.threads:
        draft.thread_two(*total.kept)


def lanes(draft: Draft, chain: Chain, plan: Lanes, given: Given) -> None:
    """A sum in every lane."""
    total = _sum(draft, chain)
    ordered(draft, chain, (*total.kept, *total.summed))
    _held(draft, total.summed[0], total.out.buffer)
    lanes_of(draft, total.kept, plan.lanes, given)


def lanes_of(draft: Draft, names: tuple[str, ...], count: int, given: Given) -> None:
    """The iterations of the last of these loops as lanes; threads share the others, or the vectors."""
    *outside, last = names
    tiles = draft.split(last, count)
    draft.take("vectorize", tiles.inner)
    if given.threads:
        draft.thread_two(*outside, tiles.outer)


def terms(draft: Draft, chain: Chain, plan: Terms, given: Given) -> None:
    """Vectors of results, each of which goes through all its terms."""
    total = _sum(draft, chain)
    loop = _results(draft, total)
    rest = tuple([name for name in total.kept if name != loop])
    ordered(draft, chain, (*rest, loop, *total.summed))
    _held(draft, total.summed[0], total.out.buffer)
    tiles = cut(draft, loop, plan.lanes)
    if given.threads and not draft.thread_two(*rest):
        draft.thread(tiles.outer)
    if tiles.tail:
        draft.attempts(partial(masked, loop=tiles.tail, lanes=plan.lanes, given=given))
    draft.take("vectorize", tiles.inner)
    contracted(draft, tiles.outer, total.out, given)
    for name in reversed(total.summed) if plan.unrolled else ():
        draft.take("unroll", name, "full")


def _held(draft: Draft, loop: str, buffer: str) -> None:
    """The element that a loop adds to is held in a register meanwhile: it begins with what is added, where a nest before only sets it to the neutral
    value, which is left out then."""
    summed(draft, loop, buffer, asking=True)


def _sum(draft: Draft, chain: Chain) -> Reduction:
    """What a nest sums. NotApplicable where what a copy knows of its sizes leaves none: a condition that is false in it took it along."""
    total = reduction(chain)
    if total is None:
        raise NotApplicable(f"'{chain.names[0]}' is no sum any more")
    return total


def _results(draft: Draft, total: Reduction) -> str:
    """The loop that steps through neighbouring results."""
    loop = contiguous_loop(draft.program, total.out, total.kept)
    if loop is None:
        raise NotApplicable(f"{total.out} has no contiguous loop")
    return loop

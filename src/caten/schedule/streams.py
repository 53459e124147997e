"""The recipes for nests that memory bounds: one result per element, and sums along and across memory."""
from __future__ import annotations

from functools import partial

from ..core.dtypes import DTYPES, is_float
from ..core.expr import Const, Op, Var, index
from ..core.program import Machine, Target
from ..core.rewrite import free_names
from ..loop.affine import canonical
from ..loop.effects import reads
from ..loop.statements import Aref, Incf, LoopProgram
from .across import computes_much, is_gathered, is_short, row_by_row, short_rows_as_written, short_sums_copied
from .analysis.classify import Chain, Reduction, chain_of, contiguous_loop, reduction, stores_in
from .analysis.nests import mentions, stride_in
from .draft import Draft, NotApplicable
from .made import Split, Staged

AHEAD = 1024                    # bytes between what is stored and the place that is asked for
MAPS_AT_ONCE = 1                # vectors that a map computes one after the other
SUMS_AT_ONCE = 4                # vectors that a sum along memory is spread over, to hide the latency of an addition
BLOCK = 65536                   # of a long sum without kept loops: what one thread adds up at a time
COLUMNS_AT_ONCE = 2             # vectors of results that a sum across memory keeps in registers
STREAMS = 4                     # of memory that are far apart, and summed together: of one array four, of two two each
FAR = 1 << 18                   # elements between two of them along memory
FAR_ROWS = 64                   # rows between two of them across memory
ROWS_AT_ONCE = 8                # of what is summed across memory: streams that are read side by side
STRAIGHT = ("add", "sub", "mul", "neg")         # operators of an index
LONG_VECTOR = 32                # bytes of vectors whose lanes have masks of their own
SHORTER = 4                     # times, blocks where there would be one
ROW_PIECE = 4096                # elements of a row that one thread computes at a time
BLOCK_BYTES = 8192              # of the results that one thread sums across memory, which stay in its first cache


def maps(draft: Draft, chain: Chain, lanes: int, threads: bool) -> None:
    """Vectors along the loop that is contiguous in what is stored."""
    loop = _contiguous_in_stores(draft.program, chain)
    _check_gathers(draft.program, chain, loop)
    rest = [name for name in chain.names if name != loop]
    if rest and not computes_much(chain.body):
        draft.attempts(partial(short_rows_as_written, chain=chain, row=loop, lanes=lanes, threads=threads))
    if rest and chain.names[-1] != loop:
        draft.take("reorder", *rest, loop)
    if len(rest) == 1 and threads and _has_threads(draft):     # rows may be few, or one
        draft.attempts(partial(_short_rows, chain=chain, row=rest[0], loop=loop, lanes=lanes))
        if (pieces := draft.tried(partial(_pieces, loop=loop))) is not None:
            rest, loop = [*rest, pieces.outer], pieces.inner
    _map(draft, chain, rest, loop, lanes, threads)


def _check_gathers(program: LoopProgram, chain: Chain, loop: str) -> None:
    """Elements that lie apart are gathered one by one, which pays where much is computed from them. C compilers read a few short streams side by
    side. What lies two, three or four elements apart in a row is read as a longer vector."""
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    far = [ref for ref in refs if is_gathered(program, ref, loop) and not (stride_in(ref.index[-1], loop) and DTYPES[ref.dtype].bytes >= 4)]
    if far and not computes_much(chain.body):
        raise NotApplicable(f"the elements of {far[0]} that '{loop}' steps through are no neighbours")


def _map(draft: Draft, chain: Chain, rest: list[str], loop: str, lanes: int, threads: bool) -> None:
    count = draft.choice("maps.vectors", MAPS_AT_ONCE)
    outer = sweep(draft, loop, (), lanes, count, tuple(rest) if threads else None)
    if draft.choice("maps.stream", 0):
        for buffer in dict.fromkeys([place.buffer for place in _stored(chain)]):
            draft.tries(("stream", outer, buffer))
    else:
        _ask(draft, chain, outer, lanes * count)


def _pieces(draft: Draft, loop: str) -> Split:
    """Rows in pieces that threads share."""
    return draft.split(loop, ROW_PIECE, "min")


def _short_rows(draft: Draft, chain: Chain, row: str, loop: str, lanes: int) -> None:
    """A copy of the nest for rows of one piece: asking for the pieces of each would cost more than a short row."""
    copies = draft.special_nest((row, loop), ("<=", str(draft.loop(loop).hi), str(ROW_PIECE)), "s")
    _map(draft, chain_of(draft.loop(copies[row])), [copies[row]], copies[loop], lanes, threads=True)


def _machine(program: LoopProgram) -> Machine | None:
    """The machine that is scheduled for, where the program says it."""
    target = program.first(Target)
    return None if target is None else target.machine


def _has_threads(draft: Draft) -> bool:
    """Do threads run?"""
    machine = _machine(draft.program)
    return machine is not None and machine.threads


def sums_along(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool, at_once: int = SUMS_AT_ONCE, masks: bool = True) -> None:
    """Vectors of partial sums along the innermost summed loop, `at_once` by default, added up by a fixed tree at its end. `masks`: the rest is
    vectors with masks."""
    order = (*total.kept, *total.summed)
    if order != chain.names:
        draft.take("reorder", *order)
    if threads and not total.kept and len(total.summed) == 1 and draft.attempts(partial(_long, total=total, lanes=lanes)):
        return
    if threads:
        draft.thread_two(*total.kept)
    outer = sweep(draft, total.summed[-1], (total.out.buffer,), lanes, draft.choice("sums.vectors", at_once), masks=masks)
    contracted(draft, outer, total.out)


def sums_of_rows(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Sums along memory, and a copy of the nest for short rows, whose vectors lie across the rows."""
    draft.attempts(partial(short_sums_copied, chain=chain, total=total, lanes=lanes, threads=threads))
    sums_along(draft, chain, total, lanes, threads)


def _long(draft: Draft, total: Reduction, lanes: int) -> None:
    """One long sum: as far streams of memory, where that pays, and what they leave in blocks."""
    loop, apart = total.summed[0], draft.choice("sums.apart", FAR if _streams_pay(draft) else 0)
    parts = draft.tried(partial(_far_parts, loop=loop, total=total, lanes=lanes, apart=apart)) if apart else None
    if parts is None:
        _in_blocks(draft, loop, total, lanes)
    for name in parts.rest if parts is not None else ():           # a few elements of a sum whose length is known are left as they are
        draft.attempts(partial(_in_blocks, loop=name, total=total, lanes=lanes))


def _in_blocks(draft: Draft, loop: str, total: Reduction, lanes: int) -> None:
    """Blocks of a fixed length, which threads may share without changing a bit, and what is left after the last."""
    blocks = cut(draft, loop, draft.choice("sums.block", BLOCK))
    part = draft.stage(blocks.outer, total.out.buffer, "partial", "scratch", blocks.outer).tile
    draft.take("parallel", blocks.outer)
    for loop, buffer in ((blocks.inner, part), *[(name, total.out.buffer) for name in blocks.rest]):
        outer = sweep(draft, loop, (buffer,), lanes, draft.choice("sums.vectors", SUMS_AT_ONCE))
        contracted(draft, outer, total.out)


def _far_parts(draft: Draft, loop: str, total: Reduction, lanes: int, apart: int) -> Split:
    """Streams, so many elements apart, are added up together: the blocks of them, and what is left."""
    blocks, stream, each = _streams(draft, loop, total.out, apart)
    each, lane = draft.halves(each, lanes)
    draft.take("reorder", each, stream, lane)
    _as_vectors(draft, stream, lane, _parts(draft, each, total.out.buffer, (stream, lane)))
    contracted(draft, each, total.out)
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


def maps_with_sums(draft: Draft, chain: Chain, lanes: int, threads: bool) -> None:
    """Vectors along a loop that stores a result in every iteration, and adds something up on the way."""
    loop, count = chain.names[-1], draft.choice("sums.vectors", SUMS_AT_ONCE)
    sums = [place.buffer for place in _stored(chain) if not mentions(place, (loop,))]
    if not sums or len(set(sums)) < len(sums):
        raise NotApplicable(f"'{loop}' does not add something to single places, once to each")
    if threads:
        draft.thread_two(*chain.names[:-1])
    _ask(draft, chain, sweep(draft, loop, tuple(sums), lanes, count), lanes * count)


def _stored(chain: Chain) -> list[Aref]:
    """The places that are stored to."""
    return [store.ref for store in stores_in(chain.body) if isinstance(store.ref, Aref)]


def _ask(draft: Draft, chain: Chain, loop: str, count: int) -> None:
    """Ask early for what is stored without being read, `count` elements in every iteration: a line that comes too late is waited for."""
    machine = _machine(draft.program)
    distance = draft.choice("maps.ahead", 0 if machine is not None and machine.fetches_ahead else AHEAD)
    read = frozenset().union(*[reads(stmt) for stmt in chain.body])
    for place in {p.buffer: p for p in _stored(chain)}.values():           # one step asks for all that is stored to an array
        if distance and place.buffer not in read:
            draft.tries(("prefetch", loop, place.buffer, max(1, distance // (count * DTYPES[place.dtype].bytes)), "write"))


def sums_across(draft: Draft, chain: Chain, total: Reduction, lanes: int, threads: bool) -> None:
    """Several rows at once are added to neighbouring results, block by block of these."""
    loop = contiguous_loop(draft.program, total.out, total.kept)
    if loop is None:
        raise NotApplicable(f"{total.out} has no contiguous loop")
    if is_short(draft.loop(loop), lanes):
        row_by_row(draft, total, loop, threads)
        return
    counted, block = draft.loop(loop), draft.choice("columns.block", _block_bytes(draft)) // DTYPES[total.out.dtype].bytes
    if isinstance(counted.hi, Var) and counted.lo == index(0):
        draft.attempts(partial(_one_column, chain=chain, loop=loop, total=total, lanes=lanes, threads=threads))
        if threads and total.kept == (loop,) and _has_threads(draft):
            draft.attempts(partial(_one_block, chain=chain, loop=loop, lanes=lanes, block=block))
    _across(draft, chain, total, loop, lanes, block, threads)


def _streams_pay(draft: Draft) -> bool:
    """Does memory give more to several streams, each long and far from the others? Cores that fetch ahead by themselves do so for each of them, and
    several threads are several streams already."""
    machine = _machine(draft.program)
    return machine is not None and machine.fetches_ahead and not machine.threads


def _block_bytes(draft: Draft) -> int:
    """Bytes of the results that are summed across memory at a time: threads share blocks, and pieces of rows are short streams."""
    machine = _machine(draft.program)
    return machine.cache_bytes[0] if machine is not None and _streams_pay(draft) else BLOCK_BYTES


def _one_block(draft: Draft, chain: Chain, loop: str, lanes: int, block: int) -> None:
    """A copy of the nest for so few columns that one thread would sum them all: shorter blocks, which cost a little where memory is read past the
    caches."""
    copies = draft.special_nest(chain.names, ("<=", str(draft.loop(loop).hi), str(block)), "s")
    own = chain_of(draft.loop(copies[chain.names[0]]))
    total = _still_a_sum(own)
    _across(draft, own, total, copies[loop], lanes, max(block // SHORTER, lanes), threads=True)


def _across(draft: Draft, chain: Chain, total: Reduction, loop: str, lanes: int, block: int, threads: bool) -> None:
    rest, row = tuple([name for name in total.kept if name != loop]), total.summed[-1]
    order = (*rest, loop, *total.summed)
    if order != chain.names:
        draft.take("reorder", *order)
    outer, inner = draft.pair(loop, block, "min")
    draft.take("reorder", *total.summed, inner)
    if threads:
        draft.thread(*rest, outer)
    apart = draft.choice("columns.apart", FAR_ROWS if _streams_pay(draft) else 0)
    if apart:
        far = draft.tried(partial(_far_rows, out=total.out, row=row, inner=inner, lanes=lanes, apart=apart))
        if far is not None:
            if not far.tail:
                return
            row, inner = far.tail, far.copies[inner]
    rows = cut(draft, row, draft.choice("columns.rows", ROWS_AT_ONCE))
    draft.take("reorder", inner, rows.inner)
    for name in rows.copies.values():                     # the last rows, one by one
        draft.attempts(partial(sweep, loop=name, sums=(), lanes=lanes, count=1))
    _side_by_side(draft, total.out, rows.inner, inner, lanes)


def _far_rows(draft: Draft, out: Aref, row: str, inner: str, lanes: int, apart: int) -> Split:
    """Streams of rows, so many rows apart, are added together: the blocks of them, and the rows that are left."""
    blocks, stream, each = _streams(draft, row, out, apart)
    draft.take("reorder", each, inner, stream)
    _side_by_side(draft, out, stream, inner, lanes)
    return blocks


def _side_by_side(draft: Draft, out: Aref, rows: str, inner: str, lanes: int) -> None:
    """The rows of the innermost loop are added to vectors of results."""
    columns = cut(draft, inner, lanes * draft.choice("columns.vectors", COLUMNS_AT_ONCE), lanes)
    if columns.tail:
        draft.attempts(partial(_edge_across, out=out, columns=columns.tail, rows=columns.copies[rows], lanes=lanes))
    draft.take("reorder", rows, columns.inner)
    group, lane = draft.halves(columns.inner, lanes)
    _as_vectors(draft, group, lane, draft.stage(rows, out.buffer, "accumulate", "register", group, lane))
    contracted(draft, rows, out)
    draft.take("unroll", rows)


def _one_column(draft: Draft, chain: Chain, loop: str, total: Reduction, lanes: int, threads: bool) -> None:
    """A copy of the nest for one column, which is summed like a row."""
    copies = draft.special_nest(chain.names, ("=", str(draft.loop(loop).hi), "1"))
    others = [name for old, name in copies.items() if old != loop]
    if tuple(copies.values()) != (*others, copies[loop]):
        draft.take("reorder", *others, copies[loop])
    draft.take("unroll", copies[loop], "full")
    column = chain_of(draft.loop(others[0]))
    sums_along(draft, column, _still_a_sum(column), lanes, threads)


def _still_a_sum(chain: Chain) -> Reduction:
    """The sum that a copy of a sum is. NotApplicable where what the copy knows of its sizes leaves none: a condition that is false in it took it
    along."""
    total = reduction(chain)
    if total is None:
        raise NotApplicable(f"'{chain.names[0]}' is no sum any more")
    return total


def _edge_across(draft: Draft, out: Aref, columns: str, rows: str, lanes: int) -> None:
    """The last columns as vectors with masks, in registers while the rows are added."""
    if not masks_are_cheap(draft.program):
        raise NotApplicable(f"the rest of '{columns}' is best left as it is")
    _check_indices(draft, columns)
    _, lane = draft.pair(columns, lanes, "pad")
    draft.take("reorder", lane, rows)
    draft.stage(rows, out.buffer, "accumulate", "register")
    draft.take("vectorize", lane)


def sweep(draft: Draft, loop: str, sums: tuple[str, ...], lanes: int, count: int, around: tuple[str, ...] | None = None, masks: bool = True) -> str:
    """Vectors along a loop, `count` at once, and what is left of it in vectors with masks or single ones; the arrays `sums` are added up in as many
    vectors, which a tree adds up at the end. The name of the new loop, which is parallel where none of those `around` may be (None: no threads)."""
    tiles = cut(draft, loop, lanes * count, lanes)
    outer, inner = tiles.outer, tiles.inner
    if around is not None and not draft.thread_two(*around):
        draft.thread(outer)
    for name in tiles.rest:
        draft.attempts(partial(masked if masks else _single, loop=name, lanes=lanes))
    group, lane = draft.halves(inner, lanes) if draft.loop(inner).hi != index(lanes) else ("", inner)
    _as_vectors(draft, group, lane, *[_parts(draft, outer, buffer, tuple([n for n in (group, lane) if n])) for buffer in sums])
    return outer


def _parts(draft: Draft, outer: str, buffer: str, loops: tuple[str, ...]) -> Staged:
    """Partial sums, added up as a tree where no condition says which of them exist."""
    tree = draft.tried(partial(_tree, outer=outer, buffer=buffer, loops=loops)) if draft.choice("sums.tree", 1) else None
    return tree or draft.stage(outer, buffer, "partial", "register", *loops)


def _tree(draft: Draft, outer: str, buffer: str, loops: tuple[str, ...]) -> Staged:
    """Partial sums that are added up as a tree."""
    return draft.stage(outer, buffer, "tree", "register", *loops)


def _as_vectors(draft: Draft, group: str, lane: str, *tiles: Staged) -> None:
    """The loop over the lanes as vectors and that over the vectors unrolled, and those over the cells of tiles like those that they stand for."""
    for name in (lane, *[name for tile in tiles for name in tile.over(lane)]):
        draft.take("vectorize", name)
    if group:
        draft.take("unroll", group)
    for name, does in {nest.loops[group]: nest.does for tile in tiles for nest in tile.nests if group in nest.loops}.items():
        draft.take("unroll", name, *(["full"] if does == "halve" else []))


def masked(draft: Draft, loop: str, lanes: int) -> None:
    """Vectors of which only some lanes count, in the place of single iterations."""
    if not masks_are_cheap(draft.program):
        raise NotApplicable(f"the rest '{loop}' is best left as it is")
    _check_indices(draft, loop)
    _, lane = draft.pair(loop, lanes, "pad")
    draft.take("vectorize", lane)


def _single(draft: Draft, loop: str, lanes: int) -> None:
    """Single vectors in the place of single iterations, of which less than a vector is left."""
    draft.take("vectorize", cut(draft, loop, lanes).inner)


def _check_indices(draft: Draft, loop: str) -> None:
    """Only sums of products, of sizes in whatever form, are shown to be inside where lanes are left out."""
    sizes = set(draft.program.sizes)
    for ref in draft.loop(loop).unique():
        others = [n for i in ref.index for n in i.walk() if isinstance(n, Op) and n.fn not in STRAIGHT] if isinstance(ref, Aref) else []
        if any(not set(free_names(n)) <= sizes for n in others):
            raise NotApplicable(f"the index of {ref} is no sum of products")


def contracted(draft: Draft, loop: str, out: Aref) -> None:
    """Multiply-adds where the machine has them and products are summed."""
    machine = _machine(draft.program)
    if machine is not None and machine.has_fma and is_float(out.dtype) and any(
            isinstance(n, Incf) and n.fn == "add" and isinstance(n.value, Op) and n.value.fn == "mul" for n in draft.loop(loop).walk()):
        draft.take("contract", loop)


def cut(draft: Draft, loop: str, factor: int, lanes: int = 1) -> Split:
    """A loop in whole tiles of `factor` iterations, fewer where there are never so many, and what is left. A tile is whole vectors of `lanes`, as
    long as it is longer than one."""
    extent = canonical(draft.loop(loop).hi - draft.loop(loop).lo)
    while isinstance(extent, Const) and factor > max(1, int(extent.value)):
        factor //= 2
        factor -= factor % lanes if factor > lanes else 0
    return draft.split(loop, factor)


def masks_are_cheap(program: LoopProgram) -> bool:
    """Does an instruction read or write some lanes of a vector? Short vectors leave so little that single iterations do as well."""
    machine = _machine(program)
    return machine is not None and machine.vector_bytes >= LONG_VECTOR


def _contiguous_in_stores(program: LoopProgram, chain: Chain) -> str:
    """The loop along which every store goes to neighbouring elements."""
    found = {contiguous_loop(program, place, chain.names) for place in _stored(chain)}
    if len(found) != 1:
        raise NotApplicable("the stores have no contiguous loop in common")
    return found.pop() or chain.names[-1]              # None where an index is a named value, which vectorize sees through

"""The recipes for small products, where packing would cost more than it gains: tiles of the result in registers, from the operands where they lie.
Each is a copy of the nest for the sizes that it is for."""
from __future__ import annotations

from functools import partial

from ..core.dtypes import DTYPES, is_float
from ..core.expr import Const, Var
from ..core.program import Machine
from .analysis.classify import Chain, Contraction, contiguous_loop, runs
from .draft import Draft, NotApplicable
from .gemm import summed
from .narrow import FEW_PRODUCTS, batch_size
from .streams import masks_are_cheap
from .tiles import gemm_tile

BETWEEN = 3                     # rows of a tile for what is left of the taller ones: a vector of sums alone would be waited for
ONCE = 24                       # rows up to which the right operand is read so few times that it may lie in the last cache of a core
LONG = 48                       # sums from which on it pays that the right operand need not be turned
VECTORS = 2                     # of a row of a tile
ALONE = 4                       # of a single row: fewer sums would wait for each other
FEW_ROWS = 32                   # of a product whose right operand fits the cache: work for one thread


def small(draft: Draft, c: Contraction, chain: Chain, machine: Machine, lanes: int, threads: bool) -> None:
    """Copies for products whose right operand fits the first cache, or nearly, and for few rows of one that fits the last: for all such sizes, or,
    where vectors have no masks and of many products, one where tiles divide the result."""
    loops = {loop.name: loop for loop in chain.loops}
    i, j, k = loops[c.rows[-1]], loops[c.columns[-1]], loops[c.sums[-1]]
    plain = all(loop.lo == Const(0, "i64") and isinstance(loop.hi, Var) for loop in (i, j, k))
    if len(c.rows) + len(c.columns) + len(c.sums) > 3 or not plain or not is_float(c.out.dtype) or not machine.has_fma:
        return
    if not c.batch and masks_are_cheap(draft.program) and contiguous_loop(draft.program, c.left, (*c.rows, *c.sums)) == i.name:
        _turned(draft, c, chain, machine, lanes, threads)
    lies = contiguous_loop(draft.program, c.right, (*c.columns, *c.sums)) == j.name
    if not lies and c.batch:
        return
    rows = 1 << gemm_tile(machine, c.out.dtype).rows.bit_length() - 1                         # sizes are multiples of powers of two more often
    fits: tuple[object, ...] = ("<=", ("*", str(k.hi), str(j.hi)), str(2 * machine.cache_bytes[0] // DTYPES[c.out.dtype].bytes))
    count = batch_size(c, chain)
    if not c.batch and masks_are_cheap(draft.program):
        held = ("<=", ("*", str(k.hi), str(j.hi)), str(machine.cache_bytes[-1] // 2 // DTYPES[c.out.dtype].bytes))
        cond = ("or", fits, ("and", ("<=", str(i.hi), str(ONCE)), held)) if lies else fits
        draft.attempts(partial(_ragged, c=c, chain=chain, cond=cond, rows=(rows, BETWEEN), lies=lies, lanes=lanes, threads=threads))
        return
    if not lies:
        return
    whole = ("and", ("=", ("mod", str(j.hi), str(VECTORS * lanes)), "0"), ("=", ("mod", str(i.hi), str(rows)), "0"))
    draft.attempts(partial(_unpacked, c=c, chain=chain, cond=("and", fits, whole), rows=rows, lanes=lanes, threads=threads))
    if count is not None and masks_are_cheap(draft.program):
        if machine.threads:                                               # which share each of few products, where that pays
            fits = ("and", fits, ("or", ("<=", str(FEW_PRODUCTS), count), ("<=", str(i.hi), str(FEW_ROWS))))
        draft.attempts(partial(_ragged, c=c, chain=chain, cond=fits, rows=(rows,), lies=True, lanes=lanes, threads=threads))


def _turned(draft: Draft, c: Contraction, chain: Chain, machine: Machine, lanes: int, threads: bool) -> None:
    """A copy for few columns of a product whose left operand lies along the rows: these are the lanes, and what is stored lies apart."""
    m, n, k = [str(loop.hi) for name in (c.rows[-1], c.columns[-1], c.sums[-1]) for loop in chain.loops if loop.name == name]
    rows = 1 << gemm_tile(machine, c.out.dtype).rows.bit_length() - 1
    cond: tuple[object, ...] = ("<=", n, str(rows))
    if contiguous_loop(draft.program, c.right, (*c.columns, *c.sums)) != c.columns[-1]:
        held = ("<=", ("*", k, m), str(machine.cache_bytes[-1] // 2 // DTYPES[c.out.dtype].bytes))
        cond = ("or", cond, ("and", ("and", ("<=", n, str(ONCE)), ("<=", str(LONG), k)), held))
    draft.attempts(partial(_ragged, c=c.turned, chain=chain, cond=cond, rows=(rows, BETWEEN), lies=True, lanes=lanes, threads=threads, ending="t"))


def _unpacked(draft: Draft, c: Contraction, chain: Chain, cond: tuple[object, ...], rows: int, lanes: int, threads: bool) -> None:
    """Whole tiles."""
    copies = draft.special_nest(chain.names, cond, "d")
    batch = tuple([copies[name] for name in c.batch])
    i, j, k = copies[c.rows[-1]], copies[c.columns[-1]], copies[c.sums[-1]]
    with draft.focused(next(iter(copies.values()))):
        if tuple(copies.values()) != (*batch, i, j, k):
            draft.take("reorder", *batch, i, j, k)
        tiles = draft.split(i, rows)
        draft.take("reorder", j, k, tiles.inner)
        if threads:
            draft.thread_two(*batch, tiles.outer)
        _tile(draft, c, (tiles.inner,), draft.split(j, VECTORS * lanes).inner, k, lanes)


def _ragged(draft: Draft, c: Contraction, chain: Chain, cond: tuple[object, ...], rows: tuple[int, ...], lies: bool, lanes: int,
            threads: bool, ending: str = "e") -> None:
    """Tiles of so many rows, what is left of them in those of the next number, and the last one by one. `lies`: does the right operand lie along the
    columns? If not, it is turned first."""
    copies = draft.special_nest(chain.names, runs(chain, (c.rows[-1], c.sums[-1]), cond), ending)
    batch = tuple([copies[name] for name in c.batch])
    i, j, k = copies[c.rows[-1]], copies[c.columns[-1]], copies[c.sums[-1]]
    with draft.focused(next(iter(copies.values()))):
        if tuple(copies.values()) != (*batch, i, j, k):
            draft.take("reorder", *batch, i, j, k)
        if not lies:
            draft.stage(i, c.right.buffer, "read", "scratch", k, j)
        for n, count in enumerate(rows):
            tiles = draft.split(i, count)
            if not tiles.tail:
                raise NotApplicable(f"no rows are left of the tiles of '{tiles.outer}'")
            draft.take("reorder", j, k, tiles.inner)
            if threads and n == 0:
                draft.thread_two(*batch, tiles.outer)
            _columns(draft, c, (tiles.inner,), j, k, lanes)
            i, j, k = tiles.tail, tiles.copies[j], tiles.copies[k]
        _columns(draft, c, (), j, k, lanes)


def _columns(draft: Draft, c: Contraction, rows: tuple[str, ...], j: str, k: str, lanes: int) -> None:
    """All columns of a tile's rows, or of one row: whole tiles, and what is left in vectors with masks."""
    tiles = draft.split(j, (VECTORS if rows else ALONE) * lanes)
    if not tiles.tail:
        raise NotApplicable(f"no columns are left of the tiles of '{tiles.outer}'")
    _tile(draft, c, rows, tiles.inner, k, lanes)
    _, lane = draft.pair(tiles.tail, lanes, "pad")
    _tile(draft, c, tuple([tiles.copies[row] for row in rows]), lane, tiles.copies[k], lanes)


def _tile(draft: Draft, c: Contraction, rows: tuple[str, ...], j: str, k: str, lanes: int) -> None:
    """A tile of the result in registers, of as many columns as `j` counts."""
    draft.take("reorder", k, *rows, j)
    made = summed(draft, k, c.out.buffer, *rows, j, how="accumulate")
    _lanes(draft, j, lanes)
    for name in made.over(j):
        if not draft.attempts(partial(_lanes, name=name, lanes=lanes)):             # what is stored may lie apart
            draft.take("unroll", name)
    draft.take("contract", k)
    for row in rows:
        for name in (row, *made.over(row)):
            draft.take("unroll", name)


def _lanes(draft: Draft, name: str, lanes: int) -> None:
    """A loop over the columns of a tile as vectors."""
    if draft.loop(name).hi == Const(lanes, "i64"):
        draft.take("vectorize", name)
        return
    group, lane = draft.halves(name, lanes)
    draft.take("vectorize", lane)
    draft.take("unroll", group)

"""The recipe for products of few columns: every element of the result a dot product, whose lanes lie along the sum.

A tile of a few rows and columns is summed in registers, a vector for each of its elements, so that what is loaded is used several times; the lanes
of each are added up at the end. Both operands are read along the sum: the right one, where it does not lie like that, is turned first, which is
little, as it has few columns. A tile of the result itself (`gemm`) would leave most of its vectors empty.
"""
from __future__ import annotations

from typing import Any

from ..core.dtypes import is_float
from ..core.expr import Const, Var
from ..core.program import Machine
from .analysis.classify import Chain, Contraction, along_memory, chain_of, contiguous_loop, reduction, runs
from .draft import Draft, NotApplicable
from .streams import masks_are_cheap, sums_along

SUMS_AT_ONCE = 2                # vectors of a row that is summed alone; the next row hides what latency is left
COLUMNS = 4                     # of a tile; what is left of them in twos, then one by one
FEW = 40                        # columns up to which dot products pay, where as much is summed as
LONG = 192
FEWER = 16                      # and so many, where as much is summed as
MEDIUM = 48
FEWEST = 3                      # of so few, most of any vector of the result would be empty
FEW_ROWS = 16                   # up to which they pay where the right operand lies along the sum, however many columns it has
ROWS = 24                       # fewer do not pay for turning the right operand


def one_column(draft: Draft, c: Contraction, chain: Chain, lanes: int, threads: bool) -> None:
    """A copy of the nest for one column: without its axis, what is left are sums of rows, each read in one go."""
    columns = next(loop for loop in chain.loops if loop.name == c.columns[-1])
    if not isinstance(columns.hi, Var) or columns.lo != Const(0, "i64") or contiguous_loop(draft.program, c.left, chain.names) != c.sums[-1]:
        raise NotApplicable("there is no column that may be alone, or its rows do not lie along the sum")
    copies = draft.special_nest(chain.names, runs(chain, (c.rows[-1], c.sums[-1]), ("=", str(columns.hi), "1")))
    i, j, k = copies[c.rows[-1]], copies[c.columns[-1]], copies[c.sums[-1]]
    with draft.focused(next(iter(copies.values()))):
        if tuple(copies.values()) != (i, k, j):
            draft.take("reorder", i, k, j)
        draft.take("unroll", j, "full")
        draft.stage(i, c.right.buffer, "read", "scratch", k)
        inner = chain_of(draft.loop(i))
        total = reduction(inner)
        if total is None or not along_memory(draft.program, inner, total):
            raise NotApplicable(f"'{i}' does not sum along memory")
        sums_along(draft, inner, total, lanes, threads, SUMS_AT_ONCE, masks=False)


def dot_products(draft: Draft, c: Contraction, chain: Chain, machine: Machine, lanes: int, threads: bool) -> None:
    """A copy of the nest for calls with few columns, scheduled."""
    loops = {loop.name: loop for loop in chain.loops}
    rows, columns, summed = loops[c.rows[-1]], loops[c.columns[-1]], loops[c.sums[-1]]
    if not all(loop.lo == Const(0, "i64") and isinstance(loop.hi, Var) for loop in (columns, summed)):
        raise NotApplicable("the ends of the columns and of the sum are no sizes")
    if contiguous_loop(draft.program, c.left, chain.names) != summed.name:
        raise NotApplicable(f"{c.left} does not lie along the sum")
    n, depth = str(columns.hi), str(summed.hi)
    few = draft.choice("dots.columns", FEW)
    reach: Any = ("or", ("and", ("<=", n, str(min(few, FEWER))), ("<=", str(MEDIUM), depth)), ("and", ("<=", n, str(few)), ("<=", str(LONG), depth)))
    lies = contiguous_loop(draft.program, c.right, chain.names) == summed.name
    if isinstance(rows.hi, Var):
        m = str(rows.hi)
        reach = ("or", ("and", ("<=", m, str(FEW_ROWS)), ("<=", str(MEDIUM), depth)), reach) if lies else ("and", ("<=", str(ROWS), m), reach)
    cond = ("or", ("<=", n, str(FEWEST)), reach)
    copies = draft.special_nest(chain.names, runs(chain, (rows.name, summed.name), cond), "c")
    i, j, k = copies[c.rows[-1]], copies[c.columns[-1]], copies[c.sums[-1]]
    with draft.focused(i):
        _tiled(draft, c, (i, j, k), tuple(copies.values()), lies, machine, lanes, threads)


def _tiled(draft: Draft, c: Contraction, loops: tuple[str, str, str], before: tuple[str, ...], lies: bool, machine: Machine, lanes: int,
           threads: bool) -> None:
    """The nest in tiles of rows and columns. `before`: the order of its loops until now; `lies`: does the right operand lie along the sum?"""
    i, j, k = loops
    if before != loops:
        draft.take("reorder", i, j, k)
    if not lies:
        draft.stage(i, c.right.buffer, "read", "scratch", j, k)
    rows = draft.split(i, draft.choice("dots.rows", 6 if machine.registers >= 32 else 2))
    if threads:
        draft.thread(rows.outer)
    draft.take("reorder", j, rows.inner)
    _columns(draft, c, (rows.inner,), j, k, machine, lanes)
    if rows.tail:
        _columns(draft, c, (), rows.copies[j], rows.copies[k], machine, lanes)


def _columns(draft: Draft, c: Contraction, rows: tuple[str, ...], j: str, k: str, machine: Machine, lanes: int) -> None:
    """All columns of a tile's rows, or of a single one."""
    for count in (COLUMNS, COLUMNS // 2):
        made = draft.split(j, count)
        draft.take("reorder", k, *rows, made.inner)
        _sums(draft, c, (*rows, made.inner), k, machine, lanes)
        if not made.tail:
            return
        j, k, rows = made.tail, made.copies[k], tuple([made.copies[name] for name in rows])
    if rows:
        draft.take("reorder", k, *rows)
    _sums(draft, c, rows, k, machine, lanes)


def _sums(draft: Draft, c: Contraction, cells: tuple[str, ...], k: str, machine: Machine, lanes: int) -> None:
    """The sums of a tile, a vector for each."""
    made = draft.split(k, lanes)
    tile = draft.stage(made.outer, c.out.buffer, "partial", "register", *cells, made.inner)
    for lane in (made.inner, *tile.over(made.inner)):
        draft.take("vectorize", lane)
    for cell in cells:
        for loop in (cell, *tile.over(cell)):
            draft.take("unroll", loop)
    if machine.has_fma and is_float(c.out.dtype):
        draft.take("contract", made.outer)
    if made.tail and masks_are_cheap(draft.program):
        _, lane = draft.pair(made.tail, lanes, "pad")
        draft.take("vectorize", lane)
        for cell in cells:
            draft.take("unroll", made.copies[cell])

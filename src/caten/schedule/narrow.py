"""The recipes for products that are narrow: a few rows, or no sum, where an operand or the result is swept through once; and few of them. Which one a
call is, only its sizes tell: each gets a copy of the nest."""
from __future__ import annotations

from functools import partial
from typing import Any

from ..core.dtypes import DTYPES, is_float
from ..core.expr import Const, Var
from ..core.program import Machine
from .analysis.classify import Chain, Contraction, chain_of, contiguous_loop, contraction
from .draft import Draft, NotApplicable
from .gemm import gemm

FEW_PRODUCTS = 4                # of a batch, from which on each thread has its own
FEW = 3                         # rows from which on packing the right operand pays
ROWS_AT_ONCE = 8                # of the right operand: streams that are read side by side
BLOCK = 512                     # columns that one thread of several sweeps; one alone takes as many as the first cache holds
VECTORS = 2                     # of the result, in registers while the rows are added


def narrow(draft: Draft, c: Contraction, chain: Chain, machine: Machine, lanes: int, threads: bool) -> None:
    """A copy of the nest for few rows, scheduled; the nest itself is left for the others."""
    loops = {loop.name: loop for loop in chain.loops}
    if c.batch or len(c.rows) + len(c.columns) + len(c.sums) > 3 or contiguous_loop(draft.program, c.right, (*c.columns, *c.sums)) != c.columns[-1]:
        return
    rows = loops[c.rows[-1]]
    if isinstance(rows.hi, Var) and rows.lo == Const(0, "i64"):
        summed_over = loops[c.sums[-1]]
        depth = str(summed_over.hi) if isinstance(summed_over.hi, Var) and summed_over.lo == Const(0, "i64") else None
        draft.attempts(partial(few_rows, c=c, chain=chain, size=str(rows.hi), depth=depth, machine=machine, lanes=lanes, threads=threads))


def few(draft: Draft, c: Contraction, chain: Chain, machine: Machine) -> None:
    """A copy of a nest of many products for so few that threads had better share each of them."""
    count = batch_size(c, chain)
    if count is not None:
        draft.attempts(partial(_shared, cond=("<", count, str(FEW_PRODUCTS)), chain=chain, machine=machine))


def batch_size(c: Contraction, chain: Chain) -> Any:
    """How many products there are, as a condition has it; None where there is one, or where no sizes say it."""
    extents = [loop.hi for loop in chain.loops if loop.name in c.batch and loop.lo == Const(0, "i64")]
    if not c.batch or len(extents) < len(c.batch) or not all(isinstance(e, Var) for e in extents):
        return None
    count: Any = str(extents[0])
    for extent in extents[1:]:
        count = ("*", count, str(extent))
    return count


def _shared(draft: Draft, cond: tuple[object, ...], chain: Chain, machine: Machine) -> None:
    copies = draft.special_nest(chain.names, cond, "f")
    product = contraction(draft.program, chain_of(draft.loop(copies[chain.names[0]])))
    if product is None:
        raise NotApplicable(f"'{chain.names[0]}' is no product any more")
    gemm(draft, product, machine, threads=True, shared=True)


def few_rows(draft: Draft, c: Contraction, chain: Chain, size: str, depth: str | None, machine: Machine, lanes: int, threads: bool) -> None:
    """Several rows of the right operand at once, each times its element of the left one, added to vectors of the result; and where `depth`, if it
    is a size, leaves nothing to sum: then the result is all that counts, and it is swept through as it lies."""
    swept: tuple[object, ...] = ("<", size, str(draft.choice("narrow.rows", FEW)))
    if depth is not None:
        swept = ("or", swept, ("<", depth, "2"))
    copies = draft.special_nest(chain.names, swept, "r")
    i, j, k = copies[c.rows[-1]], copies[c.columns[-1]], copies[c.sums[-1]]
    with draft.focused(i):
        if tuple(copies.values()) != (i, j, k):
            draft.take("reorder", i, j, k)
        held = 1 << (machine.cache_bytes[0] // DTYPES[c.out.dtype].bytes).bit_length() - 1
        block, j = draft.pair(j, draft.choice("narrow.block", BLOCK if machine.threads else held), "min")
        draft.take("reorder", k, j)
        if threads:
            draft.thread_two(i, block)
        ki = draft.split(k, draft.choice("narrow.streams", ROWS_AT_ONCE)).inner
        draft.take("reorder", j, ki)
        ji = draft.split(j, draft.choice("narrow.vectors", VECTORS) * lanes).inner
        draft.take("reorder", ki, ji)
        group, lane = draft.halves(ji, lanes)
        made = draft.stage(ki, c.out.buffer, "accumulate", "register", group, lane)
        for name in (lane, *made.over(lane)):
            draft.take("vectorize", name)
        for name in (group, *made.over(group)):
            draft.take("unroll", name)
        if machine.has_fma and is_float(c.out.dtype):
            draft.take("contract", ki)
        draft.take("unroll", ki)

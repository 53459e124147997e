"""Plans for devices that run threads in groups: every statement a kernel, every kernel a nest of groups and threads.

A map gives every element a thread, a sum along memory a group of threads to every row, a sum across it a thread to every column; passes over a row,
one after the other, are one group's work; copies that turn rows into columns go through shared tiles, and so do both operands of a matrix product.
What fits none of these runs as it was written, in one thread.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..core.dtypes import is_complex, is_float
from ..core.expr import Const
from ..core.program import Machine
from ..loop.affine import canonical
from ..loop.dependence import carried_dependence, find_loop
from ..loop.statements import Aref, For
from .analysis.classify import Chain, Contraction, along_memory, chain_of, contiguous_loop, contraction, reduction, stores_in
from .draft import Draft
from .plans.transposes import Transposition, transposition

GEMM = (64, 64, 16)             # rows, columns and products of a tile in shared memory
REGISTERS = (4, 16)             # rows of the tile that one thread has, and threads that share its columns
TURN = (32, 8)                  # rows and columns of a tile that is turned, and how many columns are stored at once
SUM = 1 << 14                   # elements of a long sum that one group adds up
FEW = 32                        # loops of fewer iterations are not worth a group


def on_threads(draft: Draft, machine: Machine) -> None:
    """Schedule every kernel."""
    for name in [k.name for k in draft.program.kernels]:
        draft.tries(("separate", name))
    for kernel in draft.program.kernels:
        match kernel.body:
            case (For(name=name),):
                _nest(draft, name, machine)


def _nest(draft: Draft, name: str, machine: Machine) -> None:
    """The first plan that fits."""
    chain = chain_of(draft.loop(name))
    threads = machine.groups[1]
    for plan in _plans(draft, chain, threads):
        if draft.attempts(plan):
            return


def _plans(draft: Draft, chain: Chain, threads: int) -> Iterator[partial[None]]:
    copy, product = transposition(draft.program, chain), contraction(draft.program, chain)
    if copy is not None:
        yield partial(_turned, t=copy)
    if product is not None and not is_complex(product.out.dtype):
        yield partial(_product, c=product)
    total = reduction(chain) if chain.is_leaf else None
    if total is not None and not total.kept:
        yield partial(_long_sum, chain=chain, threads=threads)
    if total is not None and total.kept and chain.names == (*total.kept, *total.summed[:1]) and along_memory(draft.program, chain, total):
        yield partial(_rows, names=total.kept, threads=threads)
    if _are_passes(chain):
        yield partial(_rows, names=chain.names, threads=threads)
    free = _independent(draft, chain)
    if free:
        yield partial(_elements, chain=chain, free=free, threads=threads)
        if chain.names[0] in free:
            yield partial(_elements, chain=Chain(chain.loops[:1], chain.loops[0].body), free=chain.names[:1], threads=threads)


def _are_passes(chain: Chain) -> bool:
    """Do loops of unknown length, or of a long one, pass over a row one after the other?"""
    inner = [s for s in chain.body if isinstance(s, For)]
    extents = [canonical(loop.hi - loop.lo) for loop in inner]
    return not chain.is_leaf and bool(inner) and all(not isinstance(n, Const) or n.value >= FEW for n in extents)


def _independent(draft: Draft, chain: Chain) -> tuple[str, ...]:
    """The loops whose iterations may run in any order."""
    return tuple([name for name in chain.names if carried_dependence(*find_loop(draft.program, name)) is None])


def _elements(draft: Draft, chain: Chain, free: tuple[str, ...], threads: int) -> None:
    """A thread for every iteration of the independent loops; neighbouring threads store neighbouring elements."""
    stores = [s.ref for s in stores_in(chain.body) if isinstance(s.ref, Aref)]
    fast = next((n for ref in stores if (n := contiguous_loop(draft.program, ref, free)) is not None), free[-1])
    order = (*[n for n in free if n != fast], fast, *[n for n in chain.names if n not in free])
    if order != chain.names:
        draft.take("reorder", *order)
    extent = canonical(draft.loop(fast).hi - draft.loop(fast).lo)
    count = min(threads, 1 << (extent.value - 1).bit_length()) if isinstance(extent, Const) and extent.value > 0 else threads
    outer, inner = draft.pair(fast, count, "pad") if extent != Const(count, "i64") else ("", fast)
    for name in (*[n for n in free if n != fast], *([outer] if outer else [])):
        draft.take("bind", name, "grid")
    draft.take("bind", inner, "block")
    summed = [n for n in chain.names if n not in free]
    if summed and stores and len(stores) == 1:
        draft.tries(("hoist", summed[0]))
        draft.tries(("stage", summed[0], stores[0].buffer, "accumulate", "register"))


def _rows(draft: Draft, names: tuple[str, ...], threads: int) -> None:
    """A group of threads for every row."""
    for name in names[:-1]:
        draft.take("bind", name, "grid")
    draft.take("spread", names[-1], threads)


def _long_sum(draft: Draft, chain: Chain, threads: int) -> None:
    """A sum into one place: every group adds up a part, and one thread the parts."""
    store = stores_in(chain.body)[0]
    assert isinstance(store.ref, Aref)
    outer, _ = draft.pair(chain.names[0], SUM, "pad")
    kernel = next(k.name for k in draft.program.kernels if draft.loop(outer) in k.body)
    draft.take("stage", outer, store.ref.buffer, "partial", "scratch", outer)
    draft.take("separate", kernel)
    draft.take("spread", outer, threads)
    match next(k for k in draft.program.kernels if k.name == kernel).body:       # the first part, which has the name
        case (For(name=name),):
            draft.attempts(partial(_elements, chain=chain_of(draft.loop(name)), free=(name,), threads=threads))


def _turned(draft: Draft, t: Transposition) -> None:
    """A tile is read row by row into shared memory and stored column by column from there."""
    size, columns = TURN
    rest = [n for n in t.loops if n not in (t.down, t.across)]
    if (order := (*rest, t.down, t.across)) != t.loops:
        draft.take("reorder", *order)
    tall, down = draft.pair(t.down, size, "pad")
    wide, across = draft.pair(t.across, size, "pad")
    steps, side = draft.halves(across, columns)
    draft.take("reorder", tall, wide, side, down, steps)
    for name in (*rest, tall, wide):
        draft.take("bind", name, "grid")
    for name in (side, down):
        draft.take("bind", name, "block")
    tile = draft.stage(steps, t.value.buffer, "read", "shared", down, steps, side).tile
    draft.tries(("flatten", tile), ("widen", tile, 1))                     # rows an odd number of cells apart: a column lies in all banks


def _product(draft: Draft, c: Contraction) -> None:
    """Tiles of both operands in shared memory, a tile of the result in the registers of every thread."""
    i, j, k, *inner = c.rows[-1], c.columns[-1], *c.sums
    outside = (*c.batch, *c.rows[:-1], *c.columns[:-1])
    rows, columns, depth = GEMM
    draft.take("reorder", *outside, i, j, k, *inner)
    io, ii = draft.pair(i, rows, "pad")
    jo, ji = draft.pair(j, columns, "pad")
    ko, ki = draft.pair(k, depth, "min")
    down, row = draft.halves(ii, REGISTERS[0])
    column, across = draft.halves(ji, REGISTERS[1])
    draft.take("reorder", *outside, io, jo, down, across, ko, ki, *inner, row, column)
    for name in (*outside, io, jo):
        draft.take("bind", name, "grid")
    for name in (down, across):
        draft.take("bind", name, "block")
    draft.take("stage", ki, c.left.buffer, "read", "shared", ki, *inner, down, row)
    draft.take("stage", ki, c.right.buffer, "read", "shared", ki, *inner, column, across)
    made = draft.stage(ko, c.out.buffer, "partial", "register", row, column)
    if is_float(c.out.dtype):
        draft.take("contract", ko)
    for name in (row, column, *[name for nest in made.nests if not nest.is_edge for name in nest.loops.values()]):
        draft.tries(("unroll", name))

"""The recipe for convolutions: contractions of which one operand is read along windows, beyond the edges of which nothing is added.

The windows under a tile of the result are packed one beside the other, with zeros beyond the edges (im2col; Chellapilla et al., High Performance
Convolutional Neural Networks for Document Processing, 2006), so that the product of two panels is left. A tile is a few lines of the result, each as
long as half a cache line: few images have a width that leaves much of its last tile empty.
"""
from __future__ import annotations

from functools import partial

from ..core.dtypes import is_float
from ..core.expr import Const, Op, Var
from ..core.program import Machine
from ..errors import error
from ..loop.affine import linear
from .classify import Chain, Contraction, chain_of, contraction, fastest_axis, has_constant_extent
from .draft import Draft
from .gemm import MOST_STEPS, ROWS_AHEAD, is_rare, products, summed
from .nests import locals_in, loops_in, mentions
from .tiles import gemm_tile

WIDTH = 8                       # places of a line in a tile
NARROW = 4                      # tiles of a plain product that a line of a picture has at most
SHARE = 2                       # how much less is summed at once than in a plain product: packed windows and weights fit the first cache together
USUAL = 3                       # places of a window in a direction where the number is not known
STEPS = (1, 2)                  # between windows, for which there are copies of what packs them where the number is not known


def slides(c: Contraction) -> bool:
    """Is an index of the right operand moved by a loop of the result and by one of the sum?"""
    return any(mentions(i, c.columns) and mentions(i, c.sums) for i in c.right.index)


def single_places(draft: Draft, c: Contraction, chain: Chain, machine: Machine, threads: bool) -> None:
    """A copy of the nest for windows of one place, scheduled: as much is summed over channels alone as in a plain product."""
    names = [name for name in c.sums[1:] if not has_constant_extent(chain, name)]
    sizes = [str(draft.loop(name).hi) for name in names if isinstance(draft.loop(name).hi, Var)]
    if not names or len(sizes) < len(c.sums[1:]):
        raise error("E511", "there are no windows of which only the call knows the size")
    whole: tuple[object, ...] = ("=", sizes[0], "1")
    for size in sizes[1:]:
        whole = ("and", whole, ("=", size, "1"))
    _in_a_copy(draft, chain, whole, "p", machine, threads)


def pictures(draft: Draft, c: Contraction, chain: Chain, machine: Machine, threads: bool) -> None:
    """A copy of a product whose columns are the places of small pictures, scheduled: its tiles are of several lines, like those of a convolution."""
    *_, line, column = [next(loop for loop in chain.loops if loop.name == name) for name in c.columns]
    if len(c.sums) > 1:
        raise error("E511", "there is more than one sum")
    if not all(loop.lo == Const(0, "i64") and isinstance(loop.hi, Var) for loop in (line, column)):
        raise error("E511", f"the ends of '{line.name}' and '{column.name}' are no sizes")
    tile = gemm_tile(machine, c.out.dtype, choice=draft.choice)
    if tile.columns <= _width(draft):
        raise error("E511", "a tile is no wider than one line of it would be")
    small = ("and", ("<", str(column.hi), str(NARROW * tile.columns)), ("<=", str(tile.columns // _width(draft)), str(line.hi)))
    _in_a_copy(draft, chain, small, "l", machine, threads)


def _in_a_copy(draft: Draft, chain: Chain, cond: tuple[object, ...], ending: str, machine: Machine, threads: bool) -> None:
    """A copy of a nest for calls of which `cond` holds, in tiles of several lines."""
    first, *_ = draft.take("specialize", chain.names[0], cond, ending)
    inner = contraction(draft.program, chain_of(draft.loop(first)))
    if inner is None:
        raise error("E511", f"'{first}' is no product")
    convolution(draft, inner, machine, threads, several=True)


def convolution(draft: Draft, c: Contraction, machine: Machine, threads: bool, several: bool = False) -> None:
    """Tile, pack with zeros, drop the conditions where that is the same, and vectorise, on several threads if `threads`. A tile is of several
    lines of the result where windows slide in two directions, or if `several`."""
    row, channel, *window = c.rows[-1], *c.sums
    outside = (*c.batch, *c.rows[:-1])
    unknown = [name for name in window if not has_constant_extent(chain_of(draft.loop(name)), name)]
    tile = gemm_tile(machine, c.out.dtype, products(draft, window) * USUAL ** len(unknown), draft.choice)
    draft.take("reorder", *outside, row, channel, *c.columns, *window)
    around, inside = _tiled(draft, c, tile.columns, several)
    co, ci = draft.take("split", channel, max(1, tile.depth // draft.choice("convolution.share", SHARE)), "min")
    oo, oi = draft.take("split", row, tile.panel, "min")
    oio, oii = draft.take("split", oi, tile.rows, "pad")
    draft.take("reorder", *outside, oo, co, *around, oio, ci, *window, oii, *inside)
    left = draft.take("stage", around[0], c.left.buffer, "read", "scratch", oio, ci, *window, oii)
    before = _locals(draft)
    right = draft.take("stage", oio, c.right.buffer, "read", "scratch", ci, *window, *inside)
    (packed,) = _locals(draft) - before
    sums = summed(draft, ci, c.out.buffer, oii, *inside, asking=True)
    tiles = sorted(_locals(draft) - before)
    if threads and not draft.thread(*c.batch) and draft.thread_two(*around):
        draft.thread(left[0])
    copy = _without_conditions(draft, around[0], packed, inside[-1])
    summing = (ci, *window)
    steps = summing[-2] if window and window[-1] not in unknown else summing[-1]       # a row of a window at once, where its length is known
    draft.tries(("prefetch_at", steps, around[max(0, len(around) - 2)], c.right.buffer, 1))
    _windows_as_vectors(draft, c, [n for n in right if n.startswith(f"{inside[-1]}_r")], window, inside, tile.lanes)
    adding = [n for n in sums if n.startswith(f"{inside[-1]}_w") and not is_rare(n, sums)]
    cells = [draft.around(n, len(inside)) for n in (inside[-1], *sums) if n == inside[-1] or n.startswith((f"{inside[-1]}_z", f"{inside[-1]}_s"))]
    along = [_fused(draft, loops) for loops in cells]
    for name in tiles if len(inside) > 1 else ():
        draft.take("flatten", name)
    for name in along:
        _vectors(draft, name, tile.lanes)
    for name in adding:
        *lines, last = draft.around(name, len(inside))
        draft.attempts(partial(_vectors, name=last, lanes=min(_width(draft), tile.lanes) if lines else tile.lanes))    # fewer where it is narrow
        for line in lines:
            draft.take("unroll", line)
    if machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *[n for n in copy if n == f"{ci}g"]):
            draft.take("contract", name)
    for name in (oii, *[n for n in sums if n.startswith(f"{oii}_") and not is_rare(n, sums)]):
        draft.take("unroll", name)
    if not machine.fetches_ahead:
        draft.tries(("prefetch", oio, c.out.buffer, 1, "write"))
    for name in [n for n in left if n.startswith(f"{oii}_")][:1]:
        draft.tries(("prefetch", name, c.left.buffer, draft.choice("gemm.ahead", ROWS_AHEAD)))
    if window and products(draft, window[-1:]) in range(2, draft.choice("gemm.steps", MOST_STEPS) + 1):
        draft.take("unroll", window[-1])


def _width(draft: Draft) -> int:
    """Places of a line in a tile."""
    return draft.choice("convolution.width", WIDTH)


def _tiled(draft: Draft, c: Contraction, cells: int, several: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Loops over tiles, and loops inside one: of several lines, where the window slides in two directions, or if `several`."""
    *others, line, column = c.columns if len(c.columns) > 1 else ("", *c.columns)
    several = several or any(mentions(i, (line,)) and mentions(i, c.sums) for i in c.right.index)
    if not line or cells <= _width(draft) or not several:
        xo, xi = draft.take("split", column, cells, "pad")
        return (*c.columns[:-1], xo), (xi,)
    xo, xi = draft.take("split", column, _width(draft), "pad")
    yo, yi = draft.take("split", line, cells // _width(draft), "pad")
    return (*others, yo, xo), (yi, xi)


def _locals(draft: Draft) -> set[str]:
    return {n.name for n in locals_in(draft.program)}


def _windows_as_vectors(draft: Draft, c: Contraction, filling: list[str], window: list[str], inside: tuple[str, ...], lanes: int) -> None:
    """The loops that pack windows, of which `filling` are the innermost."""
    depth = 1 + len(window) + len(inside)
    for name in filling:
        for known in (*_known_steps(draft, c, draft.around(name, depth)), name):
            draft.attempts(partial(_packing, loops=draft.around(known, depth), lanes=min(_width(draft), lanes) if len(inside) > 1 else lanes))


def _known_steps(draft: Draft, c: Contraction, loops: tuple[str, ...]) -> list[str]:
    """The innermost loops of copies of a nest that packs windows, in which the step from one to the next is a number."""
    axis = fastest_axis(draft.program, c.right)
    terms = [m for m in linear(c.right.index[axis]).terms if mentions(m, c.columns[-1:])] if axis is not None else []
    sizes = [v.name for m in terms if len(m) == 2 for v in m if isinstance(v, Var) and v.name != c.columns[-1]]
    made: list[str] = []
    for size in sizes if len(terms) == 1 else ():
        for step in STEPS:
            before = {loop.name for loop in loops_in(draft.program)}
            if draft.tries(("specialize", loops[0], ("=", size, str(step)), f"_{step}")):
                made += [loop.name for loop in loops_in(draft.program) if loop.name not in before][-1:]
    return made


def _packing(draft: Draft, loops: tuple[str, ...], lanes: int) -> None:
    """The channels innermost, so that the conditions at the edges are asked once for all of them; then vectors, where what is read allows them."""
    channel, *others, last = loops
    if any(isinstance(n, Op) and n.fn == "where" for n in draft.loop(last).unique()):
        draft.tries(("reorder", *others, channel, last))
    _vectors(draft, last, lanes)


def _fused(draft: Draft, loops: tuple[str, ...]) -> str:
    """The lines of a tile follow each other: one loop over its cells."""
    first, *others = loops
    for other in others:
        first, = draft.take("fuse", first, other)
    return first


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop as vectors side by side."""
    if products(draft, [name]) == lanes:
        draft.take("vectorize", name)
        return
    outer, inner = draft.halves(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def _without_conditions(draft: Draft, around: str, packed: str, cells: str) -> tuple[str, ...]:
    """The products of zeros need no conditions, unless an infinity or NaN is in the weights: the loops of the copy for these, in which no more than
    the sum over the cells of a tile is vectors."""
    before = _locals(draft)
    made: list[str] = []
    if not draft.attempts(lambda draft: made.extend(draft.take("unguard", around, packed))):
        return ()
    looked_at = [name for name in made if name.endswith("_u")]
    (total,) = [n.name for n in locals_in(draft.program) if not n.shape and n.name not in before] or [""]
    if looked_at and draft.tries(("stage", looked_at[0], total, "partial", "register", looked_at[-1])):
        draft.tries(("vectorize", looked_at[-1]))
        draft.tries(("vectorize", f"{looked_at[-1]}_z"))
    copy = [name for name in made if name not in looked_at]
    for name in copy:
        if name == f"{cells}g":
            draft.tries(("vectorize", name))
    return tuple(copy)

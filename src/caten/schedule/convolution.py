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
from ..loop.affine import linear
from .analysis.classify import Chain, Contraction, chain_of, contraction, fastest_axis, has_constant_extent
from .analysis.nests import mentions
from .draft import Copies, Draft, NotApplicable
from .gemm import MOST_STEPS, ROWS_AHEAD, products, summed
from .made import Unguarded
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
        raise NotApplicable("there are no windows of which only the call knows the size")
    whole: tuple[object, ...] = ("=", sizes[0], "1")
    for size in sizes[1:]:
        whole = ("and", whole, ("=", size, "1"))
    _in_a_copy(draft, chain, whole, "p", machine, threads)


def pictures(draft: Draft, c: Contraction, chain: Chain, machine: Machine, threads: bool) -> None:
    """A copy of a product whose columns are the places of small pictures, scheduled: its tiles are of several lines, like those of a convolution."""
    *_, line, column = [next(loop for loop in chain.loops if loop.name == name) for name in c.columns]
    if len(c.sums) > 1:
        raise NotApplicable("there is more than one sum")
    if not all(loop.lo == Const(0, "i64") and isinstance(loop.hi, Var) for loop in (line, column)):
        raise NotApplicable(f"the ends of '{line.name}' and '{column.name}' are no sizes")
    tile = gemm_tile(machine, c.out.dtype, choice=draft.choice)
    if tile.columns <= _width(draft):
        raise NotApplicable("a tile is no wider than one line of it would be")
    small = ("and", ("<", str(column.hi), str(NARROW * tile.columns)), ("<=", str(tile.columns // _width(draft)), str(line.hi)))
    _in_a_copy(draft, chain, small, "l", machine, threads)


def _in_a_copy(draft: Draft, chain: Chain, cond: tuple[object, ...], ending: str, machine: Machine, threads: bool) -> None:
    """A copy of a nest for calls of which `cond` holds, in tiles of several lines."""
    first = draft.special(chain.names[0], cond, ending)[chain.names[0]]
    inner = contraction(draft.program, chain_of(draft.loop(first)))
    if inner is None:
        raise NotApplicable(f"'{first}' is no product")
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
    co, ci = draft.pair(channel, max(1, tile.depth // draft.choice("convolution.share", SHARE)), "min")
    oo, oi = draft.pair(row, tile.panel, "min")
    oio, oii = draft.pair(oi, tile.rows, "pad")
    draft.take("reorder", *outside, oo, co, *around, oio, ci, *window, oii, *inside)
    left = draft.stage(around[0], c.left.buffer, "read", "scratch", oio, ci, *window, oii)
    right = draft.stage(oio, c.right.buffer, "read", "scratch", ci, *window, *inside)
    sums = summed(draft, ci, c.out.buffer, oii, *inside, asking=True)
    if threads and not draft.thread(*c.batch) and draft.thread_two(*around):
        draft.thread(left.over(oio)[0])
    copy = _without_conditions(draft, around[0], right.tile, inside[-1])
    summing = (ci, *window)
    steps = summing[-2] if window and window[-1] not in unknown else summing[-1]       # a row of a window at once, where its length is known
    draft.tries(("prefetch_at", steps, around[max(0, len(around) - 2)], c.right.buffer, 1))
    _windows_as_vectors(draft, c, right.over(inside[-1]), window, inside, tile.lanes)
    cells = [inside, *[tuple([nest.loops[axis] for axis in inside]) for nest in sums.usual_nests("begin", "lay")]]
    along = [_fused(draft, loops) for loops in cells]
    for name in (right.tile, *sums.arrays) if len(inside) > 1 else ():
        draft.take("flatten", name)
    for name in along:
        _vectors(draft, name, tile.lanes)
    for nest in sums.usual_nests("store"):
        *lines, last = [nest.loops[axis] for axis in inside]
        draft.attempts(partial(_vectors, name=last, lanes=min(_width(draft), tile.lanes) if lines else tile.lanes))    # fewer where it is narrow
        for line in lines:
            draft.take("unroll", line)
    if machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *([copy[ci]] if ci in copy else [])):
            draft.take("contract", name)
    for name in (oii, *sums.usual(oii)):
        draft.take("unroll", name)
    if not machine.fetches_ahead:
        draft.tries(("prefetch", oio, c.out.buffer, 1, "write"))
    draft.tries(("prefetch", left.over(oii)[0], c.left.buffer, draft.choice("gemm.ahead", ROWS_AHEAD)))
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
        xo, xi = draft.pair(column, cells, "pad")
        return (*c.columns[:-1], xo), (xi,)
    xo, xi = draft.pair(column, _width(draft), "pad")
    yo, yi = draft.pair(line, cells // _width(draft), "pad")
    return (*others, yo, xo), (yi, xi)


def _windows_as_vectors(draft: Draft, c: Contraction, filling: tuple[str, ...], window: list[str], inside: tuple[str, ...], lanes: int) -> None:
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
            copies = draft.tried(partial(_known_step, loop=loops[0], size=size, step=step))
            made += [copies[loops[-1]]] if copies is not None and loops[-1] in copies else []
    return made


def _known_step(draft: Draft, loop: str, size: str, step: int) -> Copies:
    """A copy of a nest for a step between windows."""
    return draft.special(loop, ("=", size, str(step)), f"_{step}")


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
        first = draft.fuse(first, other)
    return first


def _vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop as vectors side by side."""
    if products(draft, [name]) == lanes:
        draft.take("vectorize", name)
        return
    outer, inner = draft.halves(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def _without_conditions(draft: Draft, around: str, packed: str, cells: str) -> Copies:
    """The products of zeros need no conditions, unless an infinity or NaN is in the weights: the loops of the copy for these, in which no more than
    the sum over the cells of a tile is vectors."""
    made = draft.tried(partial(_unguarded, around=around, packed=packed))
    if made is None:
        return {}
    if made.tests and (parts := draft.tried(partial(_in_parts, loops=made.tests, total=made.total))) is not None:
        for name in (made.tests[-1], *parts):
            draft.tries(("vectorize", name))
    if cells in made.copies:
        draft.tries(("vectorize", made.copies[cells]))
    return dict(made.copies)


def _unguarded(draft: Draft, around: str, packed: str) -> Unguarded:
    """The loop without the conditions that the zeros of a tile stand for."""
    made = draft.take("unguard", around, packed)
    assert isinstance(made, Unguarded)
    return made


def _in_parts(draft: Draft, loops: tuple[str, ...], total: str) -> tuple[str, ...]:
    """A sum over nested loops in as many parts as the innermost is long: the loops in which these begin."""
    return draft.stage(loops[0], total, "partial", "register", loops[-1]).over(loops[-1], "begin")

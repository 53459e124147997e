"""Convolutions in packed tiles of several lines, as steps."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Op, Var
from ...loop.affine import linear
from ..analysis.classify import Chain, Contraction, fastest_axis
from ..analysis.nests import mentions
from ..draft import Copies, Draft
from ..made import Unguarded
from ..plans.plan import Given
from ..plans.products import Windows
from .vectors import summed, vectors

STEPS = (1, 2)                  # between windows, for which there are copies of what packs them where the number is not known


def windows(draft: Draft, chain: Chain, c: Contraction, plan: Windows, given: Given) -> None:
    """Tile, pack with zeros, drop the conditions where that is the same, and vectorise, on several threads where there are."""
    row, channel, *window = c.rows[-1], *c.sums
    outside = (*c.batch, *c.rows[:-1])
    draft.take("reorder", *outside, row, channel, *c.columns, *window)
    around, inside = _tiled(draft, c, plan)
    co, ci = draft.pair(channel, plan.depth, "min")
    oo, oi = draft.pair(row, plan.panel, "min")
    oio, oii = draft.pair(oi, plan.rows, "pad")
    draft.take("reorder", *outside, oo, co, *around, oio, ci, *window, oii, *inside)
    left = draft.stage(around[0], c.left.buffer, "read", "scratch", oio, ci, *window, oii)
    right = draft.stage(oio, c.right.buffer, "read", "scratch", ci, *window, *inside)
    sums = summed(draft, ci, c.out.buffer, oii, *inside, how="partial", asking=True)
    if given.threads and not draft.thread(*c.batch) and draft.thread_two(*around):
        draft.thread(left.over(oio)[0])
    copy = _without_conditions(draft, around[0], right.tile, inside[-1])
    summing = (ci, *window)
    steps = summing[-2] if plan.known else summing[-1]       # a row of a window at once, where its length is known
    draft.tries(("prefetch_at", steps, around[max(0, len(around) - 2)], c.right.buffer, 1))
    _windows_as_vectors(draft, c, plan, right.over(inside[-1]), window, inside)
    cells = [inside, *[tuple([nest.loops[axis] for axis in inside]) for nest in sums.usual_nests("begin", "lay")]]
    along = [_fused(draft, loops) for loops in cells]
    for name in (right.tile, *sums.arrays) if len(inside) > 1 else ():
        draft.take("flatten", name)
    for name in along:
        vectors(draft, name, plan.lanes)
    for nest in sums.usual_nests("store"):
        *lines, last = [nest.loops[axis] for axis in inside]
        draft.attempts(partial(vectors, name=last, lanes=min(plan.width, plan.lanes) if lines else plan.lanes))    # fewer where it is narrow
        for line in lines:
            draft.take("unroll", line)
    if given.machine.has_fma and is_float(c.out.dtype):
        for name in (ci, *([copy[ci]] if ci in copy else [])):
            draft.take("contract", name)
    for name in (oii, *sums.usual(oii)):
        draft.take("unroll", name)
    if not given.machine.fetches_ahead:
        draft.tries(("prefetch", oio, c.out.buffer, 1, "write"))
    draft.tries(("prefetch", left.over(oii)[0], c.left.buffer, plan.ahead))
    if plan.steps:
        draft.take("unroll", window[-1])


def _tiled(draft: Draft, c: Contraction, plan: Windows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Loops over tiles, and loops inside one: of several lines, or of one."""
    *others, column = c.columns
    xo, xi = draft.pair(column, plan.width, "pad")
    if plan.lines == 1:
        return (*others, xo), (xi,)
    yo, yi = draft.pair(others[-1], plan.lines, "pad")
    return (*others[:-1], yo, xo), (yi, xi)


def _windows_as_vectors(draft: Draft, c: Contraction, plan: Windows, filling: tuple[str, ...], window: list[str], inside: tuple[str, ...]) -> None:
    """The loops that pack windows, of which `filling` are the innermost."""
    depth = 1 + len(window) + len(inside)
    for name in filling:
        for known in (*_known_steps(draft, c, draft.around(name, depth)), name):
            lanes = min(plan.width, plan.lanes) if len(inside) > 1 else plan.lanes
            draft.attempts(partial(_packing, loops=draft.around(known, depth), lanes=lanes))


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
    vectors(draft, last, lanes)


def _fused(draft: Draft, loops: tuple[str, ...]) -> str:
    """The lines of a tile follow each other: one loop over its cells."""
    first, *others = loops
    for other in others:
        first = draft.fuse(first, other)
    return first


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

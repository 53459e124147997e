"""What plans have in common when they become steps: vectors, tiles in registers, multiply-adds, and what is left over."""
from __future__ import annotations

from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Const, Op, index
from ...loop.affine import canonical
from ...loop.statements import Aref, If, Incf
from ..analysis.classify import Chain
from ..draft import Draft
from ..made import Split, Staged
from ..plans.plan import Given, NotApplicable

STRAIGHT = ("add", "sub", "mul", "neg")         # operators of an index


def vectors(draft: Draft, name: str, lanes: int) -> None:
    """A loop as vectors side by side."""
    if draft.loop(name).hi == Const(lanes, "i64") and draft.loop(name).lo == index(0):
        draft.take("vectorize", name)
        return
    outer, inner = draft.halves(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def neighbours(draft: Draft, name: str, lanes: int) -> None:
    """A loop that copies neighbours as vectors, and what is left one by one."""
    draft.take("vectorize", draft.split(name, lanes).inner)


def as_vectors(draft: Draft, group: str, lane: str, *tiles: Staged) -> None:
    """The loop over the lanes as vectors and that over the vectors unrolled, and those over the cells of tiles like those that they stand for."""
    for name in (lane, *[name for tile in tiles for name in tile.over(lane)]):
        draft.take("vectorize", name)
    if group:
        draft.take("unroll", group)
    for name, does in {nest.loops[group]: nest.does for tile in tiles for nest in tile.nests if group in nest.loops}.items():
        draft.take("unroll", name, *(["full"] if does == "halve" else []))


def masked(draft: Draft, loop: str, lanes: int, given: Given) -> None:
    """Vectors of which only some lanes count, in the place of single iterations."""
    if not given.masks_are_cheap:
        raise NotApplicable(f"the rest '{loop}' is best left as it is")
    check_indices(draft, loop)
    _, lane = draft.pair(loop, lanes, "pad")
    draft.take("vectorize", lane)


def check_indices(draft: Draft, loop: str) -> None:
    """Only sums of products, of sizes in whatever form, are shown to be inside where lanes are left out."""
    sizes = set(draft.program.sizes)
    for ref in draft.loop(loop).unique():
        others = [n for i in ref.index for n in i.walk() if isinstance(n, Op) and n.fn not in STRAIGHT] if isinstance(ref, Aref) else []
        if any(not n.variables <= sizes for n in others):
            raise NotApplicable(f"the index of {ref} is no sum of products")


def contracted(draft: Draft, loop: str, out: Aref, given: Given) -> None:
    """Multiply-adds where the machine has them and products are summed."""
    if given.machine.has_fma and is_float(out.dtype) and any(
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


def has_constant_length(draft: Draft, name: str) -> bool:
    """False of a loop over as many columns of a tile as there are."""
    return isinstance(canonical(draft.loop(name).hi - draft.loop(name).lo), Const)


def ordered(draft: Draft, chain: Chain, names: tuple[str, ...]) -> None:
    """The loops in this order."""
    if names != chain.names:
        draft.take("reorder", *names)


# -- sums in registers ------------------------------------------------------------------------------------------------------------------------------
def summed(draft: Draft, loop: str, buffer: str, *axes: str, how: str = "accumulate", asking: bool = False) -> Staged:
    """Sums in registers; where a nest before only sets what they are added to, the first of them does, and they are staged as `how` says where there
    is no such nest, or where, unless `asking`, conditions would stay around the sum."""
    return (draft.tried(partial(_begun, loop=loop, buffer=buffer, axes=axes, asking=asking))
            or draft.stage(loop, buffer, how, "register", *axes))


def _begun(draft: Draft, loop: str, buffer: str, axes: tuple[str, ...], asking: bool) -> Staged:
    """Registers that begin with what is added."""
    staged = draft.stage(loop, buffer, "begin", "register", *axes)
    if not asking and any(isinstance(n, If) for n in draft.loop(loop).unique()):
        raise NotApplicable(f"a condition is asked for every product of '{loop}'")
    return staged


def parts(draft: Draft, outer: str, buffer: str, loops: tuple[str, ...], tree: bool) -> Staged:
    """Partial sums, added up as a `tree` where no condition says which of them exist."""
    made = draft.tried(partial(_tree, outer=outer, buffer=buffer, loops=loops)) if tree else None
    return made or draft.stage(outer, buffer, "partial", "register", *loops)


def _tree(draft: Draft, outer: str, buffer: str, loops: tuple[str, ...]) -> Staged:
    return draft.stage(outer, buffer, "tree", "register", *loops)

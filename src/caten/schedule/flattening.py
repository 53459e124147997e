"""Arrays that are dense along neighbouring loops are looked at in one dimension, and the loops become one: rows then need not be long.

A pair of loops, one directly inside the other, becomes one loop in every nest that uses one of the arrays; each array that one of them steps through
has an axis for the first, an axis for the second next to it, and no other use of them. So (sin x) over [N 3] runs in whole vectors.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from ..core.expr import Const, Var
from ..core.program import Buffer
from ..frozen import frozen
from ..loop.affine import canonical, linear
from ..loop.effects import reads
from ..loop.statements import Aref, For, If, LoopProgram, Stmt, Vref
from .analysis.classify import Chain, chain_of, contiguous_loop, contraction, stores_in
from .analysis.nests import mentions
from .draft import Draft
from .plans.plan import NotApplicable

MOST_SIZES = 2                  # in the number of iterations of a loop: products of more are hard to reason about


@frozen
class Pair:
    """Two loops of a nest that may become one, and the axes of arrays that they step through: the first of two."""

    outer: For
    inner: For
    axes: tuple[tuple[str, int], ...]


def flattened(draft: Draft) -> None:
    """Take the steps until no pair is left."""
    while any(draft.attempts(partial(_merged, pairs=pairs)) for pairs in _candidates(draft.program)):
        pass


def _merged(draft: Draft, pairs: list[Pair]) -> None:
    """A pair of loops as one in each nest, and the arrays along it."""
    for pair in pairs:
        draft.fuse(pair.outer.name, pair.inner.name)
    for array, axis in dict.fromkeys([each for pair in pairs for each in pair.axes]):
        draft.take("flatten", array, axis)
        places = [n.index[axis] for kernel in draft.program.kernels for n in kernel.unique() if isinstance(n, Aref) and n.buffer == array]
        if not all(isinstance(place, Var) for place in places):
            raise NotApplicable(f"the place in '{array}' is no one loop's")           # but a sum of names that stand for parts of it


def _candidates(program: LoopProgram) -> Iterator[list[Pair]]:
    """Pairs that become one together: those of all nests that use the same arrays along them."""
    loops = [_nests(kernel.body) for kernel in program.kernels]
    if None in loops:
        return                                                  # what stands beside the nests may use the arrays, too
    nests = [chain_of(loop) for found in loops for loop in found or ()]
    used = {chain.names[0]: {n.buffer for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)} for chain in nests}
    for chain in nests:
        pairs = [_pair(program, chain, outer, inner) for outer, inner in pairwise(chain.loops)]
        whole = pairs and pairs[-1] is not None
        for first in reversed(pairs) if whole else pairs:      # in whole rows, the number of elements bounds that of iterations: inner loops first
            together = [first]
            for other in nests:
                if first is None or other is chain or not used[other.names[0]] & {name for name, _ in first.axes}:
                    continue
                together.append(_alike(program, other, first))
            if all(pair is not None for pair in together):
                yield [pair for pair in together if pair is not None]


def _nests(stmts: tuple[Stmt, ...]) -> list[For] | None:
    """The nests in a list, under conditions over sizes or not; None where there is anything else."""
    found: list[For] = []
    for stmt in stmts:
        match stmt:
            case For():
                found.append(stmt)
            case If(then=then, otherwise=()) if (inner := _nests(then)) is not None and not reads(stmt.cond):
                found += inner
            case _:
                return None
    return found


def _alike(program: LoopProgram, chain: Chain, first: Pair) -> Pair | None:
    """The pair of a nest that steps through the same axes of the same arrays, all of them, and through no others."""
    for outer, inner in pairwise(chain.loops):
        pair = _pair(program, chain, outer, inner)
        own = {n.buffer for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)}
        if pair is not None and set(pair.axes) == {(name, axis) for name, axis in first.axes if name in own}:
            return pair
    return None


def _pair(program: LoopProgram, chain: Chain, outer: For, inner: For) -> Pair | None:
    """The loops and what they step through; None where they cannot become one."""
    if linear(outer.hi).times(linear(inner.hi)).degree > MOST_SIZES:
        return None
    if not _holds_the_rows(program, chain, outer, inner):
        return None
    if contraction(program, chain) is not None or any(loop.mark != "serial" or loop.lo != Const(0, "i64") for loop in (outer, inner)):
        return None
    names, axes = (outer.name, inner.name), dict[str, int]()
    places = {n: None for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)}
    for ref in places:
        buffer = program.buffers.get(ref.buffer)
        if not mentions(ref.index, names):
            if buffer is not None and buffer.name in axes:
                return None
            continue
        axis = _axis(ref, buffer, outer, inner)
        if axis is None or axes.setdefault(ref.buffer, axis) != axis:
            return None
    if not axes or any(ref.buffer in axes and not mentions(ref.index, names) for ref in places):
        return None
    return Pair(outer, inner, tuple(axes.items())) if _are_used_alone(inner, names, axes) else None


def _holds_the_rows(program: LoopProgram, chain: Chain, outer: For, inner: For) -> bool:
    """Is one of two loops that along which neighbours are stored, or is that one short? Rows that are long already gain nothing by a loop less."""
    rows = {contiguous_loop(program, store.ref, chain.names) for store in stores_in(chain.body) if isinstance(store.ref, Aref)} - {None}
    loops = {loop.name: loop for loop in chain.loops}
    return all(name in (outer.name, inner.name) or isinstance(loops[name].hi, Const) for name in rows if name is not None)


def _axis(ref: Aref | Vref, buffer: Buffer | None, outer: For, inner: For) -> int | None:
    """The axis that the first loop steps through, where the second steps through the next one, from its beginning to its end."""
    if buffer is None or not isinstance(ref, Aref) or buffer.strides or buffer.axes_in_memory != tuple(range(len(buffer.axes))):
        return None
    places = [Var(loop.name, "i64") for loop in (outer, inner)]
    at = next((n for n, two in enumerate(pairwise(ref.index)) if list(two) == places), None)
    others = tuple([i for n, i in enumerate(ref.index) if at is None or n not in (at, at + 1)])
    if at is None or mentions(others, (outer.name, inner.name)) or canonical(buffer.axes[at + 1] - inner.hi) != Const(0, "i64"):
        return None
    return at


def _are_used_alone(loop: For, names: tuple[str, str], axes: dict[str, int]) -> bool:
    """Do the loops' values occur in nothing but the places of these arrays?"""
    return all(_is_free(stmt, names, axes) for stmt in loop.body)


def _is_free(node: object, names: tuple[str, str], axes: dict[str, int]) -> bool:
    match node:
        case Aref(buffer=buffer) if buffer in axes:
            return True
        case Var(name=name):
            return name not in names
    return all(_is_free(child, names, axes) for child in getattr(node, "children", ()))



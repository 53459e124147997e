"""Flattening of dense arrays: two nested loops over adjacent axes become one, so that short rows fill whole vectors.

A pair of loops, one directly inside the other, is fused in every nest that uses one of their arrays. Each of these
arrays must have adjacent axes for the two loops and use them nowhere else. So (sin x) over [N 3] runs in whole vectors,
and X[b t k] W[k n] is one product of b · t rows.
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
from ..loop.statements import Aref, For, If, Incf, Local, LoopProgram, Repeat, Setf, Stmt, Vref
from .analysis.classify import Chain, chain_of, contiguous_loop, contraction, stores_in
from .analysis.loop_queries import locals_in, mentions
from .draft import Draft
from .plans.plan import NotApplicable
from .primitives.flatten import Array

MOST_SIZES = 2                  # whose product may be a trip count: longer products are hard to prove things about


@frozen
class Pair:
    """Two loops of a nest that may be fused. `axes`: for each of their arrays, the axis of the outer loop."""

    outer: For
    inner: For
    axes: tuple[tuple[str, int], ...]


def flatten_arrays(draft: Draft) -> None:
    """Fuse pairs until none is left."""
    while any(draft.attempt(partial(fuse_pairs, pairs=pairs)) for pairs in _candidates(draft.program)):
        pass


def fuse_pairs(draft: Draft, pairs: list[Pair]) -> list[str]:
    """Fuse a pair in each nest and flatten its arrays. Returns the fused loops."""
    fused = [draft.fuse(pair.outer.name, pair.inner.name) for pair in pairs]
    for array, axis in dict.fromkeys([each for pair in pairs for each in pair.axes]):
        draft.take("flatten", array, axis)
        accesses = [n for k in draft.program.kernels for n in k.unique() if isinstance(n, Aref) and n.buffer == array]
        if not all(isinstance(ref.index[axis], Var) for ref in accesses):          # but a sum of `let` names
            raise NotApplicable(f"the index of '{array}' is not a single loop")
    return fused


def _candidates(program: LoopProgram) -> Iterator[list[Pair]]:
    """Yield the pairs that must be fused together: one in every nest that uses the arrays."""
    loops = [_nests(kernel.body) for kernel in program.kernels]
    if None in loops or program.all(Repeat):
        return                                                  # other statements may use the arrays
    nests = [chain_of(loop) for found in loops for loop in found or ()]
    used = {chain.names[0]: {n.buffer for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)}
            for chain in nests}
    for chain in nests:
        pairs = [pair_of(program, chain, outer, inner) for outer, inner in pairwise(chain.loops)]
        whole = pairs and pairs[-1] is not None
        for first in reversed(pairs) if whole else pairs:      # whole rows bound the trip count: inner loops first
            together = [first]
            for other in nests:
                if first is None or other is chain or not used[other.names[0]] & {name for name, _ in first.axes}:
                    continue
                together.append(_same_pair(program, other, first))
            if all(pair is not None for pair in together):
                yield [pair for pair in together if pair is not None]


def _nests(stmts: tuple[Stmt, ...]) -> list[For] | None:
    """The nests in a list, also under conditions on sizes; None if it has other statements."""
    found: list[For] = []
    for stmt in stmts:
        match stmt:
            case For():
                found.append(stmt)
            case Local():
                pass
            case Setf() | Incf() if not any(n.index for n in stmt.unique() if isinstance(n, Aref | Vref)):
                pass                                            # of what has no axes
            case If(then=then, otherwise=()) if (inner := _nests(then)) is not None and not reads(stmt.cond):
                found += inner
            case _:
                return None
    return found


def _same_pair(program: LoopProgram, chain: Chain, first: Pair) -> Pair | None:
    """The pair of another nest that steps through the same axes of the same arrays; None if there is none."""
    for outer, inner in pairwise(chain.loops):
        pair = pair_of(program, chain, outer, inner, gains=True)
        own = {n.buffer for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)}
        if pair is not None and set(pair.axes) == {(name, axis) for name, axis in first.axes if name in own}:
            return pair
    return None


def pair_of(program: LoopProgram, chain: Chain, outer: For, inner: For, gains: bool = False,
            most: int = MOST_SIZES) -> Pair | None:
    """Two loops as a pair; None if they cannot be fused, or, unless `gains`, if that gains nothing. `most`: how many
    sizes a trip count may be the product of."""
    if linear(outer.hi).times(linear(inner.hi)).degree > most:
        return None
    if not (gains or _rows_may_be_short(program, chain, outer, inner) or _share_operand(program, chain, outer, inner)
            or _are_summed(program, chain, outer, inner)):
        return None
    plain = all(loop.mark == "serial" and loop.lo == Const(0, "i64") for loop in (outer, inner))
    if not plain:
        return None
    names, axes = (outer.name, inner.name), dict[str, int]()
    refs = {n: None for n in chain.loops[0].unique() if isinstance(n, Aref | Vref)}
    arrays: dict[str, Array] = {local.name: local for local in locals_in(program.kernels)} | program.buffers
    for ref in refs:
        if not mentions(ref.index, names):
            if ref.buffer in axes:
                return None
            continue
        axis = _axis(ref, arrays.get(ref.buffer), outer, inner)
        if axis is None or axes.setdefault(ref.buffer, axis) != axis:
            return None
    if not axes or any(ref.buffer in axes and not mentions(ref.index, names) for ref in refs):
        return None
    return Pair(outer, inner, tuple(axes.items())) if _are_used_alone(inner, names, axes) else None


def _rows_may_be_short(program: LoopProgram, chain: Chain, outer: For, inner: For) -> bool:
    """Is one of the loops the one with contiguous stores, or is that one constant? Long rows gain nothing."""
    refs = [store.ref for store in stores_in(chain.body) if isinstance(store.ref, Aref)]
    rows = {contiguous_loop(program, ref, chain.names) for ref in refs} - {None}
    loops = {loop.name: loop for loop in chain.loops}
    return all(n in (outer.name, inner.name) or isinstance(loops[n].hi, Const) for n in rows if n is not None)


def _share_operand(program: LoopProgram, chain: Chain, outer: For, inner: For) -> bool:
    """Are they the outermost loops of a product one operand of which is the same in all their iterations? Then it is
    one product with more rows."""
    if chain.loops[:2] != (outer, inner) or contraction(program, chain) is None:
        return False
    refs = [n for stmt in chain.body for n in stmt.unique() if isinstance(n, Aref)]
    return any(not mentions(ref.index, (outer.name, inner.name)) for ref in refs)


def _are_summed(program: LoopProgram, chain: Chain, outer: For, inner: For) -> bool:
    """Are they the sum of a product? Then it is one longer sum."""
    stores = [store.ref for store in stores_in(chain.body)]
    return contraction(program, chain) is not None and not any(
        mentions(ref.index, (outer.name, inner.name)) for ref in stores)


def _axis(ref: Aref | Vref, array: Array | None, outer: For, inner: For) -> int | None:
    """The axis of the outer loop, if the inner loop covers the next axis; else None."""
    if array is None or not isinstance(ref, Aref):
        return None
    if isinstance(array, Buffer) and (array.strides or array.axes_in_memory != tuple(range(len(array.axes)))):
        return None
    extents = array.axes if isinstance(array, Buffer) else array.shape
    variables = [Var(loop.name, "i64") for loop in (outer, inner)]
    at = next((n for n, two in enumerate(pairwise(ref.index)) if list(two) == variables), None)
    others = tuple([i for n, i in enumerate(ref.index) if at is None or n not in (at, at + 1)])
    if at is None or canonical(extents[at + 1] - inner.hi) != Const(0, "i64"):
        return None
    return None if mentions(others, (outer.name, inner.name)) else at


def _are_used_alone(loop: For, names: tuple[str, str], axes: dict[str, int]) -> bool:
    """Do the loop variables occur only in indices of these arrays?"""
    return all(_is_free(stmt, names, axes) for stmt in loop.body)


def _is_free(node: object, names: tuple[str, str], axes: dict[str, int]) -> bool:
    match node:
        case Aref(buffer=buffer) if buffer in axes:
            return True
        case Var(name=name):
            return name not in names
    return all(_is_free(child, names, axes) for child in getattr(node, "children", ()))

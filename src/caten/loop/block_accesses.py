"""Block accesses: arrays of which each iteration of a loop accesses a block of its own, so that no two iterations share
an element and no access pair needs to be tested.

Iteration i stays in its block if every access has an index r + c·i + d or r - (c·i + d) along an axis, with the same c
and loop-invariant r, and 0 ≤ d < c. `disjoint_accesses` sees this from ranges alone. Here it is proven, which the last
block needs, because it ends where the array does: d < min(N - 1024·i, 1024).
"""
from __future__ import annotations

from collections.abc import Collection

from ..core.expr import Expr, Var
from .access_pairs import Touch, distinct_accesses
from .affine import Linear
from .context import Context
from .statements import For


def arrays_in_disjoint_blocks(loop: For, context: Context, arrays: Collection[str]) -> set[str]:
    """The arrays of which every iteration accesses a block of its own. `context`: what is known before the loop."""
    touches: dict[str, list[Touch]] = {}
    for touch in distinct_accesses(loop, context, frozenset(arrays)):
        touches.setdefault(touch.buffer, []).append(touch)
    return {name for name, found in touches.items()
            if any(_stay_in_blocks(loop, context, found, axis) for axis in range(len(found[0].place)))}


def _stay_in_blocks(loop: For, context: Context, touches: list[Touch], axis: int) -> bool:
    var = Var(loop.name, "i64")
    blocks: set[tuple[int, Linear]] = set()
    rests: list[Linear] = []
    for touch in touches:
        form = touch.place[axis]
        if form is None:
            return False
        step = form.terms.get((var,), 0)
        same = Linear({m: k for m, k in form.terms.items() if all(_is_invariant(atom, context) for atom in m)})
        blocks.add((step, same))
        if abs(step) <= 1 or len(blocks) > 1:               # a block of one element needs no proof
            return False
        rests.append((form - same - Linear({(var,): step})).scaled(1 if step > 0 else -1))
    ((step, _),) = blocks
    first = min([rest.constant for rest in rests])
    return all(touch.context.is_nonnegative(rest.shifted(-first))
               and touch.context.is_nonnegative(rest.scaled(-1).shifted(first + abs(step) - 1))
               for touch, rest in zip(touches, rests, strict=True))


def _is_invariant(atom: Expr, context: Context) -> bool:
    """True if the atom is loop-invariant. Indices that depend on memory the loop writes are not known at all."""
    return all(n.name in context.ranges for n in atom.unique() if isinstance(n, Var))

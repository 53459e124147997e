"""Which arrays does a loop step through in blocks, each iteration within its own? Then no two iterations share an element, and no pair of accesses
needs to be looked at.

An iteration of i keeps to its block where every access has an index r + c·i + d or r - (c·i + d) along an axis, with the same c and r, r the same in
all iterations, and 0 ≤ d < c where the access is made. `strided` says so from ranges alone; here it is proven, as it has to be of the last block,
which ends where the array does: d < min(N - 1024·i, 1024).
"""
from __future__ import annotations

from collections.abc import Collection

from ..core.expr import Expr, Var
from .affine import Linear
from .context import Context
from .statements import For
from .touches import Touch, touched


def kept_apart(loop: For, context: Context, arrays: Collection[str]) -> set[str]:
    """Those of the arrays of which every iteration keeps to a block of its own. `context`: what is known before the loop."""
    touches: dict[str, list[Touch]] = {}
    for touch in touched(loop, context, frozenset(arrays)):
        touches.setdefault(touch.buffer, []).append(touch)
    return {name for name, found in touches.items() if any(_keep_to_blocks(loop, context, found, axis) for axis in range(len(found[0].place)))}


def _keep_to_blocks(loop: For, context: Context, touches: list[Touch], axis: int) -> bool:
    var = Var(loop.name, "i64")
    blocks: set[tuple[int, Linear]] = set()
    rests: list[Linear] = []
    for touch in touches:
        form = touch.place[axis]
        if form is None:
            return False
        step = form.terms.get((var,), 0)
        same = Linear({m: k for m, k in form.terms.items() if all(_is_known_before(atom, context) for atom in m)})
        blocks.add((step, same))
        if abs(step) <= 1 or len(blocks) > 1:               # blocks of one element need no proof
            return False
        rests.append((form - same - Linear({(var,): step})).scaled(1 if step > 0 else -1))         # what falls with i falls inside its blocks, too
    ((step, _),) = blocks
    first = min([rest.constant for rest in rests])              # of a block, where the loops in it start at 0
    return all(touch.context.is_nonnegative(rest.shifted(-first)) and touch.context.is_nonnegative(rest.scaled(-1).shifted(first + abs(step) - 1))
               for touch, rest in zip(touches, rests, strict=True))


def _is_known_before(atom: Expr, context: Context) -> bool:
    """Is it computed from what is the same in all iterations? What they write is no part of a place that is known."""
    return all(n.name in context.ranges for n in atom.unique() if isinstance(n, Var))

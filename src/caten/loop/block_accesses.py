"""Block accesses: arrays of which each iteration of a loop accesses a block of its own, so that no two iterations share
an element and no access pair needs to be tested.

Iteration i stays in its block if every access has an index r + c·i + d or r - (c·i + d) along an axis, with the same c
and r, both loop-invariant, and 0 ≤ d < c. `disjoint_accesses` sees this from ranges alone. Here it is proven, which the
last block needs, because it ends where the array does: d < min(N - 1024·i, 1024). So do rows as long as a size: c = N.
"""
from __future__ import annotations

from collections.abc import Collection

from ..core.expr import Expr, Var
from .access_pairs import Touch, distinct_accesses
from .affine import Linear, of_atom
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
    forms = [touch.place[axis] for touch in touches]
    places = [form for form in forms if form is not None]
    step = places[0].coefficient(var) if places else Linear({})
    if (len(places) < len(forms) or any(form.coefficient(var) != step for form in places)
        or not all(_is_invariant(atom, context) for atom in step.atoms())
        or (step.is_constant and abs(step.constant) <= 1)):             # a block of one element needs no proof
        return False
    start = Linear({m: k for m, k in places[0].terms.items() if all(_is_invariant(atom, context) for atom in m)
                    and all(form.terms.get(m) == k for form in places)})
    falls = step.is_constant and step.constant < 0
    rests = [(form - start - step.times(of_atom(var))).scaled(-1 if falls else 1) for form in places]
    first, length = min([rest.constant for rest in rests]), step.scaled(-1) if falls else step
    return all(touch.context.is_nonnegative(rest.shifted(-first))
               and touch.context.is_nonnegative(length - rest.shifted(1 - first))
               for touch, rest in zip(touches, rests, strict=True))


def _is_invariant(atom: Expr, context: Context) -> bool:
    """True if the atom is loop-invariant. Indices that depend on memory the loop writes are not known at all."""
    return all(n.name in context.ranges for n in atom.unique() if isinstance(n, Var))

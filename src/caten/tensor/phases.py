"""Phases: the elements that windows with a step meet, in the order of their remainders.

    y[q] = Σ_a x[2 · q + a - 1] · w[a]         the gradient of x[b] sums over every second a: those with b + 1 - a even

With b = 2 · b' + φ and a = 2 · a' + (φ - 1) mod 2 it is x[2 · (q + a' - 1 - (φ - 1) // 2) + φ]: for each phase φ a
window without a step, half as long, which begins at its first tap. So the gradient is a value over φ and b', and its
elements are read at b mod 2 and b // 2.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Const, Expr, Op, index
from ..frozen import frozen
from ..loop.affine import canonical, linear
from .values import Axis, reads_of

MOST = 8                            # of the step of a window
ZERO = index(0)


@frozen
class Phased:
    """What reads an array in windows with a step, over other axes: `axes`, those of the phases among them; `at`: the
    index, that of the phases first; `replaced`: axes that are no more, over the new ones; `conds`: for which the
    replaced axes are in their range. `extents`: of the array in phases; `back`: the index in it of each element of the
    array, over `element`; `dimensions`: the axes of the array that have phases."""

    axes: tuple[Axis, ...]
    at: tuple[Expr, ...]
    replaced: dict[Expr, Expr]
    conds: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    back: tuple[Expr, ...]
    dimensions: tuple[int, ...]

    def inside(self, places: Sequence[Axis], element: Sequence[Axis]) -> dict[Expr, tuple[Expr, Expr]]:
        """That a place, over `places` with the extents above, is an element of the array; each with its two
        variables."""
        made: dict[Expr, tuple[Expr, Expr]] = {}
        for phase, n in zip(places, self.dimensions, strict=False):
            along = places[len(self.dimensions) + n]
            fact = Op("lt", (canonical(along.var * phase.extent + phase.var), element[n].extent))
            made[fact] = along.var, phase.var
        return made


def in_phases(at: Sequence[Expr], axes: Sequence[Axis], element: Sequence[Axis], weight: Expr) -> Phased | None:
    """The index of a read in phases; None where it is in no windows with a step. Windows that do not overlap are read
    at quotients and remainders as they are, unless the `weight` is a product of two arrays: that is a product of
    matrices for each phase."""
    new, found = list(axes), list(at)
    replaced: dict[Expr, Expr] = {}
    conds: list[Expr] = []
    phases: list[tuple[Axis, int]] = []
    extents, back = [a.extent for a in element], [_var(a) for a in element]
    is_product = isinstance(weight, Op) and weight.fn == "mul" and all(map(reads_of, weight.args))
    for n, component in enumerate(at):
        window = _window(component, [a for a in new if a.var not in replaced], is_product)
        if window is None or any(v.name in other.variables for k, other in enumerate(at) if k != n
                                 for v in (window[0].var, window[1].var)):
            continue
        along, inside, step, constant = window
        phase, half = Axis(f"(phase {n})", index(step)), Axis(f"(window {n})", ZERO)
        half = half.replace(extent=_quotient(inside.extent + (step - 1), step))
        first = canonical(phase.var - constant % step)             # of the taps that meet the phase
        remainder, carry = (first % step, first // step) if constant % step else (first, ZERO)
        tap = canonical(half.var * step + remainder)
        replaced[inside.var] = tap
        conds.append(Op("lt", (tap, inside.extent)))
        new = [half if a is inside else a for a in new]
        phases.append((phase, n))
        found[n] = canonical(along.var + half.var + constant // step - carry)
        extents[n] = _quotient(element[n].extent + (step - 1), step)
        back[n] = canonical(_var(element[n]) // step)
    if not phases:
        return None
    return Phased((*[p for p, _ in phases], *new), (*[p.var for p, _ in phases], *found), replaced, tuple(conds),
                  (*[p.extent for p, _ in phases], *extents),
                  (*[canonical(_var(element[n]) % p.extent) for p, n in phases], *back), tuple([n for _, n in phases]))


def _quotient(e: Expr, by: int) -> Expr:
    form = linear(canonical(e))
    return index(form.constant // by) if form.is_constant else canonical(e // by)


def _var(axis: Axis) -> Expr:
    return axis.var


def _window(e: Expr, axes: Sequence[Axis], may_be_tile: bool) -> tuple[Axis, Axis, int, int] | None:
    """The axis of an image, that of a window, the step and the constant of step · q + a + constant."""
    form = linear(canonical(e))
    own = {a.var: a for a in axes}
    steps: dict[int, Axis] = {}
    for m, c in form.terms.items():
        if len(m) != 1 or m[0] not in own or c in steps:
            return None
        steps[c] = own[m[0]]
    others = [c for c in steps if c != 1]
    if len(steps) != 2 or 1 not in steps or not 1 < others[0] <= MOST:
        return None
    along, inside, step = steps[others[0]], steps[1], others[0]
    is_tile = isinstance(inside.extent, Const) and inside.extent.value <= step
    return None if is_tile and not may_be_tile else (along, inside, step, form.constant)

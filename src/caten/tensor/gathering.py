"""Gathering: what is added to elements at an index, as a sum for each element.

    y[φ(a)] += e(a) for all a      ->      y[b] = Σ { e(a) : φ(a) = b }

The index map φ is inverted (`index_inversion`): what it determines is an index, and the rest is summed over. Windows
with a step are inverted for each remainder of the step (`phases`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..core.expr import TRUE, Expr, Var
from ..core.node import substitute
from ..loop.affine import canonical
from ..loop.context import Context
from ..loop.simplify import simplify
from .conditional_values import both, under
from .index_inversion import inverse, within
from .phases import in_phases
from .values import Axis, AxisNames, Compute, Read, Reduce, Value, reads_of


class Gathering:
    """Sums over what is added to each element of an array. `define`: a value gets a name."""

    def __init__(self, axis_names: AxisNames, context: Context, define: Callable[[Value], str]) -> None:
        self.axis_names, self.context, self.define = axis_names, context, define

    def total(self, at: Sequence[Expr], axes: Sequence[Axis], element: Sequence[Axis], cond: Expr, weight: Expr,
              dtype: str) -> str | None:
        """The value over `element` of what is added to each: `weight` at the index `at`, for all axes for which `cond`
        holds. None where the index has no inverse."""
        phased = in_phases(at, axes, element, weight)
        if phased is not None:
            places = self.axis_names.axes(phased.extents)
            total = self._gathered(phased.at, phased.axes, places, both(_all(phased.conds), substitute(
                cond, phased.replaced)), substitute(weight, phased.replaced), dtype, phased.inside(places, element))
            if total is not None:
                return self.define(Compute(dtype, tuple(element), Read(total, phased.back, dtype)))
        return self._gathered(at, axes, element, cond, weight, dtype)

    def _gathered(self, at: Sequence[Expr], axes: Sequence[Axis], element: Sequence[Axis], cond: Expr, weight: Expr,
                 dtype: str, inside: Mapping[Expr, tuple[Expr, Expr]] = MappingProxyType({})) -> str | None:
        """The value over `element` of what the elements over axes that read it at an index give to each; None where the
        index has no inverse. `inside`: what holds of the elements that anybody reads, each with the two variables that
        are in it."""
        own = [Axis(f"({a.name})", a.extent) for a in element]        # those of the readers have the same names
        found = inverse(at, axes, own, self.context)
        if found is None:
            return None
        names = {o.var: a.var for o, a in zip(own, element, strict=True)}
        over = self.axis_names.over([a.extent for a in found.free])
        names |= {a.var: p.var for a, p in zip(found.free, over, strict=True)}
        solved = {v: substitute(e, names) for v, e in found.solved.items()} | {
            a.var: names[a.var] for a in found.free}
        context = within((*element, *over), self.context)
        weight = simplify(_at_indices(weight, solved), context)
        known = context
        for fact, pair in inside.items():                   # but an array that is read there ends there, too
            if not any(all(v.name in i.variables for v in pair if isinstance(v, Var))
                       for r in reads_of(weight) + reads_of(cond) for i in r.index):
                known = known.given(fact)
        cond = simplify(_at_indices(cond, solved), known)
        inner, outer = _apart([substitute(c, names) for c in found.conds], {a.name for a in element},
                              cond.variables | weight.variables)
        cond = both(inner, cond)
        if not over:
            return self.define(Compute(dtype, tuple(element), under(both(outer, cond), weight)))
        used = [a for a in element if a.name in cond.variables | weight.variables]
        kept = self.axis_names.axes([a.extent for a in used])
        axes_of = {a.var: k.var for a, k in zip(used, kept, strict=True)}
        total = self.define(Reduce(dtype, kept, over, "add", substitute(cond, axes_of), substitute(weight, axes_of)))
        if len(used) < len(element) or outer is not TRUE:
            total = self.define(Compute(dtype, tuple(element), under(outer, Read(total, _at(used), dtype))))
        return total


def _apart(conds: Sequence[Expr], axes: set[str], used: frozenset[str]) -> tuple[Expr, Expr]:
    """Conditions that are needed where something is evaluated that uses these names, and those that are not: they have
    none of these axes."""
    inner: Expr = TRUE
    outer: Expr = TRUE
    left, names = list(conds), used & axes
    while met := [c for c in left if not names.isdisjoint(c.variables) or not c.variables & axes]:
        for c in met:
            inner, names = both(inner, c), names | (c.variables & axes)
            left.remove(c)
    for c in left:
        outer = both(outer, c)
    return inner, outer


def _all(conds: Sequence[Expr]) -> Expr:
    made: Expr = TRUE
    for c in conds:
        made = both(made, c)
    return made


def _at(axes: Sequence[Axis]) -> tuple[Expr, ...]:
    return tuple([a.var for a in axes])


def _at_indices(e: Expr, solved: Mapping[Expr, Expr]) -> Expr:
    """An expression with other indices, in canonical form."""
    memo: dict[Expr, Expr] = dict(solved)

    def go(n: Expr) -> Expr:
        if n not in memo:
            new: Expr = n.map(go)
            memo[n] = canonical(new) if new.dtype == "i64" and new is not n else new
        return memo[n]
    return go(e)

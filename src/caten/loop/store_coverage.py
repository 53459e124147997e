"""Store coverage: show that an element is among those that stores set. The iteration that sets it is solved from its
index and shown to run.

    (for i 0 M (for j 0 4 (setf (aref y (+ (* 4 i) j)) …)))   y[e], 0 ≤ e < 4·M:  i = ⌊e / 4⌋ < M,  j = e - 4·i < 4

Where a store covers some elements only, the other stores must cover the rest. Each program has a limit on proofs.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.expr import Expr, Op, Var, index
from .affine import Linear, constant, expression, linear, of_atom
from .context import Context
from .definite_stores import Count, Store
from .integer_sets import Constraint
from .value_ranges import GREATEST_BYTES

MOST_OPEN = 3                  # unproven conditions of one store that may be left to others

Element = tuple[Linear, ...]
Fact = tuple[str, Linear] | tuple[Expr, bool]


class Coverage:
    """Answers coverage questions until its number of proofs is spent."""

    def __init__(self, most: int) -> None:
        self.left = most

    def covers(self, context: Context, element: Element, stores: Sequence[Store]) -> bool:
        """True if one of the stores provably sets the element, wherever the assumptions hold."""
        if not stores:
            return self.left > 0 and bool(element) and context.excludes(tuple(map(Constraint, element)))
        best: tuple[list[Fact], Store] | None = None
        for store in stores:
            facts = conditions(store, element)
            unproven: list[Fact] = []
            for fact in facts if facts is not None else ():
                if not self.proves(context, fact):
                    unproven.append(fact)
                    if len(unproven) > MOST_OPEN:
                        break
            if facts is not None and not unproven:
                return True
            if facts is not None and len(unproven) <= MOST_OPEN and (best is None or len(unproven) < len(best[0])):
                best = unproven, store
        if best is None or self.left <= 0:
            return self.covers(context, element, ())
        unproven, taken = best
        rest = [s for s in stores if s is not taken]
        return all(self.covers(other, element, rest) for fact in unproven for other in without(context, fact))

    def proves(self, context: Context, fact: Fact) -> bool:
        """True if the fact is shown to hold wherever the assumptions do."""
        if fact[0] == "=" and fact[1] == constant(0):
            return True
        if self.left <= 0:
            return False
        self.left -= 1
        match fact:
            case "=", Linear() as form:
                known = settled(context, form)
                return all(context.is_nonnegative(side) for side in (known, known.scaled(-1)))
            case ">=", Linear() as form:
                return context.is_nonnegative(settled(context, form))
            case Expr() as cond, bool() as holds:
                return context.proves(cond) if holds else context.refutes(cond)
        raise TypeError(f"{fact!r} is no fact")


def without(context: Context, fact: Fact) -> list[Context]:
    """The cases in which the fact does not hold."""
    match fact:
        case "=", Linear() as form:
            known = settled(context, form)
            return [context.where_nonnegative(side.shifted(-1)) for side in (known, known.scaled(-1))]
        case ">=", Linear() as form:
            return [context.where_nonnegative(settled(context, form).scaled(-1).shifted(-1))]
        case Expr() as cond, bool() as holds:
            return [context.given(cond, not holds)]
    raise TypeError(f"{fact!r} is no fact")


def settled(context: Context, form: Linear) -> Linear:
    """The form with the context's values for its atoms."""
    total = constant(form.constant)
    for m, c in form.terms.items():
        part = constant(c)
        for atom in m:
            part = part.times(context.linear(atom))
        total = total + part
    return total


def conditions(store: Store, element: Element) -> list[Fact] | None:
    """The conditions under which the iteration solved from the element sets it; None if none can be solved."""
    values = iteration(store, element)
    if values is None:
        return None
    done = store.replaced(values)
    return [*[("=", i - e) for i, e in zip(done.index, element, strict=True)],
            *[(">=", values[c.var]) for c in store.counts], *[(">=", limit) for c in done.counts for limit in c.limits],
            *[(cond, holds) for cond, holds in done.guards]]


def iteration(store: Store, element: Element) -> dict[Expr, Linear] | None:
    """Candidate iteration numbers of the loops, solved from the index of an element; `conditions` checks them."""
    open_: dict[Expr, Count] = {c.var: c for c in store.counts}
    equations = [i - e for i, e in zip(store.index, element, strict=True)]
    parts = _parts(equations, open_)                       # ⌊i / 4⌋ etc. are unknowns at first
    equations += _divisions(parts)
    unknown: dict[Expr, Count | None] = {**open_, **dict.fromkeys(parts)}
    values: dict[Expr, Linear] = {}
    while any(name in unknown for name in open_):
        solved = _solved(equations, unknown)
        if solved is None:
            rest = [name for name in unknown if name in open_]
            if any(name in a.unique() for a in parts if a in unknown
                   for name in rest) or any(_unknowns(e, unknown) for e in equations):
                return None
            solved = rest[0], constant(0)                  # the index does not depend on the loop: its first iteration
        name, value = solved
        del unknown[name]
        values[name] = value
        equations = [e.replace(name, value) for e in equations]
    return {name: value for name, value in values.items() if name in open_}


def _parts(equations: Iterable[Linear], open_: Iterable[Expr]) -> list[Expr]:
    """The atoms that contain an unknown."""
    names = set(open_)
    return list(dict.fromkeys([a for e in equations
                               for a in e.atoms() if a not in names and not names.isdisjoint(a.unique())]))


def _divisions(parts: Sequence[Expr]) -> list[Linear]:
    """a = b · ⌊a / b⌋ + a mod b, where both occur."""
    found = []
    for atom in parts:
        if isinstance(atom, Op) and atom.fn == "mod":
            whole = next((p for p in parts if isinstance(p, Op) and p.fn == "floordiv" and p.args == atom.args), None)
            if whole is not None:
                found.append(linear(atom.args[0]) - linear(atom.args[1]).times(of_atom(whole)) - of_atom(atom))
    return found


def _unknowns(equation: Linear, unknown: Iterable[Expr]) -> list[Expr]:
    names = set(unknown)
    return list(dict.fromkeys([a for a in equation.atoms() if a in names]))


def _solved(equations: Sequence[Linear], unknown: dict[Expr, Count | None]) -> tuple[Expr, Linear] | None:
    """Solve for one unknown: from an equation with no other unknown and a unit factor; else for the unknown with the
    greatest factor, where the other terms are too small to matter, as in 4·i + j with j < 4."""
    having = [(e, names) for e in equations
              if (names := _unknowns(e, unknown)) and all(sum(a in unknown for a in m) <= 1 for m in e.terms)]
    for equation, names in having:
        factor = equation.coefficient(names[0])
        if len(names) == 1 and factor.is_constant and abs(factor.constant) == 1:
            return names[0], equation.replace(names[0], constant(0)).scaled(-factor.constant)
    for equation, names in sorted(having, key=lambda row: len(row[1])):
        counts = [unknown[n] for n in names]
        if None in counts:
            continue
        lead = max(names, key=lambda n: _size(equation.coefficient(n)))
        factor = equation.coefficient(lead)
        if _sign(factor) < 0:
            equation, factor = equation.scaled(-1), factor.scaled(-1)
        rest, least = equation.replace(lead, constant(0)), constant(0)
        for count in counts:
            if count is not None and count.var is not lead:
                by = equation.coefficient(count.var)
                rest = rest.replace(count.var, constant(0))
                if _sign(by) < 0 and count.last is not None and not _unknowns(count.last, unknown):
                    least = least + by.times(count.last)
        return lead, _floordiv(rest.scaled(-1) - least, factor)
    return None


def _floordiv(form: Linear, by: Linear) -> Linear:
    if by.is_constant and by.constant == 1:
        return form
    return of_atom(Op("floordiv", (expression(form), expression(by))))


def _size(factor: Linear) -> tuple[int, int, int]:
    return factor.degree, len(factor.terms), max([abs(factor.constant), *map(abs, factor.terms.values())])


def _sign(factor: Linear) -> int:
    """The sign of a factor that is a number, or sizes times one."""
    return -1 if (next(iter(factor.terms.values())) if factor.terms else factor.constant) < 0 else 1


def element_of(shape: Sequence[Expr], context: Context) -> tuple[Context, Element]:
    """A generic element of an array: names for its index, and the context that they lie in bounds."""
    axes = [Var(f"{axis}.e", "i64") for axis in range(len(shape))]
    for var, extent in zip(axes, shape, strict=True):
        form = context.linear(extent)
        most = min(context.interval(form)[1], GREATEST_BYTES)
        context = context.given(index(0) <= var).given(var < index(most))
        context = context.where_nonnegative((form - of_atom(var)).shifted(-1))
    return context, tuple(map(of_atom, axes))

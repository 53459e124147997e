"""Is a form not negative because one bound leads to the next? 8·p + l < N where l < 8, p < q and 8·q ≤ N: most questions about an index are of this
kind, and need no system of all that is known.

An atom of the form is replaced by what bounds it, the innermost variable first: where L ≥ 0 is known and f - k·L with k > 0 lacks the atom, f is not
less than that. This is Fourier's elimination along one path.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op, Var
from .affine import Linear, of_atom
from .proof import NEAR, Clause, Range

MOST_FORMS = 24                # that are looked at for one question
MOST_TIMES = 64                # by how much a form is multiplied so that a bound goes into it


class Bounds(Protocol):
    """What is asked of a context."""

    @property
    def ranges(self) -> Mapping[str, Range]: ...
    @property
    def clauses(self) -> tuple[Clause, ...]: ...
    def linear(self, expr: Expr) -> Linear: ...
    def interval(self, form: Linear) -> Range: ...


def is_nonnegative(known: Bounds, form: Linear) -> bool:
    """Do bounds, one after the other, show that the form is not negative? False where they do not."""
    inner = {name: n for n, name in enumerate(known.ranges)}
    return _Chain(known, inner).leads(form)


class _Chain:
    """One question. `inner`: how far in a variable was made known."""

    def __init__(self, known: Bounds, inner: Mapping[str, int]):
        self.known, self.inner, self.left = known, inner, MOST_FORMS

    def leads(self, form: Linear) -> bool:
        if self.known.interval(form)[0] >= 0:
            return True
        self.left -= 1
        single = [m[0] for m in form.terms if len(m) == 1]
        if self.left < 0 or form.degree > 2 or not single:    # what leads through products is for systems of all that is known
            return False
        atom = max(single, key=self._turn)
        match atom:
            case Op(fn="min" | "max" as fn, args=(a, b)) if (fn == "min") == (form.terms[(atom,)] > 0) and is_integer(atom.dtype):
                return all(self.leads(form.replace(atom, self.known.linear(side))) for side in (a, b))       # it is one of them
        return any(self.leads(less) for bound in self._bounds(atom) if (less := _without(form, atom, bound)) is not None)

    def _turn(self, atom: Expr) -> tuple[int, int]:
        """What goes first: what is furthest in, and of that what is computed from most."""
        if isinstance(atom, Var):
            return self.inner.get(atom.name, -1), 0
        return max([self.inner.get(n.name, -1) for n in atom.unique() if isinstance(n, Var)], default=-1), atom.written_out

    def _bounds(self, atom: Expr) -> Iterator[Linear]:
        """Forms with this atom that are not negative."""
        for clause in self.known.clauses:
            if len(clause.alternatives) == 1 and atom in clause.atoms:
                for c in clause.alternatives[0]:
                    if (atom,) in c.linear.terms and c.linear.degree <= 2:
                        yield c.linear
                        if c.equal:
                            yield c.linear.scaled(-1)
        yield from self._laws(atom)
        lo, hi = self.known.interval(of_atom(atom))
        if hi < NEAR:
            yield of_atom(atom).scaled(-1).shifted(hi)
        if lo > -NEAR:
            yield of_atom(atom).shifted(-lo)

    def _laws(self, atom: Expr) -> Iterable[Linear]:
        it = of_atom(atom)
        match atom:
            case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0 and is_integer(atom.dtype):
                rest = self.known.linear(a) - it.scaled(d)
                return rest, rest.scaled(-1).shifted(d - 1)
            case Op(fn="min", args=(a, b)) if is_integer(atom.dtype):
                return self.known.linear(a) - it, self.known.linear(b) - it
            case Op(fn="max", args=(a, b)) if is_integer(atom.dtype):
                return it - self.known.linear(a), it - self.known.linear(b)
        return ()


def _without(form: Linear, atom: Expr, bound: Linear) -> Linear | None:
    """A form without the atom that has a multiple of this one as an upper bound, by way of `bound` ≥ 0; None where that bounds the other side."""
    own, by = form.terms[(atom,)], bound.terms.get((atom,), 0)
    if not by or (own > 0) != (by > 0) or bound.degree > 2:
        return None
    if own % by:
        times = abs(by)
        if times > MOST_TIMES:
            return None
        form, own = form.scaled(times), own * times
    return form.plus(bound, -(own // by))

"""Bound chains: prove that a form is ≥ 0 by replacing one atom after the other by its bound: 8·p + l < N where l < 8, p
< q and 8·q ≤ N. Most bounds checks are of this kind and need no system of constraints.

The innermost variable goes first. Where L ≥ 0 is known and f - k·L with k > 0 lacks the atom, f ≥ f - k·L. This is
Fourier–Motzkin elimination along a single path. Where the atom has factors, as k in (W - 2)·k + i < (H - 2)·(W - 2),
its greatest value takes its place if the factors are known to be ≤ 0, its least if they are ≥ 0. A quotient ⌊a / d⌋ is
below n where a < n·d, and n at least where a ≥ n·d.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op, Var
from .affine import Linear, of_atom
from .refutation import NEAR, Alternative, Clause, Range

MOST_FORMS = 12                # per proof
MOST_OF_ROWS = 20              # per proof about arrays of three and more axes that are read as one row
MOST_DEGREE = 4                # of products that are looked at
OF_ROWS = 3                    # degree of the bound of an array of three axes that is read as one row: the least one
MOST_TIMES = 64                # greatest factor for which a form is scaled to match a bound


class Bounds(Protocol):
    """The part of a context that a chain uses."""

    @property
    def ranges(self) -> Mapping[str, Range]: ...
    def about(self, atom: Expr) -> list[tuple[int, Clause]]: ...
    def linear(self, expr: Expr) -> Linear: ...
    def interval(self, form: Linear) -> Range: ...


def is_nonnegative(known: Bounds, form: Linear) -> bool:
    """True if a chain of bounds proves that the form is ≥ 0."""
    inner = {name: n for n, name in enumerate(known.ranges)}
    chain = _Chain(known, inner)
    if form.degree >= OF_ROWS:
        chain.left = MOST_OF_ROWS
    return chain.proves(form) or (chain.left < 0 and _Chain(known, inner, of_numbers=True).proves(form))


class _Chain:
    """One proof. `inner`: the nesting depth of each variable. `of_numbers`: only by the ranges of atoms, for a form of
    which there are too many chains of others."""

    def __init__(self, known: Bounds, inner: Mapping[str, int], of_numbers: bool = False):
        self.known, self.inner, self.left, self.of_numbers = known, inner, MOST_FORMS, of_numbers
        self.gone: list[Expr] = []                         # the atoms that are replaced: no bound brings them back
        self.decides = False                               # which alternative of a clause is left

    def proves(self, form: Linear) -> bool:
        if self.known.interval(form)[0] >= 0:
            return True
        self.left -= 1
        if self.left < 0:
            return False
        return (self._by_terms(form) or self._by_quotient(form)
                or (MOST_DEGREE >= form.degree > 1 and self._by_factors(form))
                or (form.degree >= OF_ROWS and self._by_terms(form, form.degree))
                or (form.degree > OF_ROWS and self._by_factors(form, form.degree - 1)))

    def _by_terms(self, form: Linear, degree: int = 2) -> bool:
        """Bounds, of at most this degree, in the place of the innermost atom that is a term by itself."""
        single = [m[0] for m in form.terms if len(m) == 1]
        if form.degree > degree or not single:
            return False
        atom = max(single, key=self._turn)
        if any(len(m) > 1 and atom in m for m in form.terms) and self._by_factors(form):       # not a part of 2·k - W·k
            return True
        match atom:
            case Op("min" | "max" as fn, (a, b)) if is_integer(a.dtype) and (fn == "min") == (form.terms[(atom,)] > 0):
                return all(self.proves(form.replace(atom, self.known.linear(side))) for side in (a, b))
        return any(self._proves_without(atom, less)
                   for bound in self._bounds(atom, degree) if (less := _without(form, atom, bound)) is not None)

    def _proves_without(self, atom: Expr, form: Linear) -> bool:
        """The same of a form in which an atom was replaced."""
        self.gone.append(atom)
        found = self.proves(form)
        self.gone.pop()
        return found

    def _by_quotient(self, form: Linear) -> bool:
        """The form n - ⌊a / d⌋ is ≥ 0 where d > 0 and a < (n + 1)·d; the form n + ⌊a / d⌋ where d > 0 and a + n·d ≥ 0,
        as for rows that are read from the last to the first. The form n - k·m + k·⌊(a + d·m) / d⌋ is n + k·⌊a / d⌋:
        affine forms have no term below 0 inside of a quotient, so that one outside may hide that both parts are ≥ 0."""
        for atom in form.atoms():
            match atom:
                case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0 and is_integer(atom.dtype) and (
                        form.terms.get((atom,), 0) > 1):
                    k, whole = form.terms[(atom,)], self.known.linear(a)
                    rest = form - of_atom(atom).scaled(k)
                    inside = Linear({m: -(c // k) for m, c in rest.terms.items() if c < 0 and m in whole.terms},
                                    -(rest.constant // k) if rest.constant < 0 < whole.constant else 0)
                    if (inside.terms or inside.constant) and (
                            self.proves(rest + inside.scaled(k)) and self.proves(whole - inside.scaled(d))):
                        return True
                case Op(fn="floordiv", args=(a, d)) if is_integer(atom.dtype):
                    sign, by, whole = form.coefficient(atom), self.known.linear(d), self.known.linear(a)
                    rest = form - of_atom(atom).times(sign)
                    at_least = (rest.shifted(1).times(by).shifted(-1) - whole if sign == Linear({}, -1) else
                                rest.times(by) + whole if sign == Linear({}, 1) else None)
                    if at_least is not None and self.proves(by.shifted(-1)) and self.proves(at_least):
                        return True
        return False

    def _by_factors(self, form: Linear, degree: int = 2) -> bool:
        """Bounds, of at most this degree, in the place of the innermost atom, with all that it is multiplied by."""
        atom = max(form.atoms(), key=self._turn)
        if any(m.count(atom) > 1 for m in form.terms):
            return False
        factor = form.coefficient(atom)
        low, high = self.known.interval(factor)
        rises = low >= 0 or (high > 0 and self._apart(factor))
        falls = high <= 0 or (not rises and self._apart(factor.scaled(-1)))
        if not rises and not falls:
            return False
        match atom:
            case Op("min" | "max" as fn, (a, b)) if is_integer(atom.dtype) and (fn == "min") == rises:
                return all(self.proves(form.replace(atom, self.known.linear(side))) for side in (a, b))
        if factor.is_constant:                             # the equation of a row's length may be of any degree
            left = [((len(bound.terms) == 1, len(less.terms), -less.constant), less)
                    for bound in self._bounds(atom, form.degree) if (less := _without(form, atom, bound)) is not None]
            return any(self._proves_without(atom, less) for _, less in sorted(left, key=lambda each: each[0]))
        for bound in self._bounds(atom, degree):
            by = bound.terms.get((atom,), 0)
            if (not by or not (rises if by > 0 else falls) or any(atom in m and len(m) > 1 for m in bound.terms)
                or any(c % by for c in (*factor.terms.values(), factor.constant))):
                continue
            times = Linear({m: c // by for m, c in factor.terms.items()}, factor.constant // by)
            if self._proves_without(atom, form - bound.times(times)):
                return True
        return False

    def _apart(self, form: Linear) -> bool:
        """Is a form shown to be ≥ 0 by terms, in a proof of its own?"""
        gone, self.gone = self.gone, []
        found = self._by_terms(form)
        self.gone = gone
        return found

    def _turn(self, atom: Expr) -> tuple[int, int]:
        """The elimination order: innermost first, then the largest expression."""
        if isinstance(atom, Var):
            return self.inner.get(atom.name, -1), 0
        return max([self.inner.get(n.name, -1) for n in atom.unique() if isinstance(n, Var)],
                   default=-1), atom.written_out

    def _bounds(self, atom: Expr, degree: int = 2) -> Iterator[Linear]:
        """Forms ≥ 0, of at most this degree, that contain this atom: those that became known last are first."""
        for _, clause in () if self.of_numbers else reversed(self.known.about(atom)):
            if (left := self._left(clause)) is not None:
                for c in left:
                    if (atom,) in c.linear.terms and c.linear.degree <= degree and not any(
                            a in self.gone for a in c.linear.atoms()):
                        yield c.linear
                        if c.equal:
                            yield c.linear.scaled(-1)
        if not self.of_numbers:
            yield from self._laws(atom)
        lo, hi = self.known.interval(of_atom(atom))
        if hi < NEAR:
            yield of_atom(atom).scaled(-1).shifted(hi)
        if lo > -NEAR:
            yield of_atom(atom).shifted(-lo)

    def _left(self, clause: Clause) -> Alternative | None:
        """The alternative of a clause that is left, the others being outside of their ranges; None if several are."""
        if len(clause.alternatives) == 1:
            return clause.alternatives[0]
        if self.decides:
            return None
        self.decides = True
        left = [a for a in clause.alternatives if not any(self._is_below_zero(c.linear) for c in a if not c.equal)]
        self.decides = False
        return left[0] if len(left) == 1 else None

    def _is_below_zero(self, form: Linear) -> bool:
        """Is a form of one size known to be < 0?"""
        above = form.scaled(-1).shifted(-1)
        return len(form.terms) == 1 and (self.known.interval(above)[0] >= 0 or self._by_terms(above))

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
    """The form with `atom` eliminated by the bound `bound` ≥ 0; None if it bounds the other side."""
    own, by = form.terms[(atom,)], bound.terms.get((atom,), 0)
    if not by or (own > 0) != (by > 0):
        return None
    if own % by:
        times = abs(by)
        if times > MOST_TIMES:
            return None
        form, own = form.scaled(times), own * times
    return form.plus(bound, -(own // by))

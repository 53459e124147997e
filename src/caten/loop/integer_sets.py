"""Integer feasibility: Fourier–Motzkin elimination with equality substitution, gcd tightening and a work budget.

The answers are certain: `Empty` by elimination over tightened integers, `Point` by a witness that satisfies every
constraint; otherwise `Unknown`. Equalities without a unit coefficient are solved by the change of variables of Pugh's
Omega test (1991).
"""
from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple

from ..frozen import frozen
from .affine import Linear, Monomial

MAX_ROWS = 250                 # inequalities alive at once
MAX_WORK = 6000                # pairs combined in one decision


class Constraint(NamedTuple):
    """linear ≥ 0, or linear = 0."""

    linear: Linear
    equal: bool = False

    def __repr__(self) -> str:
        return f"{self.linear!r} {'=' if self.equal else '>='} 0"


@frozen
class Empty:
    """No integer point satisfies the constraints."""


@frozen
class Point:
    """A point that satisfies the constraints. Monomials are variables: the caller checks that products agree."""

    values: dict[Monomial, int]


@frozen
class Unknown:
    """Neither was shown."""


Terms = dict[int, int]                         # variable -> coefficient
Key = tuple[tuple[int, int], ...]              # the same, in order
Row = tuple[Key, int]                          # and a constant
Step = tuple[int, tuple[Terms, int] | None,
             list[Row]]       # an eliminated variable: its value, or the rows that bound it


class _Contradiction(Exception):
    """The rows contradict each other."""


def decide(constraints: Iterable[Constraint]) -> Empty | Point | Unknown:
    """Decide whether a conjunction of linear constraints has an integer solution."""
    return System(constraints).decide()


class System:
    """A prepared conjunction of constraints: equalities are solved, inequalities are indexed by the variables that they
    bound, divided by the gcd of their coefficients (the constant rounded down), and the strongest of parallel ones."""

    def __init__(self, constraints: Iterable[Constraint] = ()) -> None:
        self.names: dict[Monomial, int] = {}
        self.variables = 0                                       # all of them, named or not
        self.equal: list[tuple[Terms, int]] = []                 # unsolved equalities
        self.rows: dict[Key, int] = {}                           # key + constant ≥ 0
        self.lower: dict[int, dict[Key, int]] = {}      # variable -> the rows that bound it below, and its coefficient
        self.upper: dict[int, dict[Key, int]] = {}
        self.loose: list[int] = []                               # variables that may be bounded on one side only
        self.trail: list[Step] = []                              # to recover the eliminated variables
        self.work = 0                                            # row pairs combined by the last decision
        self.is_contradictory = False
        self._add(constraints)

    def adding(self, constraints: Iterable[Constraint]) -> System:
        """The system with further constraints."""
        more = self._copy()
        more._add(constraints)
        return more

    def decide(self) -> Empty | Point | Unknown:
        """Decide whether there is an integer solution."""
        if self.is_contradictory:
            return Empty()
        rest = self._copy()
        try:
            decided = rest.eliminate()
        except _Contradiction:
            return Empty()
        finally:
            self.work = rest.work
        values = _witness(rest.trail) if decided else None
        if values is None:
            return Unknown()
        return Point({m: values.get(v, 0) for m, v in self.names.items()})

    def _copy(self) -> System:
        other = System.__new__(System)
        other.__dict__.update(self.__dict__)
        other.names, other.rows = self.names.copy(), self.rows.copy()
        other.equal, other.loose, other.trail = self.equal.copy(), self.loose.copy(), self.trail.copy()
        other.lower = {v: rows.copy() for v, rows in self.lower.items() if rows}
        other.upper = {v: rows.copy() for v, rows in self.upper.items() if rows}
        return other

    def _add(self, constraints: Iterable[Constraint]) -> None:
        try:
            for c in constraints:
                terms, const = {self.variable(m): k for m, k in c.linear.terms.items()}, c.linear.constant
                for var, value, _ in self.trail:
                    if value is not None and var in terms:
                        terms, const = _substituted(terms, const, var, *value)
                if c.equal:
                    self.equal.append((terms, const))
                else:
                    self.bound(terms, const)
            self.solve_equalities()
        except _Contradiction:
            self.is_contradictory = True

    def variable(self, monomial: Monomial) -> int:
        """The number of a monomial."""
        if monomial not in self.names:
            self.names[monomial] = self.variables
            self.variables += 1
        return self.names[monomial]

    def bound(self, terms: Terms, const: int) -> None:
        """Add terms + const ≥ 0, and the equality that it forms with the opposite row."""
        if not terms:
            if const < 0:
                raise _Contradiction
            return
        divisor = gcd(*terms.values())
        key = tuple(sorted(terms.items() if divisor == 1 else [(v, c // divisor) for v, c in terms.items()]))
        const //= divisor
        known = self.rows.get(key)
        if known is not None and known <= const:
            return
        self.rows[key] = const
        if known is None:
            for v, c in key:
                one, other = (self.lower, self.upper) if c > 0 else (self.upper, self.lower)
                one.setdefault(v, {})[key] = c
                if not other.get(v):
                    self.loose.append(v)
        opposite = self.rows.get(tuple([(v, -c) for v, c in key]))
        if opposite is not None and const + opposite <= 0:
            if const + opposite < 0:
                raise _Contradiction
            self.equal.append((dict(key), const))

    def take(self, keys: Iterable[Key]) -> list[Row]:
        """Remove rows and return them."""
        taken = [(key, self.rows.pop(key)) for key in keys]
        for key, _ in taken:
            for v, c in key:
                side = (self.lower if c > 0 else self.upper)[v]
                del side[key]
                if not side:
                    self.loose.append(v)
        return taken

    def eliminate(self) -> bool:
        """Eliminate variable after variable. False when the budget is spent."""
        self.work = 0
        while True:
            self.solve_equalities()
            self.drop_loose()
            if not self.rows:
                return True
            var = self.cheapest()
            lower, upper = self.lower[var], self.upper[var]
            self.work += len(lower) * len(upper)
            if self.work > MAX_WORK or len(self.rows) + (len(lower) - 1) * (len(upper) - 1) - 1 > MAX_ROWS:
                return False
            bounds = self.take([*lower, *upper])
            self.trail.append((var, None, bounds))
            pairs = [(dict(key), const) for key, const in bounds]
            for lo in pairs:
                if lo[0][var] > 0:
                    for hi in pairs:
                        if hi[0][var] < 0:
                            self.bound(*_combine(lo, hi, var))

    def solve_equalities(self) -> None:
        """Substitute each equality into the rows."""
        while self.equal:
            terms, const = self.equal.pop()
            if not terms:
                if const:
                    raise _Contradiction
                continue
            divisor = gcd(*terms.values())
            if const % divisor:
                raise _Contradiction
            if divisor > 1:
                terms, const = {v: c // divisor for v, c in terms.items()}, const // divisor
            var = min(terms, key=lambda v: (abs(terms[v]), v))
            if abs(terms[var]) == 1:
                sign = -terms[var]
                value: Terms = {v: sign * c for v, c in terms.items() if v != var}
                rest = sign * const
            else:                       # x = t - Σ floor(aᵢ/a)·xᵢ - floor(c/a) leaves remainders below a
                a, t = terms[var], self.variables
                self.variables += 1
                value, rest = {t: 1, **{v: -(c // a) for v, c in terms.items() if v != var and c // a}}, -(const // a)
                self.equal.append((terms, const))
            self.trail.append((var, (value, rest), []))
            self.equal[:] = [_substituted(t, c, var, value, rest) if var in t else (t, c) for t, c in self.equal]
            for key, at in self.take([*self.lower.get(var, ()), *self.upper.get(var, ())]):
                self.bound(*_substituted(dict(key), at, var, value, rest))

    def drop_loose(self) -> None:
        """Drop the rows of variables that are bounded on one side only: these rows can always be met."""
        while self.loose:
            var = self.loose.pop()
            lower, upper = self.lower.get(var), self.upper.get(var)
            if (lower or upper) and not (lower and upper):
                self.trail.append((var, None, self.take([*(lower or upper or ())])))

    def cheapest(self) -> int:
        """The variable to eliminate next: one with exact elimination if possible, and the fewest new rows."""
        growth = sorted([((len(rows) - 1) * (len(self.upper[v]) - 1), v) for v, rows in self.lower.items() if rows])
        return next((v for _, v in growth if self.is_exact(v)), growth[0][1])

    def is_exact(self, var: int) -> bool:
        """True if every real range of the variable contains an integer (the exact projection of Fourier–Motzkin)."""
        return set(self.lower[var].values()) == {1} or set(self.upper[var].values()) == {-1}


def _combine(lo: tuple[Terms, int], hi: tuple[Terms, int], var: int) -> tuple[Terms, int]:
    """Combine a lower and an upper bound of `var` into a row without it."""
    a, b = lo[0][var], -hi[0][var]
    g = gcd(a, b)
    a, b = a // g, b // g
    terms = {v: b * c for v, c in lo[0].items() if v != var}
    for v, c in hi[0].items():
        if v != var:
            total = terms.get(v, 0) + a * c
            if total:
                terms[v] = total
            else:
                del terms[v]
    return terms, b * lo[1] + a * hi[1]


def _substituted(terms: Terms, const: int, var: int, value: Terms, rest: int) -> tuple[Terms, int]:
    """terms + const with value + rest for `var`."""
    factor = terms[var]
    out = {v: c for v, c in terms.items() if v != var}
    for v, c in value.items():
        total = out.get(v, 0) + factor * c
        if total:
            out[v] = total
        else:
            out.pop(v, None)
    return out, const + factor * rest


def _witness(trail: list[Step]) -> dict[int, int] | None:
    """Values for all variables, last eliminated first; None if no integer lies between the rounded bounds."""
    values: dict[int, int] = {}
    for var, value, bounds in reversed(trail):
        if value is not None:
            values[var] = value[1] + sum([c * values.setdefault(v, 0) for v, c in value[0].items()])
            continue
        least: int | None = None
        most: int | None = None
        for key, total in bounds:
            factor = 0
            for v, c in key:
                if v == var:
                    factor = c
                else:
                    total += c * values.setdefault(v, 0)
            if factor > 0:
                least = -(total // factor) if least is None else max(least, -(total // factor))
            else:
                most = total // -factor if most is None else min(most, total // -factor)
        if least is not None and most is not None and least > most:
            return None
        values[var] = least if least is not None else most if most is not None else 0
    return values

"""Is there an integer point? Fourier–Motzkin elimination with equality substitution, gcd tightening and a budget.

The answers are certain: `Empty` by elimination over tightened integers, `Point` by a witness that satisfies every constraint. What neither shows
is `Unknown`. Equalities without a unit coefficient are solved by the change of variables of Euclid's algorithm, as in Pugh's Omega test (1991).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from .affine import Linear, Monomial

MAX_ROWS = 250                 # inequalities alive at once
MAX_WORK = 6000                # pairs combined in one decision


@dataclass(frozen=True)
class Constraint:
    """linear ≥ 0, or linear = 0."""

    linear: Linear
    equal: bool = False

    def __repr__(self) -> str:
        return f"{self.linear!r} {'=' if self.equal else '>='} 0"


@dataclass(frozen=True)
class Empty:
    """No integer point satisfies the constraints."""


@dataclass(frozen=True)
class Point:
    """A point that does. Monomials are variables of their own: a caller that has products checks that they agree."""

    values: dict[Monomial, int]


@dataclass(frozen=True)
class Unknown:
    """Neither was shown."""


Row = tuple[dict[int, int], int]       # variable -> coefficient, constant


class _Contradiction(Exception):
    """The rows exclude each other."""


def decide(constraints: Sequence[Constraint]) -> Empty | Point | Unknown:
    """Does a conjunction of linear constraints over integers have a solution?"""
    names: dict[Monomial, int] = {}
    equal: list[Row] = []
    least: list[Row] = []
    for c in constraints:
        row = ({names.setdefault(m, len(names)): k for m, k in c.linear.terms.items()}, c.linear.constant)
        (equal if c.equal else least).append(row)
    trail: list[tuple[int, Row | None, list[Row]]] = []
    try:
        decided = _eliminate(equal, least, len(names), trail)
    except _Contradiction:
        return Empty()
    values = _witness(trail) if decided else None
    if values is None:
        return Unknown()
    return Point({m: values.get(v, 0) for m, v in names.items()})


def _eliminate(equal: list[Row], least: list[Row], fresh: int, trail: list[tuple[int, Row | None, list[Row]]]) -> bool:
    """Eliminate variable after variable; `trail` gets how to find each again. False when the budget is spent."""
    work = 0
    while True:
        while equal:
            row = _tight_equality(equal.pop())
            if not row[0]:
                continue
            terms, const = row
            var = min(terms, key=lambda v: (abs(terms[v]), v))
            if abs(terms[var]) == 1:
                sign = -terms[var]
                value: Row = ({v: sign * c for v, c in terms.items() if v != var}, sign * const)
            else:                       # x = t - Σ floor(aᵢ/a)·xᵢ - floor(c/a) leaves remainders below a
                a, fresh = terms[var], fresh + 1
                value = ({fresh: 1, **{v: -(c // a) for v, c in terms.items() if v != var and c // a}}, -(const // a))
                equal.append(row)
            trail.append((var, value, []))
            equal[:] = [_substitute(r, var, value) for r in equal]
            least[:] = [_substitute(r, var, value) for r in least]
        least, implied = _tight_inequalities(least)
        if implied:
            equal.extend(implied)
            continue
        if not least:
            return True
        var, lower, upper = _cheapest(least)
        work += len(lower) * len(upper)
        trail.append((var, None, lower + upper))
        least = [r for r in least if var not in r[0]]
        if work > MAX_WORK or len(least) + len(lower) * len(upper) > MAX_ROWS:
            return False
        least.extend(_combine(lo, hi, var) for lo in lower for hi in upper)


def _tight_equality(row: Row) -> Row:
    terms, const = row
    divisor = gcd(*terms.values()) if terms else 0
    if not terms:
        if const:
            raise _Contradiction
        return row
    if const % divisor:
        raise _Contradiction
    return ({v: c // divisor for v, c in terms.items()}, const // divisor) if divisor > 1 else row


def _tight_inequalities(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows divided by their gcd (constants rounded down: only integers count), the weaker of parallel ones dropped; and the equalities
    that two opposite rows imply."""
    best: dict[tuple[tuple[int, int], ...], int] = {}
    for terms, const in rows:
        if not terms:
            if const < 0:
                raise _Contradiction
            continue
        divisor = gcd(*terms.values())
        key = tuple(sorted(terms.items() if divisor == 1 else [(v, c // divisor) for v, c in terms.items()]))
        const //= divisor
        if key not in best or const < best[key]:
            best[key] = const
    implied: list[Row] = []
    for key, const in best.items():
        opposite = best.get(tuple([(v, -c) for v, c in key]))
        if opposite is not None:
            if const + opposite < 0:
                raise _Contradiction
            if const + opposite == 0 and key[0][1] > 0:
                implied.append((dict(key), const))
    return [(dict(key), const) for key, const in best.items()], implied


def _cheapest(rows: list[Row]) -> tuple[int, list[Row], list[Row]]:
    """The variable whose elimination is exact over integers, if there is one, and adds the fewest rows; its lower and upper bounds."""
    lower: dict[int, list[Row]] = {}
    upper: dict[int, list[Row]] = {}
    for row in rows:
        for v, c in row[0].items():
            (lower if c > 0 else upper).setdefault(v, []).append(row)

    def cost(v: int) -> tuple[bool, int, int]:
        lo, hi = lower.get(v, []), upper.get(v, [])
        exact = all(r[0][v] == 1 for r in lo) or all(r[0][v] == -1 for r in hi)
        return not exact, len(lo) * len(hi) - len(lo) - len(hi), v

    var = min({**lower, **upper}, key=cost)
    return var, lower.get(var, []), upper.get(var, [])


def _combine(lo: Row, hi: Row, var: int) -> Row:
    """What a lower and an upper bound of `var` say without it."""
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


def _substitute(row: Row, var: int, value: Row) -> Row:
    terms, const = row
    factor = terms.get(var)
    if factor is None:
        return row
    out = {v: c for v, c in terms.items() if v != var}
    for v, c in value[0].items():
        total = out.get(v, 0) + factor * c
        if total:
            out[v] = total
        else:
            out.pop(v, None)
    return out, const + factor * value[1]


def _witness(trail: list[tuple[int, Row | None, list[Row]]]) -> dict[int, int] | None:
    """Values for all variables, last eliminated first; None where rounding leaves no integer between the bounds."""
    values: dict[int, int] = {}

    def at(row: Row, skip: int = -1) -> int:
        return row[1] + sum([c * values.setdefault(v, 0) for v, c in row[0].items() if v != skip])

    for var, value, bounds in reversed(trail):
        if value is not None:
            values[var] = at(value)
            continue
        least = max([-(at(r, var) // r[0][var]) for r in bounds if r[0][var] > 0], default=None)
        most = min([at(r, var) // -r[0][var] for r in bounds if r[0][var] < 0], default=None)
        if least is not None and most is not None and least > most:
            return None
        values[var] = least if least is not None else most if most is not None else 0
    return values

"""Refutation: show that the assumptions of a context leave no integer point to a goal.

The goal and the assumptions that share its atoms form a system of linear constraints, with the laws of its atoms
(⌊e/c⌋, min, max, where, products of nonnegative atoms). Elimination decides it; disjunctions are split case by case;
isl judges what stays open.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from ..core.dtypes import is_integer
from ..core.expr import Cast, Const, Expr, Op, Var
from ..frozen import frozen
from . import isl, operation_count
from .affine import Linear, Monomial, expression, of_atom, without
from .integer_sets import Constraint, Empty, Point, System, Unknown, decide

NEAR = 1 << 31                 # greater bounds are left out of proofs, unless these are about overflow
FAR = 1 << 63                  # greater bounds of products say nothing about overflow
MAX_DEPTH = 2                  # nesting of proofs
MAX_SEARCH = 2000              # rows read and combined per proof; half as many in a nested proof, and so on
PATIENCE = 8                   # factor on MAX_SEARCH where the answer decides whether a program is refused
ISL_WORK = 8                   # cost of a row in isl
ROUNDS = 2                     # of deriving products of products
MAX_PRODUCTS = 60              # derived facts about products in one proof

@frozen
class Horizon:
    """The size of the system around a goal: the number of rows, and the rounds of deriving facts about products."""

    rows: int
    rounds: int


# Small systems first. Facts about products may be many: if a system with them stays open, smaller ones follow.
HORIZONS = Horizon(10, 0), Horizon(20, 0), Horizon(64, ROUNDS)
IF_OPEN = Horizon(64, 1), Horizon(64, 0)
WIDE_ROWS = 20, 64             # of systems about overflow, in which all facts about products are

Answer = TypeVar("Answer")
Alternative = tuple[Constraint, ...]
Range = tuple[int, int]


@frozen
class Clause:
    """At least one alternative (a conjunction) holds. `buffers`: the memory in it. `atoms`: its atoms and their
    operands. `divided`: those that divide what has a maximum or minimum, or by it."""

    alternatives: tuple[Alternative, ...]
    buffers: frozenset[str]
    atoms: frozenset[Expr]
    is_wide: bool = False          # a bound on products, for proofs about overflow only
    divided: tuple[Expr, ...] = ()


class Stated(Protocol):
    """What is stated, and what is positive."""

    @property
    def clauses(self) -> tuple[Clause, ...]: ...
    def linear(self, expr: Expr) -> Linear: ...
    def interval(self, form: Linear) -> Range: ...
    def is_positive(self, atom: Expr) -> bool: ...


class Assumptions(Stated, Protocol):
    """The part of a context that a proof uses."""

    def about(self, atom: Expr) -> list[tuple[int, Clause]]: ...
    @property
    def depth(self) -> int: ...            # nested proofs that it may still make
    @property
    def patience(self) -> int: ...         # factor on the work limit
    def linear(self, expr: Expr) -> Linear: ...
    def atom_range(self, atom: Expr) -> Range: ...
    def interval(self, form: Linear) -> Range: ...
    def alternatives(self, cond: Expr, holds: bool = True) -> tuple[Alternative, ...] | None: ...
    def is_nonnegative(self, form: Linear) -> bool: ...
    def once(self, question: Any, find: Callable[[], Answer]) -> Answer: ...


def refuted(known: Assumptions, goal: Alternative, widely: bool = False) -> bool:
    """True if the conjunction `goal` is shown to be impossible. `widely`: use bounds beyond 2^31."""
    if any(is_false(c) or _is_out_of_range(known, c) for c in goal):
        return True
    if all(c.linear.is_constant for c in goal):
        return False
    if widely:                     # frequent, for every sum that may wrap: no case distinctions
        return any(_is_excluded_widely(known, goal, most) for most in WIDE_ROWS)
    allowed = known.patience * MAX_SEARCH >> MAX_DEPTH - 1 - known.depth
    asked: list[Constraint] | None = None
    is_open = False
    for horizon in (*HORIZONS, *IF_OPEN):              # distant facts seldom help and slow elimination down
        if horizon in IF_OPEN and not is_open:
            break
        rows, splits = _system(known, goal, widely, horizon)
        if horizon.rounds:
            rows += _products(known, rows, splits, horizon.rounds)
        if rows == asked:
            continue
        asked, search = rows, _Search(allowed)
        answer = search.excludes(System(rows), rows, splits)
        is_open = search.is_open
        operation_count.current().charge(operation_count.QUESTION + allowed - search.left)
        if answer:
            return True
    return False


def _is_excluded_widely(known: Assumptions, goal: Alternative, most: int) -> bool:
    """Is a goal about overflow excluded by so many facts?"""
    rows, splits = _system(known, goal, True, Horizon(most, ROUNDS))
    operation_count.current().charge(operation_count.QUESTION + len(rows))
    return any(isinstance(decide(rows + _products(known, rows, splits, rounds, True)), Empty) for rounds in (1, ROUNDS))


def is_false(c: Constraint) -> bool:
    """True if the constraint has no variables and does not hold."""
    return c.linear.is_constant and (c.linear.constant != 0 if c.equal else c.linear.constant < 0)


def _is_out_of_range(known: Assumptions, c: Constraint) -> bool:
    """True if the ranges of its atoms alone contradict the constraint."""
    lo, hi = known.interval(c.linear)
    return hi < 0 or (c.equal and lo > 0)


class _Search:
    """A case distinction with a work limit. `is_open`: it gave up without finding a point that satisfies everything."""

    def __init__(self, work: int):
        self.left = work
        self.is_open = False

    def excludes(self, system: System, rows: list[Constraint], splits: list[tuple[Alternative, ...]]) -> bool:
        """True if the rows and one alternative of every split exclude each other. It splits where the point found
        fails, nearest alternative first, so that an existing solution is found soon. `system`: the prepared rows."""
        answer = system.decide()
        if isinstance(answer, Empty):
            return True
        self.left -= len(rows) + system.work
        if self.left < 0:
            self.is_open = True
            return False
        at, chosen = next(((at, cases) for at, split in enumerate(splits) if (cases := _cases(split, answer))), (0, []))
        if not chosen:
            self.left -= ISL_WORK * len(rows)
            if isinstance(answer, Unknown) and isl.is_empty(rows) is True:
                return True
            self.is_open = isinstance(answer, Unknown)
            return False
        rest = [*splits[:at], *splits[at + 1:]]
        return all(self.excludes(system.adding(case), [*rows, *case], rest) for case in chosen)


def _cases(split: tuple[Alternative, ...], answer: Point | Unknown) -> list[Alternative]:
    """The alternatives to try, nearest to the point first; empty if the point satisfies one."""
    if isinstance(answer, Unknown):
        return [*split]
    distances = {alternative: _distance(alternative, answer) for alternative in split}
    return sorted(distances, key=distances.__getitem__) if min(distances.values(), default=0) else []


def _distance(alternative: Alternative, point: Point) -> int:
    """The amount by which a point violates a conjunction; 0 if it satisfies it."""
    total = 0
    for c in alternative:
        value = c.linear.constant + sum([k * point.values.get(m, 0) for m, k in c.linear.terms.items()])
        total += abs(value) if c.equal else max(-value, 0)
    return total


def _system(known: Assumptions, goal: Alternative, widely: bool,
            horizon: Horizon) -> tuple[list[Constraint], list[tuple[Alternative, ...]]]:
    """The goal and the facts about its atoms, then about the atoms of those facts, nearest first, up to the horizon."""
    rows: dict[Constraint, None] = dict.fromkeys(goal)
    splits: dict[tuple[Alternative, ...], None] = {}
    used: set[int] = set()
    monomials = {m for c in goal for m in c.linear.terms}
    seen: set[Expr] = set()
    pending = dict.fromkeys([a for c in goal for a in c.linear.atoms()])

    def bounds(atom: Expr) -> tuple[Constraint, ...]:
        return known.once(("bounds", atom, widely), lambda: tuple(_bounds(known, atom, widely)))

    def laws(atom: Expr) -> tuple[tuple[Alternative, ...], ...]:
        return known.once(("laws", atom), lambda: tuple(_laws(known, atom)))

    def mentions(atom: Expr) -> int:
        return len(known.about(atom))

    def add(alternatives: tuple[Alternative, ...]) -> None:
        if not horizon.rounds and any(c.linear.degree > 1 and not monomials.issuperset(c.linear.terms)
                                        for a in alternatives for c in a):
            return
        if len(alternatives) == 1:
            rows.update(dict.fromkeys(alternatives[0]))
        else:
            splits[alternatives] = None
        pending.update(dict.fromkeys([a for alternative in alternatives for c in alternative
                                      for a in c.linear.atoms() if a not in seen]))

    while pending and len(rows) < horizon.rows:
        # rare atoms first: a loop's own bounds before those of a shared size
        atom = next(iter(pending)) if horizon.rounds else min(pending, key=mentions)
        del pending[atom]
        seen.add(atom)
        rows.update(dict.fromkeys(bounds(atom)))
        for law in (*laws(atom), *_between_quotients(known, atom, seen)):
            add(law)
        for at, clause in known.about(atom):
            if at not in used and (widely or not clause.is_wide):
                used.add(at)
                add(clause.alternatives)
    for atom in [a for c in goal for a in c.linear.atoms() if a not in seen]:   # always included
        rows.update(dict.fromkeys(bounds(atom)))
    return list(rows), list(splits)


def _bounds(known: Assumptions, atom: Expr, widely: bool) -> Iterator[Constraint]:
    """Numeric bounds of an atom. ⌊a / b⌋ ≥ 0 where a ≥ 0, which may take a proof: ⌊min(n - 8·i, 8) / 4⌋ in a loop."""
    it, (lo, hi) = of_atom(atom), known.atom_range(atom)
    if lo > -NEAR or widely:
        yield Constraint(it.shifted(-lo))
    if hi < NEAR or widely:
        yield Constraint(it.scaled(-1).shifted(hi))
    match atom:
        case Op(fn="floordiv", args=(a, b)) if lo < 0 and not widely and is_integer(atom.dtype):
            if (isinstance(b, Const) and b.value > 0 and isinstance(a, Op) and a.fn in ("min", "add", "sub")
                and known.is_nonnegative(known.linear(a))):
                yield Constraint(it)


def _laws(known: Assumptions, atom: Expr) -> Iterator[tuple[Alternative, ...]]:
    """The clauses that define an atom."""
    it = of_atom(atom)
    if (isinstance(atom, Cast) or _may_wrap(atom)) and (form := known.linear(atom)) != it:   # known better here
        yield ((Constraint(form - it, equal=True),),)
    match atom:
        case Op(fn="floordiv", args=(a, b)) if is_integer(atom.dtype):
            e, d = known.linear(a), known.linear(b)
            if _is_positive(known, d):                    # d·q ≤ e < d·q + d
                whole = d.times(it)
                yield ((Constraint(e - whole),),)
                yield ((Constraint((whole + d - e).shifted(-1)),),)
                for times in [] if d.is_constant else multiples_above(known, e, d):
                    yield ((Constraint((times - it).shifted(-1)),),)   # e < times·d gives q < times
        case Op(fn="mod", args=(a, b)) if is_integer(atom.dtype):
            e, d = known.linear(a), known.linear(b)
            if _is_positive(known, d):                    # e = d·⌊e/d⌋ + it, 0 ≤ it < d
                quotient = known.linear(Op("floordiv", (expression(e), expression(d))))
                yield ((Constraint(d.times(quotient) + it - e, equal=True),),)
                yield ((Constraint(it), Constraint((d - it).shifted(-1))),)
        case Op(fn="min" | "max", args=(a, b)) if is_integer(atom.dtype):
            sides = [known.linear(a), known.linear(b)]
            sign = 1 if atom.fn == "min" else -1
            for side in sides:
                yield ((Constraint((side - it).scaled(sign)),),)
            yield tuple([(Constraint(it - side, equal=True),) for side in sides])
        case Op(fn="where", args=(c, a, b)) if is_integer(atom.dtype):
            then, otherwise = known.alternatives(c, True), known.alternatives(c, False)
            if then is not None and otherwise is not None:
                yield (*[(*x, Constraint(it - known.linear(a), equal=True)) for x in then],
                       *[(*x, Constraint(it - known.linear(b), equal=True)) for x in otherwise])
        case Const() | Var():
            return
        case Op() if atom.dtype == "bool":
            then, otherwise = known.alternatives(atom, True), known.alternatives(atom, False)
            if (then is not None and otherwise is not None
                and not any(atom in c.linear.atoms() for x in then for c in x)):
                yield (*[(*x, Constraint(it.shifted(-1), equal=True)) for x in then],
                       *[(*x, Constraint(it, equal=True)) for x in otherwise])


def _between_quotients(known: Assumptions, atom: Expr, seen: Iterable[Expr]) -> Iterator[tuple[Alternative, ...]]:
    """⌊e / m·d⌋ = ⌊q / m⌋ for q = ⌊e / d⌋: 0 ≤ q - m·⌊e / m·d⌋ < m, which times a size bounds an index such as
    (i / 5 mod 3) · M + i / 15."""
    own = _quotient(known, atom)
    for other in seen if own is not None else ():
        theirs = _quotient(known, other) if other is not atom else None
        if own is not None and theirs is not None and own[0] == theirs[0]:
            (d, q), (by, s) = sorted(((own[1], atom), (theirs[1], other)), key=lambda each: each[0])
            if by % d == 0:
                rest = of_atom(q).plus(of_atom(s), -(by // d))
                yield ((Constraint(rest), Constraint(rest.scaled(-1).shifted(by // d - 1))),)


def _quotient(known: Assumptions, atom: Expr) -> tuple[Linear, int] | None:
    """e and d of an atom ⌊e / d⌋ with a number d > 0."""
    match atom:
        case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0 and is_integer(atom.dtype):
            return known.linear(a), int(d)
    return None


def multiples_above(known: Stated, form: Linear, of: Linear) -> Iterator[Linear]:
    """The forms m for which a clause states form < m · of, as in a fused loop; also by an equality, such as
    N = 4 · ⌊N / 4⌋."""
    atoms, parts = set(form.atoms()), set(of.atoms())
    stated = [c for clause in known.clauses if len(clause.alternatives) == 1 for c in clause.alternatives[0]]
    bounds = [bound for c in stated if not c.equal and not atoms.isdisjoint(c.linear.atoms())
              for each in _without_minimum(known, known_better(known, c.linear))
              if (bound := _without_digits(known, (each + form).shifted(1), atoms)) is not None]
    gaps = [without_common_factors(known, c.linear) for c in stated
            if c.equal and not parts.isdisjoint(c.linear.atoms())] if bounds else []
    for bound in bounds:
        for each in (bound, *[bound + gap for gap in gaps], *[bound - gap for gap in gaps]):
            if (times := each.quotient(of)) is not None:
                yield times


def _is_positive(known: Assumptions, form: Linear) -> bool:
    """Is a divisor positive? Where it is one atom, most often a factor of a loop's end shows it, without a proof."""
    atom = next(form.atoms(), None)
    return ((atom is not None and form == of_atom(atom) and known.is_positive(atom))
            or known.is_nonnegative(form.shifted(-1)))


def _may_wrap(atom: Expr) -> bool:
    """Is it arithmetic that was an atom where it was stated, for it may have wrapped there?"""
    return isinstance(atom, Op) and atom.fn in ("add", "sub", "mul", "neg")


def known_better(known: Stated, form: Linear) -> Linear:
    """A form with what does not wrap here multiplied out: a fused loop may have stated its end where less was known."""
    for m, k in form.terms.items():
        if len(m) == 1 and _may_wrap(m[0]) and (better := known.linear(m[0])) != of_atom(m[0]):
            form = form.plus(of_atom(m[0]), -k).plus(better, k)
    return form


def _without_digits(known: Stated, form: Linear, atoms: set[Expr]) -> Linear | None:
    """A form that is at least as large, without these atoms: the last digit of a place, below a number, is at its
    greatest. None if others are left."""
    digits = {m: k for m, k in form.terms.items() if not atoms.isdisjoint(m)}
    if not digits:
        return form
    if not all(len(m) == 1 and isinstance(m[0], Var) and k > 0 for m, k in digits.items()):
        return None
    most = known.interval(Linear(digits))[1]
    return (form - Linear(digits)).shifted(most) if most < NEAR else None


def _without_minimum(known: Stated, form: Linear) -> Iterator[Linear]:
    """What is ≥ 0 if a form is: the form, and it with each operand of a minimum in it, as at the end of a block."""
    yield form
    for m, k in form.terms.items():
        match m:
            case (Op(fn="min", args=args),) if k > 0:
                for arg in args:
                    yield form - Linear({m: k}) + known.linear(arg).scaled(k)


def without_common_factors(known: Stated, form: Linear) -> Linear:
    """What is 0 if the form is: without the factors of all terms that are positive."""
    if form.constant or not form.terms:
        return form
    for atom in dict.fromkeys(next(iter(form.terms))):
        if all(atom in m and len(m) > 1 for m in form.terms) and known.is_positive(atom):
            form = Linear({without(m, atom): k for m, k in form.terms.items()})
    return form


def _products(known: Assumptions, rows: list[Constraint], splits: list[tuple[Alternative, ...]], rounds: int,
              widely: bool = False) -> list[Constraint]:
    """For a monomial a·b with b ≥ 0: each constraint e ≥ 0 on a gives e·b ≥ 0 (and e = 0 gives e·b = 0); one that has
    products itself, 8·⌊a·b / 8⌋ ≤ a·b, where a is the quotient. `widely`: include the bounds of whole products."""
    derived: dict[Constraint, None] = {}
    done: set[tuple[Constraint, tuple[Expr, ...]]] = set()

    def derive(monomials: Iterable[Monomial], degree: int) -> Iterator[Constraint]:
        for m in monomials:
            least = [known.atom_range(a)[0] for a in m]
            if min(least) >= 0 and degree == 1:
                yield Constraint(Linear({m: 1}))
            for at, atom in enumerate(m):
                rest = without(m, atom)
                if atom in m[:at] or min(least[:at] + least[at + 1:]) < 0:
                    continue
                if degree > 1 and not (isinstance(atom, Op) and atom.fn == "floordiv"):
                    continue
                for c in rows:
                    if ((atom,) in c.linear.terms and c.linear.degree == degree and (c, rest) not in done
                        and len(derived) < MAX_PRODUCTS):
                        done.add((c, rest))
                        yield Constraint(c.linear.times(Linear({rest: 1})), c.equal)

    frontier = [*rows, *[c for s in splits for alternative in s for c in alternative]]
    for _ in range(rounds):
        fresh = [c for c in derive(_monomials(frontier), 1) if c not in derived]
        derived.update(dict.fromkeys(fresh))
        more = [c for c in derive(_monomials(fresh), 2) if c not in derived]
        derived.update(dict.fromkeys(more))
        frontier = fresh
    for m in _monomials([*rows, *derived]) if widely else ():
        if (most := known.interval(Linear({m: 1}))[1]) < FAR:
            derived[Constraint(Linear({m: -1}, most))] = None
    return list(derived)


def _monomials(rows: Iterable[Constraint]) -> dict[Monomial, None]:
    """The products in constraints."""
    return {m: None for c in rows for m in c.linear.terms if len(m) > 1}

"""Value range analysis: integer expressions under assumptions, as affine forms over atoms and as intervals.

Integers are mathematical here. A sum or product that may overflow its type is an opaque atom, so nothing is concluded
from arithmetic that could wrap.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from ..core.dtypes import DTYPES, is_float, is_integer
from ..core.expr import Cast, Const, Expr, Op, Var, index
from ..frozen import frozen
from .affine import Linear, Monomial, canonical, constant, expression, key_of, linear, of_atom, without
from .effects import NOTHING
from .float_ranges import whole_range
from .integer_sets import Constraint
from .refutation import FAR, MAX_DEPTH, Alternative, Clause, Range, known_better, multiples_above
from .statements import Aref

GREATEST_SIZE = 1 << 40        # of an extent
GREATEST_BYTES = 1 << 62       # of an array
OF_TILES = 1 << 13             # what runs inside of a tile is below

Answer = TypeVar("Answer")


@frozen
class Valuation(ABC):
    """Assumptions, and the values of expressions where they hold."""

    ranges: Mapping[str, Range] = field(default_factory=dict)          # of variables
    clauses: tuple[Clause, ...] = ()
    values: Mapping[str, Expr] = field(default_factory=dict)           # of rank-0 locals, over variables
    conditions: Mapping[str, Expr] = field(default_factory=dict)       # of bool `let`s
    bound: frozenset[str] = NOTHING                                    # sizes bound at compile time
    literals: frozenset[tuple[Expr, bool]] = frozenset()               # conditions that read memory, as written
    checks: tuple[tuple[tuple[Expr, bool], ...], ...] = ()             # disjunctions
    elements: Mapping[str, tuple[Expr, Expr]] = field(default_factory=dict)    # of arrays: the least and the end of all
    unreachable: bool = False
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    facts: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)     # what ranges and clauses decide
    depth: int = MAX_DEPTH                                             # nested proofs that it may make
    patience: int = 1                                                  # factor on the work limit of a proof

    @abstractmethod
    def excludes(self, constraints: Alternative, widely: bool = False) -> bool:
        """True if the assumptions are shown to exclude the conjunction. `widely`: use ranges beyond 2^31."""

    def once(self, question: Any, find: Callable[[], Answer]) -> Answer:
        """The memoised answer."""
        return _kept(self.memo, question, find)

    def _of_facts(self, question: Any, find: Callable[[], Answer]) -> Answer:
        """The memoised answer to what the ranges and clauses alone decide, however deep the proof."""
        return _kept(self.facts, question, find)

    def about(self, atom: Expr) -> list[tuple[int, Clause]]:
        """The clauses in which an atom occurs, with their positions."""
        return self._of_facts(("about", atom), lambda: [numbered for numbered in enumerate(self.clauses)
                                                        if atom in numbered[1].atoms])

    def linear(self, expr: Expr) -> Linear:
        """The affine form of an integer expression's mathematical value. A part that may wrap is an atom."""
        known: Linear | None = self.memo.get(expr)
        if known is None:
            known = self.memo[expr] = self._linear(expr)
        return known

    def _linear(self, expr: Expr) -> Linear:
        match expr:
            case Const(value=int() as value):
                return constant(int(value))
            case Var(name):
                return constant(self.ranges[name][0]) if name in self.bound else of_atom(expr)
            case Aref(name, ()) if name in self.values:
                return self.linear(self.values[name])
            case Op(fn="add" | "sub" | "mul" | "neg" | "shl", args=args) if is_integer(expr.dtype) and expr.lanes == 1:
                forms = [self.linear(a) for a in args]
                made = self._fitting(_RING[expr.fn](*forms), expr)
                if made != of_atom(canonical(expr)):
                    return made
                if expr.fn == "mul" and (small := [self._remainder(a) for a in args]) != forms:
                    made = self._fitting(_RING[expr.fn](*small), expr)
                    if made != of_atom(canonical(expr)):
                        return made
                wholes = [self._whole(a) for a in args]
                return made if wholes == forms else self._fitting(_RING[expr.fn](*wholes), expr)
            case Op(fn="floordiv", args=(a, b)) if is_integer(expr.dtype):
                return self._floordiv(self.linear(a), self.linear(b), expr)
            case Op(fn="mod", args=(a, b)) if is_integer(expr.dtype) and (d := _number(self.linear(b))) > 0:
                form = self.linear(a)
                return form - self._floordiv(form, constant(d), Op("floordiv", (a, b))).scaled(d)
            case Op(fn="shr", args=(a, b)) if 0 <= (by := _number(self.linear(b))) < DTYPES[expr.dtype].bits:
                return self._floordiv(self.linear(a), constant(1 << by), expr)
            case Op(fn="and", args=(a, Const(value=mask))) if is_integer(expr.dtype) and mask > 0 == mask & (mask + 1):
                if mask >= DTYPES[expr.dtype].greatest:                       # all bits but the sign
                    return self.linear(a) if self.interval(self.linear(a))[0] >= 0 else of_atom(canonical(expr))
                return self._linear(Op("mod", (a, Const(mask + 1, expr.dtype))))
            case Op(fn="truncdiv" | "truncmod", args=(a, b)) if (self.interval(self.linear(a))[0] >= 0
                                                                 < self.interval(self.linear(b))[0]):
                return self.linear(Op("floordiv" if expr.fn == "truncdiv" else "mod", (a, b)))
            case Op(fn="relu", args=(a,)) if is_integer(expr.dtype):
                return self.linear(Op("max", (a, Const(0, expr.dtype))))
            case Op(fn="clip", args=(a, lo, hi)) if is_integer(expr.dtype):
                return self.linear(Op("min", (Op("max", (a, lo)), hi)))
            case Op(fn="abs", args=(a,)) if is_integer(expr.dtype):
                return self.linear(a if DTYPES[a.dtype].least == 0 else Op("max", (a, Op("neg", (a,)))))
            case Op(fn="min" | "max", args=(a, b)) if is_integer(expr.dtype):
                return self._extreme(expr, self.linear(a), self.linear(b))
            case Cast(dtype, arg) if (is_integer(arg.dtype) or arg.dtype == "bool") and is_integer(dtype):
                form = self.linear(arg)
                return form if self.fits(form, dtype) else of_atom(canonical(expr))
            case _:
                return of_atom(canonical(expr))

    def _remainder(self, expr: Expr) -> Linear:
        """The form of a factor, with a remainder as an atom: it is small, which N - 2·⌊N/2⌋ does not show."""
        match expr:
            case Op(fn="mod", args=(a, b)) if expr.dtype == "i64" and (d := _number(self.linear(b))) > 0:
                return of_atom(Op("mod", (expression(self.linear(a)), index(d))))
        return self.linear(expr)

    def _whole(self, expr: Expr) -> Linear:
        """The affine form of a part: if that of the whole fits its type, it is right though the part may wrap, as in
        (a · b) · c with c = 0."""
        match expr:
            case Op(fn="add" | "sub" | "mul" | "neg", args=args) if is_integer(expr.dtype) and expr.lanes == 1:
                form = self.linear(expr)
                return _RING[expr.fn](*[self._whole(a) for a in args]) if form == of_atom(canonical(expr)) else form
        return self.linear(expr)

    def _floordiv(self, form: Linear, divisor: Linear, expr: Expr) -> Linear:
        """⌊form / divisor⌋ with the multiples of a constant divisor taken out. (The least integer divided by -1 wraps
        to itself.)"""
        d = divisor.constant
        if not divisor.is_constant:
            return of_atom(Op("floordiv", (expression(form), expression(divisor))))
        if d == 0:
            return constant(0)
        if d < 0:
            form, d = form.scaled(-1), -d
        whole = Linear({m: c // d for m, c in form.terms.items() if c // d}, form.constant // d)
        rest = form.plus(whole, -d)
        if rest.is_constant:
            return whole if divisor.constant > 0 else self._fitting(whole, expr)
        return self._fitting(whole + of_atom(Op("floordiv", (expression(rest), index(d)))), expr)

    def _extreme(self, expr: Op, a: Linear, b: Linear) -> Linear:
        least = expr.fn == "min"
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        if (ahi <= blo) if least else (alo >= bhi):
            return a
        if (bhi <= alo) if least else (blo >= ahi):
            return b
        return of_atom(Op(expr.fn, tuple(sorted([expression(a), expression(b)], key=key_of))))

    def _fitting(self, form: Linear, expr: Expr) -> Linear:
        """The form if it certainly equals the expression; else an atom, one for all expressions that the ring laws
        equate."""
        return form if self.fits(form, expr.dtype) else self._from_compared(expr) or of_atom(canonical(expr))

    def _from_compared(self, expr: Expr) -> Linear | None:
        """The value of a sum that may wrap, from another sum that is compared: where 0 ≤ x·a + b < N is known, x·a + b
        - n does not wrap, in any order of terms. The two differ by a multiple of 2^bits: by 0 if the sum fits the
        type."""
        sums = self._compared_sums(expr.dtype)
        if not sums:
            return None
        own, asked = canonical(expr), self.memo.setdefault("compared", set())
        if own in asked:                                       # the range of the other sum may ask for this one again
            return None
        asked.add(own)
        try:
            return self._equal_sum(linear(expr), own, expr.dtype, sums)
        finally:
            asked.remove(own)

    def _equal_sum(self, whole: Linear, own: Expr, dtype: str, sums: list[tuple[Expr, Linear]]) -> Linear | None:
        """The value of the sum `whole` from one of `sums`."""
        for atom, value in sums:
            if atom is own:
                continue
            gap = whole - value
            least, most = self.interval(gap) if gap.degree == 1 else (0, 1)
            if least == most:                                  # a variable of one value, such as r where r = 1
                gap = constant(least)
            if len(gap.terms) < len(whole.terms):
                form = of_atom(atom) + self.linear(expression(gap, dtype))
                lo, hi = self.interval(form)                   # no proof: such sums are many, few matter
                if DTYPES[dtype].least <= lo and hi <= DTYPES[dtype].greatest:
                    return form
        return None

    def fits(self, form: Linear, dtype: str = "i64") -> bool:
        """True if the value of `form` certainly fits the type."""
        row = DTYPES[dtype]
        lo, hi = self.interval(form)
        if row.least <= lo and hi <= row.greatest:
            return True
        if not self._products_are_bounded(form):
            return False
        most, least = self._large_part(form), self._large_part(form.scaled(-1)).scaled(-1)
        return ((lo >= row.least or self.excludes((Constraint(constant(row.least - 1) - least),), widely=True))
                and (hi <= row.greatest or self.excludes((Constraint(most.shifted(-row.greatest - 1)),), widely=True)))

    def _large_part(self, form: Linear) -> Linear:
        """A form that is at least as large, over products that may not fit: the others are at their greatest."""
        ends = {m: self.interval(Linear({m: k}))[1] for m, k in form.terms.items()}
        small = [m for m, k in form.terms.items() if max(map(abs, self.interval(Linear({m: k})))) < GREATEST_BYTES]
        return Linear({m: k for m, k in form.terms.items() if m not in small},
                      form.constant + sum([ends[m] for m in small]))

    def _products_are_bounded(self, form: Linear) -> bool:
        """True if facts about products could bound this form: each large product is compared with a number, or is part
        of a bounded product up to a factor that is compared with something else."""
        numbered = self._of_facts("numbered", lambda: {
            m for c in self.clauses if len(c.alternatives) == 1 for k in c.alternatives[0] if len(k.linear.terms) == 1
            for m in k.linear.terms})
        bounds = self._of_facts("wide", lambda: [m for c in self.clauses if c.is_wide
                                               for k in c.alternatives[0] for m in k.linear.terms])
        large = [m for m in form.terms if max(map(abs, self.interval(Linear({m: 1})))) >= GREATEST_BYTES]
        return all(m in numbered or (len(m) > 1 and any(len(left := _left(m, b)) <= 1
                                                        and all(map(self._is_compared, left)) for b in bounds))
                   for m in large)

    def _is_compared(self, atom: Expr) -> bool:
        """True if it runs inside of a tile, or more is known of the atom than its range."""
        if not isinstance(atom, Var) or self.atom_range(atom)[1] < OF_TILES:
            return True
        return (atom,) in self._of_facts("compared", lambda: {
            m for c in self.clauses if len(c.alternatives) == 1
            for k in c.alternatives[0] if len(k.linear.terms) > 1 and k.linear.degree == 1
            for m in k.linear.terms})

    def interval(self, form: Linear) -> Range:
        """The interval of a form from the ranges of its atoms."""
        lo = hi = form.constant
        ranges = self.ranges
        for m, c in form.terms.items():
            first = m[0]
            low, high = (ranges[first.name] if first.__class__ is Var and first.name in ranges
                         else self.atom_range(first))
            for factor in m[1:]:
                a, b = self.atom_range(factor)
                corners = (low * a, low * b, high * a, high * b)
                low, high = min(corners), max(corners)
            if len(m) > 1:
                number = self._numbers_of_products().get(m)
                low, high = (low, min(high, self._ceiling(m, high))) if number is None else (number, number)
            lo, hi = (lo + c * low, hi + c * high) if c > 0 else (lo + c * high, hi + c * low)
        return lo, hi

    def _numbers_of_products(self) -> dict[Monomial, int]:
        """The products that are known to be a number: an array of N · M rows is read as one of 42."""
        return self._of_facts("numbers of products", lambda: {
            m: c.linear.constant // -k for clause in self.clauses if len(clause.alternatives) == 1
            for c in clause.alternatives[0] if c.equal and len(c.linear.terms) == 1
            for m, k in c.linear.terms.items() if len(m) > 1 and c.linear.constant % k == 0})

    def _ceiling(self, m: Monomial, high: int) -> int:
        """An upper bound for a product that may be as large as `high`: ⌊(M + 7) / 8⌋ · N ≤ M · N."""
        known = self._ceilings()
        if not known or m in known or high <= GREATEST_BYTES:
            return known.get(m, high)
        asked: set[Monomial] = self.memo.setdefault("ceilings asked", set())
        if m in asked:               # in progress: a product must not bound itself
            return high
        asked.add(m)
        try:
            whole = [self._at_most(a) for a in m]
            if None in whole:
                return high
            factors = tuple(sorted([a for a in whole if a is not None], key=key_of))
            return min([high, *[most for product, most in known.items() if self._is_part(factors, product)]])
        finally:
            asked.remove(m)

    def _is_part(self, factors: Monomial, product: Monomial) -> bool:
        """True if a product of nonnegative atoms consists of these factors and of others that are not zero."""
        others = _left(product, factors)
        return len(others) + len(factors) == len(product) and all(map(self.is_positive, others))

    def is_positive(self, atom: Expr) -> bool:
        """True if an atom is positive by its range, or it, a part of it or a product of it is greater than something,
        as a loop's end is."""
        least = self.atom_range(atom)[0]
        if least >= 1:
            return True
        above = [known_better(self, k.linear)
                 for _, c in self.about(atom) if len(c.alternatives) == 1 for k in c.alternatives[0]]
        ends = [(form, m, k) for form in above for m, k in form.terms.items()
                if k > 0 and (self._at_most(m[0]) is atom if len(m) == 1 else least == 0 and atom in m)]
        return any(self.interval(Linear({m: k}) - form)[0] >= 1 for form, m, k in ends)

    def _at_most(self, atom: Expr) -> Expr | None:
        """An atom that is at least this one, which is nonnegative: M for ⌊(k·M + r) / d⌋ with k ≤ d and r < d, and for
        max(M + r, 0) with r ≤ 0. None if there is none."""
        match atom:
            case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0:
                form, most, rest = self.linear(a), d, d - 1
            case Op(fn="max", args=(a, Const(value=0)) | (Const(value=0), a)):
                form, most, rest = self.linear(a), 1, 0
            case _:
                return atom if self.atom_range(atom)[0] >= 0 else None
        ((m, k),) = form.terms.items() if len(form.terms) == 1 else (((), 0),)
        return self._at_most(m[0]) if len(m) == 1 and 0 < k <= most and form.constant <= rest else None

    def _ceilings(self) -> dict[Monomial, int]:
        """The products with a known upper bound, such as the extents of one array, and the bound."""
        found: dict[Monomial, int] | None = self.facts.get("ceilings")
        if found is None:
            found = self.facts["ceilings"] = {}
            for c, form in [(c, c.alternatives[0][0].linear)
                            for c in self.clauses if len(c.alternatives) == len(c.alternatives[0]) == 1]:
                for m, k in form.terms.items() if len(form.terms) == 1 else ():
                    if k < 0 and (c.is_wide or len(m) > 1):
                        found[m] = min(found.get(m, form.constant // -k), form.constant // -k)
        return found

    def atom_range(self, atom: Expr) -> Range:
        """The range of an atom by itself."""
        if isinstance(atom, Var) and atom.name in self.ranges:
            return self.ranges[atom.name]
        if self.memo.get("ceilings asked"):        # the answers while a product is being bounded are weaker
            return self._atom_range(atom)
        return self.once(("range", atom), lambda: self._atom_range(atom))

    def _atom_range(self, atom: Expr) -> Range:
        match atom:
            case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0:
                lo, hi = self._range(a)
                return lo // d, hi // d
            case Op(fn="floordiv", args=(a, b)):
                return self._quotient_range(a, b) if atom in self._asked_quotients() else self.once(
                    ("quotient", atom), lambda: self._bounded_quotient(atom, a, b))
            case Op(fn="mod", args=(_, b)) if self._range(b)[0] >= 0:
                return 0, max(self._range(b)[1] - 1, 0)               # modulo 0 is 0
            case Op(fn="min" | "max", args=(a, b)) if is_integer(atom.dtype):
                (alo, ahi), (blo, bhi) = self._range(a), self._range(b)
                return (min(alo, blo), min(ahi, bhi)) if atom.fn == "min" else (max(alo, blo), max(ahi, bhi))
            case Op(fn="where", args=(_, a, b)) if is_integer(atom.dtype):
                (alo, ahi), (blo, bhi) = self._range(a), self._range(b)
                return min(alo, blo), max(ahi, bhi)
            case _:
                row = DTYPES.get(atom.dtype)
                if row is None or row.kind not in ("int", "uint"):
                    return 0, 1
                least, greatest = row.least, row.greatest
                if isinstance(atom, Cast) and is_float(atom.arg.dtype):
                    least, greatest = whole_range(atom.arg, least, greatest)
                match atom:
                    case Op(fn="and", args=(_, Const(value=int() as mask))) if mask >= 0:
                        least, greatest = 0, int(mask)
                lo, hi = self._compared().get(atom, (least, greatest))
                lo, hi = max(lo, least), min(hi, greatest)
                return (max(lo, row.least), min(hi, row.greatest)) if lo <= hi else (row.least, row.greatest)

    def _compared(self) -> dict[Expr, Range]:
        """The non-variable atoms that are compared with numbers, variables or the number of elements of an array, and
        the ranges that follow."""
        found: dict[Expr, Range] | None = self.facts.get("bounded")
        if found is None:
            found = self.facts["bounded"] = {}
            for c in [c for clause in self.clauses if len(clause.alternatives) == 1 and not clause.is_wide
                      for c in clause.alternatives[0]]:
                others = [m for m in c.linear.terms if len(m) == 1 and not isinstance(m[0], Var)]
                known = [m for m in c.linear.terms if m not in others and self._variable_range(m) is not None]
                if len(others) != 1 or len(known) + 1 < len(c.linear.terms):
                    continue
                (atom,), k = others[0], c.linear.terms[others[0]]
                least, most = self._variables(c.linear, others[0])
                lo, hi = found.get(atom, (-2 * FAR, 2 * FAR))                  # beyond every type
                if k > 0 or c.equal:                                           # k·atom ≥ -most
                    lo = max(lo, -(most // k) if k > 0 else -(-least // -k))
                if k < 0 or c.equal:
                    hi = min(hi, most // -k if k < 0 else -least // k)
                found[atom] = lo, hi
        return found

    def _compared_sums(self, dtype: str) -> list[tuple[Expr, Linear]]:
        """The sums and products of a type among them, which may wrap, as atoms and as if they did not."""
        return self._of_facts(("sums", dtype), lambda: [(a, linear(a)) for a in self._compared()
                                                   if isinstance(a, Op) and a.fn in _RING and a.dtype == dtype])

    def _variables(self, form: Linear, without: Monomial) -> Range:
        """The range of a form of variables without one of its terms."""
        least = most = form.constant
        for m, k in form.terms.items():
            if m != without:
                lo, hi = self._variable_range(m) or (0, 0)
                least, most = (least + k * lo, most + k * hi) if k > 0 else (least + k * hi, most + k * lo)
        return least, most

    def _variable_range(self, m: Monomial) -> Range | None:
        """The range of a variable, or of a product of sizes with a known upper bound."""
        if len(m) == 1:
            return self.ranges.get(m[0].name) if isinstance(m[0], Var) else None
        if m in self._ceilings() and all(isinstance(a, Var) and self.ranges.get(a.name, (-1, 0))[0] >= 0 for a in m):
            return 0, self._ceilings()[m]
        return None

    def _range(self, expr: Expr) -> Range:
        """The range of an integer expression, clipped to its type."""
        (lo, hi), row = self.interval(self.linear(expr)), DTYPES[expr.dtype]
        return max(lo, row.least), min(hi, row.greatest)

    def _asked_quotients(self) -> set[Expr]:
        """The quotients that are being bounded: what bounds one may ask whether a factor is positive, which is itself
        or has it as a part."""
        asked: set[Expr] = self.memo.setdefault("quotients asked", set())
        return asked

    def _bounded_quotient(self, atom: Expr, a: Expr, b: Expr) -> Range:
        """The range of the atom ⌊a / b⌋ for b not constant, also by what is stated of a."""
        lo, hi = self._quotient_range(a, b)
        if self._range(b)[0] < 0:
            return lo, hi
        self._asked_quotients().add(atom)
        try:
            above = [self.interval(times)[1] - 1 for times in multiples_above(self, self.linear(a), self.linear(b))
                     if not _has_quotients(times)]
        finally:
            self._asked_quotients().remove(atom)
        return lo, max(min([hi, *above]), 0)

    def _quotient_range(self, a: Expr, b: Expr) -> Range:
        """The range of ⌊a / b⌋ by those of a and b. Division by 0 gives 0."""
        lo, hi = self._range(a)
        return (min(lo, 0, -hi), max(hi, 0, -lo)) if self._range(b)[0] < 0 else (min(lo, 0), max(hi, 0))


def _kept(memo: dict[Any, Any], question: Any, find: Callable[[], Answer]) -> Answer:
    if question not in memo:
        memo[question] = find()
    answer: Answer = memo[question]
    return answer


def _has_quotients(form: Linear) -> bool:
    """True if the form has quotients by non-constants. Their ranges could depend on each other in a circle."""
    return any(isinstance(n, Op) and n.fn == "floordiv" and not isinstance(n.args[1], Const) for atom in form.atoms()
               for n in atom.unique())


def _number(form: Linear) -> int:
    """The value of a constant form; -1 for others."""
    return form.constant if form.is_constant else -1


def _shl(a: Linear, b: Linear) -> Linear:
    return a.scaled(1 << b.constant) if b.is_constant and 0 <= b.constant < 64 else Linear({(Const(0),): 1}, 1 << 70)


_RING: dict[str, Callable[..., Linear]] = {
    "add": Linear.__add__, "sub": Linear.__sub__, "mul": Linear.times, "neg": lambda a: a.scaled(-1), "shl": _shl}


def _left(m: Monomial, taken: Monomial) -> Monomial:
    """The factors of m without those of `taken`."""
    rest = m
    for atom in taken:
        if atom in rest:
            rest = without(rest, atom)
    return rest

"""What is known at a point of a program, and what follows from it.

A context holds ranges of variables, facts as constraints, and the values of scalar locals that are known. It is immutable: entering a loop,
assuming a condition or passing a statement gives a new one; what was found once is remembered, from one step of a schedule to the next.

Integers are mathematical here: a sum or product that may not fit its type is an opaque atom, so nothing is concluded from arithmetic that could
wrap. A fact about memory is forgotten when the memory may be written.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..core.dtypes import DTYPES, is_integer
from ..core.expr import Cast, Const, Expr, Op, Var, index
from ..core.program import Bind, Buffer, Ensure, Program, Require, Size
from .affine import Linear, Monomial, canonical, constant, expression, linear, of_atom, text_of, without
from .effects import NOTHING, reads, writes
from .integer_sets import Constraint
from .proof import MAX_DEPTH, Alternative, Clause, Range, is_false, refuted
from .statements import Aref, Fail, For, If, Incf, Let, Setf, Stmt

GREATEST_SIZE = 1 << 40        # of an extent
GREATEST_BYTES = 1 << 62       # of an array
MAX_ALTERNATIVES = 16          # of one condition in disjunctive form

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Context:
    """Immutable assumptions."""

    ranges: Mapping[str, Range] = field(default_factory=dict)          # of variables
    clauses: tuple[Clause, ...] = ()
    values: Mapping[str, Expr] = field(default_factory=dict)           # of rank-0 locals, over variables
    conditions: Mapping[str, Expr] = field(default_factory=dict)       # of bool `let`s
    bound: frozenset[str] = NOTHING                                    # sizes that are known at compile time
    unreachable: bool = False
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    depth: int = MAX_DEPTH                                             # of the proofs that it may make, one inside the other

    # making contexts

    @classmethod
    def of(cls, program: Program) -> Context:
        """What holds at entry: sizes in range, bindings, arrays that fit in memory, the conditions that are checked. Programs that agree in
        these share their context while one of them lives."""
        known: Context | None = program.__dict__.get("_context")
        if known is None:
            facts = tuple([c for c in program.clauses if isinstance(c, Size | Bind | Buffer | Ensure | Require)])
            known = _AT_ENTRY.get(facts)
            if known is None:
                known = _AT_ENTRY[facts] = cls._of(program)
            program.__dict__["_context"] = known
        return known

    @classmethod
    def _of(cls, program: Program) -> Context:
        ranges: dict[str, Range] = {s.name: (0, GREATEST_SIZE) for s in program.all(Size)}
        ranges |= {b.name: (b.value, b.value) for b in program.all(Bind)}
        context = cls(ranges, bound=frozenset([b.name for b in program.all(Bind)]))
        for buffer in program.all(Buffer):
            context = context.holding_array(buffer)
        for ensured in program.all(Ensure):
            context = context.given(ensured.cond)
        for required in program.all(Require):
            context = context.given(required.cond)
        return context

    def holding_array(self, buffer: Buffer) -> Context:
        """No extent is negative and the byte size is at most 2^62."""
        context, count = self, constant(1)
        for extent in buffer.shape:
            form = linear(extent)
            count = count.times(form)
            if not isinstance(extent, Const | Var):
                context = context._assuming(((Constraint(form),),))
        if count.degree > 1:
            context = context._assuming(((Constraint(constant(GREATEST_BYTES // DTYPES[buffer.type].bytes) - count),),))
        return context

    def inside(self, loop: For) -> Context:
        """In the body of a loop, at any iteration."""
        changed = writes(loop)
        if not changed.isdisjoint(self.values):              # what the body does with them matters, too
            return self._inside(loop, changed)
        return self._once(("inside", loop.name, loop.lo, loop.hi, loop.step, changed), lambda: self._inside(loop, changed))

    def _inside(self, loop: For, changed: frozenset[str]) -> Context:
        var = Var(loop.name, "i64")
        counted: dict[str, Expr] = {}                        # locals that every iteration changes by the same amount
        for name in [n for n in self.values if n in changed]:
            gain = self._gain(loop.body, name) if loop.step is index(1) else None
            if gain is not None and not reads(self.values[name]):
                passed = gain.times(of_atom(var) - self.linear(loop.lo))
                counted[name] = expression(self.linear(self.values[name]) + passed, self.values[name].dtype)
        lo, hi, step = self.linear(loop.lo), self.linear(loop.hi), self.linear(loop.step)
        least, most = self.interval(lo), self.interval(hi)
        up = _ranged(least[0], most[1] - 1)
        down = _ranged(most[0] + 1, least[1])
        i = of_atom(var)
        upward = (Constraint(i - lo), Constraint((hi - i).shifted(-1)))
        downward = (Constraint(lo - i), Constraint((i - hi).shifted(-1)))
        rising, falling = self.interval(step)[0] > 0, self.interval(step)[1] < 0
        if not rising and not falling and self.proves(loop.step > 0):
            rising = True
        ranges = dict(self.ranges)
        ranges[loop.name] = up if rising else down if falling else _ranged(min(up[0], down[0]), max(up[1], down[1]))
        context = self._with(ranges=ranges)
        if rising or falling:
            for c in upward if rising else downward:
                context = context._assuming(((c,),))
            if step.is_constant and abs(step.constant) != 1:      # i = lo + step·k
                count = Var(loop.name + ".k", "i64")
                context = context._with(ranges={**context.ranges, count.name: (0, GREATEST_BYTES)})
                context = context._assuming(((Constraint(i - lo - of_atom(count).scaled(step.constant), equal=True),),))
        else:
            context = context._assuming((upward, downward))
        context = context.forgetting(changed)
        return context._with(values={**context.values, **counted}) if counted else context

    def given(self, cond: Expr, holds: bool = True) -> Context:
        """Where a condition holds (or does not)."""
        return self._once(("given", cond, holds), lambda: self._given(cond, holds))

    def _given(self, cond: Expr, holds: bool) -> Context:
        context = self
        for part in _conjuncts(cond, holds):
            if part[1] and (bound := _product_bound(part[0])) is not None:
                context = context._assuming(((Constraint(bound),),))
                continue
            alternatives = context.alternatives(*part)
            if alternatives is not None:
                context = context._assuming(alternatives)
        return context

    def after(self, stmt: Stmt) -> Context:
        """For the statements that follow `stmt` in its list."""
        if isinstance(stmt, Let | If):                       # what says something, and is passed again and again
            return self._once(("after", stmt), lambda: self._after(stmt))
        return self._after(stmt)

    def _after(self, stmt: Stmt) -> Context:
        match stmt:
            case Let(name, dtype, value):
                if dtype == "bool":
                    return self._with(conditions={**self.conditions, name: value})
                if not is_integer(dtype):
                    return self
                form = self.linear(value)
                context = self._with(ranges={**self.ranges, name: self.interval(form)})
                return context._assuming(((Constraint(of_atom(Var(name, dtype)) - form, equal=True),),))
            case Fail():
                return self._with(unreachable=True)
            case If(cond, then, otherwise):
                context = self.forgetting(writes(stmt))
                if ends_in_failure(then):
                    return context.given(cond, False) if reads(cond).isdisjoint(writes(stmt)) else context
                if ends_in_failure(otherwise):
                    return context.given(cond) if reads(cond).isdisjoint(writes(stmt)) else context
                return context
            case Setf(Aref(name, ()), value) if is_integer(value.dtype) and name not in reads(value):
                form = self.linear(value)
                return self.forgetting(writes(stmt))._valued(name, form, value.dtype)
            case Setf(Aref(name, ()), value) | Incf(Aref(name, ()), value, "add") if name in self.values:
                form = self.linear(value)
                if isinstance(stmt, Incf):
                    form = form + self.linear(self.values[name])
                return self.forgetting(writes(stmt))._valued(name, form, value.dtype)
            case For():
                context = self.forgetting(writes(stmt))
                for name in self.values:
                    if name in writes(stmt) and (gain := self._gain((stmt,), name)) is not None:
                        context = context._valued(name, self.linear(self.values[name]) + gain, self.values[name].dtype)
                return context
            case _:
                return self.forgetting(writes(stmt))

    def through(self, stmts: Iterable[Stmt]) -> Context:
        """After a list of statements."""
        context = self
        for stmt in stmts:
            context = context.after(stmt)
        return context

    def forgetting(self, buffers: frozenset[str]) -> Context:
        """Without what was known about memory that may have been written."""
        if not buffers:
            return self
        kept = tuple([c for c in self.clauses if c.buffers.isdisjoint(buffers)])
        values = {n: v for n, v in self.values.items() if n not in buffers and reads(v).isdisjoint(buffers)}
        conditions = {n: v for n, v in self.conditions.items() if reads(v).isdisjoint(buffers)}
        if len(kept) == len(self.clauses) and len(values) == len(self.values) and len(conditions) == len(self.conditions):
            return self
        return self._with(clauses=kept, values=values, conditions=conditions)

    def together(self, other: Context) -> Context:
        """What holds where both do: two points of a program whose variables differ."""
        known = {id(c) for c in self.clauses}
        ranges = {**other.ranges, **self.ranges}
        for name in self.ranges.keys() & other.ranges.keys():
            (a, b), (c, d) = self.ranges[name], other.ranges[name]
            ranges[name] = max(a, c), min(b, d)
        contradictory = any(lo > hi for lo, hi in ranges.values())
        return self._with(ranges=ranges, clauses=(*self.clauses, *[c for c in other.clauses if id(c) not in known]),
                          values={}, conditions={}, unreachable=contradictory or self.unreachable or other.unreachable)

    # asking

    def proves(self, cond: Expr) -> bool:
        """Does the condition hold wherever the assumptions do? False when that could not be shown."""
        return self._shown(cond, True)

    def refutes(self, cond: Expr) -> bool:
        """Does the condition fail wherever the assumptions hold? False when that could not be shown."""
        return self._shown(cond, False)

    def _shown(self, cond: Expr, holds: bool) -> bool:
        return self.unreachable or self._once(
            (cond, holds), lambda: all(self._excludes_all(self.alternatives(*part)) for part in _disproofs(cond, holds)))

    def _excludes_all(self, alternatives: tuple[Alternative, ...] | None) -> bool:
        return alternatives is not None and all(self.excludes(a) for a in alternatives)

    def is_nonnegative(self, form: Linear) -> bool:
        """Is form ≥ 0 wherever the assumptions hold?"""
        return self.interval(form)[0] >= 0 or self.excludes((Constraint(form.scaled(-1).shifted(-1)),))

    def excludes(self, constraints: Alternative, widely: bool = False) -> bool:
        """Do the assumptions leave no integer point to a conjunction? `widely`: consider ranges beyond 2^31, too."""
        if self.unreachable:
            return True
        return self.depth > 0 and self._once(("excludes", constraints, widely), lambda: refuted(self._within_proof, constraints, widely))

    @property
    def _within_proof(self) -> Context:
        """The same assumptions for the questions of a proof. Their answers are others, remembered apart: so no answer depends on itself, nor on
        what was asked before, and no search goes on forever."""
        return self._once("within proof", lambda: replace(self, memo={}, depth=self.depth - 1))

    # linear forms of the values of expressions

    def linear(self, expr: Expr) -> Linear:
        """The mathematical value of an integer expression as a linear form; what may wrap is an atom."""
        known: Linear | None = self.memo.get(expr)
        if known is None:
            known = self.memo[expr] = self._linear(expr)
        return known

    def _once(self, question: Any, find: Callable[[], Answer]) -> Answer:
        """The answer, remembered."""
        if question not in self.memo:
            self.memo[question] = find()
        return self.memo[question]  # type: ignore[no-any-return]       # a question has answers of one type

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
                return self._fitting(_RING[expr.fn](*forms), expr)
            case Op(fn="floordiv", args=(a, b)) if is_integer(expr.dtype):
                return self._floordiv(self.linear(a), self.linear(b), expr)
            case Op(fn="mod", args=(a, b)) if is_integer(expr.dtype) and self.linear(b).is_constant and self.linear(b).constant > 0:
                form, divisor = self.linear(a), self.linear(b)
                return form - self._floordiv(form, divisor, expr).scaled(divisor.constant)
            case Op(fn="shr", args=(a, b)) if self.linear(b).is_constant and 0 <= self.linear(b).constant < DTYPES[expr.dtype].bits:
                return self._floordiv(self.linear(a), constant(1 << self.linear(b).constant), expr)
            case Op(fn="and", args=(a, Const(value=mask))) if is_integer(expr.dtype) and mask > 0 and mask & (mask + 1) == 0:
                return self._linear(Op("mod", (a, Const(mask + 1, expr.dtype)))) if mask < DTYPES[expr.dtype].greatest else self.linear(a)
            case Op(fn="truncdiv" | "truncmod", args=(a, b)) if self.interval(self.linear(a))[0] >= 0 and self.interval(self.linear(b))[0] > 0:
                return self.linear(Op("floordiv" if expr.fn == "truncdiv" else "mod", (a, b)))
            case Op(fn="relu", args=(a,)) if is_integer(expr.dtype):
                return self.linear(Op("max", (a, Const(0, expr.dtype))))
            case Op(fn="clip", args=(a, lo, hi)) if is_integer(expr.dtype):
                return self.linear(Op("min", (Op("max", (a, lo)), hi)))
            case Op(fn="abs", args=(a,)) if is_integer(expr.dtype):
                return self.linear(Op("max", (a, Op("neg", (a,)))))
            case Op(fn="min" | "max", args=(a, b)) if is_integer(expr.dtype):
                return self._extreme(expr, self.linear(a), self.linear(b))
            case Cast(dtype, arg) if (is_integer(arg.dtype) or arg.dtype == "bool") and is_integer(dtype):
                form = self.linear(arg)
                return form if self.fits(form, dtype) else of_atom(canonical(expr))
            case _:
                return of_atom(expr)

    def _floordiv(self, form: Linear, divisor: Linear, expr: Expr) -> Linear:
        """⌊form / divisor⌋, with the multiples of a constant divisor taken out."""
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
            return whole
        return self._fitting(whole + of_atom(Op("floordiv", (expression(rest), index(d)))), expr)

    def _extreme(self, expr: Op, a: Linear, b: Linear) -> Linear:
        least = expr.fn == "min"
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        if (ahi <= blo) if least else (alo >= bhi):
            return a
        if (bhi <= alo) if least else (blo >= ahi):
            return b
        return of_atom(Op(expr.fn, tuple(sorted([expression(a), expression(b)], key=text_of))))

    def _fitting(self, form: Linear, expr: Expr) -> Linear:
        """The form where its value is sure to be that of the expression; else an atom, the same one for expressions that the ring laws equate."""
        return form if self.fits(form, expr.dtype) else of_atom(canonical(expr))

    def fits(self, form: Linear, dtype: str = "i64") -> bool:
        """Is the value of `form` sure to be one of the type?"""
        row = DTYPES[dtype]
        lo, hi = self.interval(form)
        if row.least <= lo and hi <= row.greatest:
            return True
        return (self._products_are_bounded(form)
                and (lo >= row.least or self.excludes((Constraint(constant(row.least - 1) - form),), widely=True))
                and (hi <= row.greatest or self.excludes((Constraint(form.shifted(-row.greatest - 1)),), widely=True)))

    def _products_are_bounded(self, form: Linear) -> bool:
        """Could facts about products bound this form at all? Each of its large products must be part of one that is bounded, but for a factor
        that is compared with something else."""
        bounds = [m for c in self.clauses if c.is_wide for k in c.alternatives[0] for m in k.linear.terms]
        large = [m for m in form.terms if max(map(abs, self.interval(Linear({m: 1})))) >= GREATEST_BYTES]
        return all(len(m) > 1 and any(len(left := _left(m, b)) <= 1 and all(map(self._is_compared, left)) for b in bounds) for m in large)

    def _is_compared(self, atom: Expr) -> bool:
        """Is more known of the atom than its range?"""
        return not isinstance(atom, Var) or (atom,) in self._once("compared", lambda: {
            m for c in self.clauses if len(c.alternatives) == 1 for k in c.alternatives[0] if len(k.linear.terms) > 1 and k.linear.degree == 1
            for m in k.linear.terms})

    def interval(self, form: Linear) -> Range:
        """The least and the greatest value that the ranges of the atoms allow."""
        lo = hi = form.constant
        for m, c in form.terms.items():
            low, high = self.atom_range(m[0])
            for factor in m[1:]:
                a, b = self.atom_range(factor)
                corners = (low * a, low * b, high * a, high * b)
                low, high = min(corners), max(corners)
            if len(m) > 1:
                high = min(high, self._ceiling(m, high))
            lo, hi = (lo + c * low, hi + c * high) if c > 0 else (lo + c * high, hi + c * low)
        return lo, hi

    def _ceiling(self, m: Monomial, high: int) -> int:
        """What a product that may be as large as `high` cannot exceed: ⌊(M + 7) / 8⌋ · N is not greater than M · N."""
        known = self._ceilings()
        if not known or m in known or high <= GREATEST_BYTES:
            return known.get(m, high)
        whole = [self._at_most(a) for a in m]
        return high if None in whole else known.get(tuple(sorted([a for a in whole if a is not None], key=text_of)), high)

    def _at_most(self, atom: Expr) -> Expr | None:
        """An atom that is as great as this one, which is not negative, or greater: for ⌊(k·M + r) / d⌋ with k ≤ d and r < d, and for
        max(M + r, 0) with r ≤ 0, it is M. None where there is none."""
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
        """The products that are bounded as a whole, as the extents of one array are, and by what."""
        found: dict[Monomial, int] | None = self.memo.get("ceilings")
        if found is None:
            found = self.memo["ceilings"] = {}
            for form in [c.alternatives[0][0].linear for c in self.clauses if c.is_wide and len(c.alternatives[0]) == 1]:
                for m, k in form.terms.items() if len(form.terms) == 1 else ():
                    if k < 0:
                        found[m] = min(found.get(m, form.constant // -k), form.constant // -k)
        return found

    def atom_range(self, atom: Expr) -> Range:
        """The range of an atom by itself."""
        match atom:
            case Var(name) if name in self.ranges:
                return self.ranges[name]
            case Op(fn="floordiv", args=(a, Const(value=int() as d))) if d > 0:
                lo, hi = self.interval(self.linear(a))
                return lo // d, hi // d
            case Op(fn="floordiv", args=(a, b)):
                lo, hi = self.interval(self.linear(a))
                return (min(lo, 0), max(hi, 0)) if self.interval(self.linear(b))[0] >= 0 else (min(lo, 0, -hi), max(hi, 0, -lo))
            case Op(fn="mod", args=(_, b)) if self.interval(self.linear(b))[0] >= 0:
                return 0, max(self.interval(self.linear(b))[1] - 1, 0)               # modulo 0 is 0
            case Op(fn="min" | "max", args=(a, b)) if is_integer(atom.dtype):
                (alo, ahi), (blo, bhi) = self.interval(self.linear(a)), self.interval(self.linear(b))
                return (min(alo, blo), min(ahi, bhi)) if atom.fn == "min" else (max(alo, blo), max(ahi, bhi))
            case Op(fn="where", args=(_, a, b)) if is_integer(atom.dtype):
                (alo, ahi), (blo, bhi) = self.interval(self.linear(a)), self.interval(self.linear(b))
                return min(alo, blo), max(ahi, bhi)
            case _:
                row = DTYPES.get(atom.dtype)
                return (0, 1) if row is None or row.kind not in ("int", "uint") else (row.least, row.greatest)

    # conditions in disjunctive form

    def alternatives(self, cond: Expr, holds: bool = True) -> tuple[Alternative, ...] | None:
        """The condition as a disjunction of conjunctions; None when that is too large."""
        match cond:
            case Const(value=value):
                return ((),) if bool(value) == holds else ()
            case Var(name) if name in self.conditions:
                return self.alternatives(self.conditions[name], holds)
            case Op(fn="not", args=(a,)) if cond.dtype == "bool":
                return self.alternatives(a, not holds)
            case Op(fn="and" | "or", args=(a, b)) if cond.dtype == "bool":
                left, right = self.alternatives(a, holds), self.alternatives(b, holds)
                if (cond.fn == "and") == holds:
                    if left is None or right is None:          # one of two conditions that both hold
                        return right if left is None else left
                    both = tuple([x + y for x in left for y in right])
                    return both if len(both) <= MAX_ALTERNATIVES else None
                return None if left is None or right is None else left + right
            case Op(fn="where", args=(c, a, b)) if cond.dtype == "bool":
                return self.alternatives(_chosen(c, a, b), holds)
            case Op(fn=fn, args=(a, b)) if fn in _COMPARISONS and is_integer(a.dtype) and a.lanes == b.lanes == 1:
                kind, swap = _COMPARISONS[fn if holds else _OPPOSITE[fn]]
                left_form, right_form = (self.linear(b), self.linear(a)) if swap else (self.linear(a), self.linear(b))
                room = right_form - left_form                  # left < right is room ≥ 1
                return tuple([(Constraint(room.scaled(sign).shifted(-gap), equal),) for sign, gap, equal in _FORMS[kind]])
            case Op(fn="ne", args=operands):                   # of floats: one question, however it is asked
                return self.alternatives(Op("eq", operands), not holds)
            case Op(fn="gt" | "ge" as fn, args=(a, b)):
                return self.alternatives(Op({"gt": "lt", "ge": "le"}[fn], (b, a)), holds)
            case _:
                return ((Constraint(self.linear(cond).shifted(-1 if holds else 0), equal=True),),)

    # details

    def _with(self, **changes: Any) -> Context:
        own = {"ranges": self.ranges, "clauses": self.clauses, "values": self.values, "conditions": self.conditions, "bound": self.bound,
               "unreachable": self.unreachable}
        return Context(**{**own, **changes})

    def _valued(self, name: str, form: Linear, dtype: str) -> Context:
        """With the value of a scalar local."""
        value = expression(form, dtype)
        if len(form.terms) > 8 or name in reads(value):
            return self
        return self._with(values={**self.values, name: value})

    def _assuming(self, alternatives: tuple[Alternative, ...]) -> Context:
        possible = [a for a in alternatives if not any(is_false(c) for c in a)]
        if not possible:
            return self._with(unreachable=True)
        if any(all(c.linear.is_constant for c in a) for a in possible):
            return self
        if len(possible) > 1:
            return self._with(clauses=(*self.clauses, _clause(tuple(possible))))
        ranges = dict(self.ranges)
        kept: list[Constraint] = []
        for c in possible[0]:
            if not _tightened(ranges, c):
                kept.append(c)
        clauses = (*self.clauses, *[_clause(((c,),)) for c in kept if not c.linear.is_constant])
        return self._with(ranges=ranges, clauses=clauses, unreachable=self.unreachable or any(lo > hi for lo, hi in ranges.values()))

    def _gain(self, stmts: Iterable[Stmt], name: str) -> Linear | None:
        """What a list of statements adds to the scalar local `name`, where it does nothing else with it; over names known here."""
        total = constant(0)
        for stmt in stmts:
            if name not in writes(stmt):
                continue
            match stmt:
                case Incf(Aref(_, ()), value, "add") if is_integer(value.dtype) and not reads(value):
                    gain = self.linear(value)
                case For(_, lo, hi, step, _, body) if step is index(1) and not reads(lo) and not reads(hi):
                    inner = self._gain(body, name)
                    trips = self.linear(hi) - self.linear(lo)
                    if inner is None or not self._invariant(trips) or not self.is_nonnegative(trips):
                        return None
                    gain = inner.times(trips)
                case _:
                    return None
            if not self._invariant(gain):
                return None
            total = total + gain
        return total

    def _invariant(self, form: Linear) -> bool:
        return all(isinstance(a, Var) and a.name in self.ranges for a in form.atoms())


_AT_ENTRY: WeakValueDictionary[tuple[Any, ...], Context] = WeakValueDictionary()       # the facts at entry -> their context


def ends_in_failure(stmts: tuple[Stmt, ...]) -> bool:
    """Does a list of statements never reach its end?"""
    return bool(stmts) and (isinstance(stmts[-1], Fail) or (isinstance(stmts[-1], If) and ends_in_failure(stmts[-1].then)
                                                            and ends_in_failure(stmts[-1].otherwise)))


def _shl(a: Linear, b: Linear) -> Linear:
    return a.scaled(1 << b.constant) if b.is_constant and 0 <= b.constant < 64 else Linear({(Const(0),): 1}, 1 << 70)


_RING: dict[str, Callable[..., Linear]] = {
    "add": Linear.__add__, "sub": Linear.__sub__, "mul": Linear.times, "neg": lambda a: a.scaled(-1), "shl": _shl}

# comparison -> the relation between its operands, and whether they are exchanged
_COMPARISONS = {"lt": ("lt", False), "le": ("le", False), "gt": ("lt", True), "ge": ("le", True), "eq": ("eq", False), "ne": ("ne", False)}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
# relation -> alternatives (sign, gap, equality) of sign · (right - left) - gap ≥ 0 or = 0
_FORMS = {"lt": ((1, 1, False),), "le": ((1, 0, False),), "eq": ((1, 0, True),), "ne": ((1, 1, False), (-1, 1, False))}


def _product_bound(cond: Expr) -> Linear | None:
    """c - x·a·b, which is ≥ 0 where `x <= ⌊⌊c / max(a, 1)⌋ / max(b, 1)⌋` holds: how a product is bounded without computing it."""
    match cond:
        case Op("le", (x, Op("floordiv") as room)):
            product = linear(x)
            rest: Expr = room
            while isinstance(rest, Op) and rest.fn == "floordiv":
                rest, divisor = rest.args
                match divisor:
                    case Op("max", (factor, Const(value=1))):
                        product = product.times(linear(factor))
                    case _:
                        return None
            return constant(rest.value) - product if isinstance(rest, Const) else None
    return None


def _left(m: Monomial, taken: Monomial) -> Monomial:
    """The factors of m that are not among those taken."""
    rest = m
    for atom in taken:
        if atom in rest:
            rest = without(rest, atom)
    return rest


def _conjuncts(cond: Expr, holds: bool) -> list[tuple[Expr, bool]]:
    """Conditions that hold together exactly when `cond` does (or does not)."""
    match cond:
        case Op(fn="not", args=(a,)) if cond.dtype == "bool":
            return _conjuncts(a, not holds)
        case Op(fn="and" | "or", args=(a, b)) if cond.dtype == "bool" and (cond.fn == "and") == holds:
            return _conjuncts(a, holds) + _conjuncts(b, holds)
    return [(cond, holds)]


def _disproofs(cond: Expr, holds: bool) -> list[tuple[Expr, bool]]:
    """What has to be excluded, one by one, to show that `cond` holds (or does not)."""
    return [(part, not truth) for part, truth in _conjuncts(cond, holds)]


def _clause(alternatives: tuple[Alternative, ...]) -> Clause:
    atoms = {n for alternative in alternatives for c in alternative for a in c.linear.atoms() for n in a.unique() if isinstance(n, Expr)}
    wide = len(alternatives) == 1 and all(c.linear.constant > GREATEST_SIZE and all(len(m) > 1 for m in c.linear.terms) for c in alternatives[0])
    return Clause(alternatives, NOTHING.union(*[reads(a) for a in atoms]), frozenset(atoms), wide)


def _ranged(lo: int, hi: int) -> Range:
    return (lo, max(hi, lo - 1))


def _tightened(ranges: dict[str, Range], c: Constraint) -> bool:
    """Take a constraint on one variable into its range."""
    if len(c.linear.terms) != 1:
        return False
    (m, k), = c.linear.terms.items()
    if len(m) != 1 or not isinstance(m[0], Var):
        return False
    var = m[0]
    if var.name not in ranges:
        row = DTYPES.get(var.type or "i64")
        if row is None or row.kind not in ("int", "uint"):
            return False
        ranges[var.name] = (row.least, row.greatest)
    lo, hi = ranges[var.name]
    if c.equal or k > 0:
        lo = max(lo, -(c.linear.constant // k)) if k > 0 else max(lo, -(-c.linear.constant // -k))
    if c.equal or k < 0:
        hi = min(hi, c.linear.constant // -k) if k < 0 else min(hi, -c.linear.constant // k)
    ranges[var.name] = (lo, hi)
    return True


def _chosen(cond: Expr, a: Expr, b: Expr) -> Expr:
    """`(where cond a b)` of conditions as a formula; the lazy `and` and `or` of bodies are short ones."""
    otherwise = Op("not", (cond,))
    if isinstance(b, Const):
        return otherwise | a if b.value else cond & a
    if isinstance(a, Const):
        return cond | b if a.value else otherwise & b
    return (cond & a) | (otherwise & b)

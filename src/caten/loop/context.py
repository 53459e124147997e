"""Contexts: what is known at a program point (ranges, facts, values of scalars), and the questions it answers.

A context is immutable. Entering a loop, assuming a condition or passing a statement gives a new one. Results are
memoised across the steps of a schedule. A fact about memory is dropped when that memory may be written.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.dtypes import DTYPES, is_integer
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, kept_for
from ..core.program import Bind, Buffer, Ensure, Program, Require, Size
from ..frozen import frozen
from . import bound_chains, operation_count
from .affine import Linear, Monomial, canonical, constant, expression, linear, of_atom
from .disjunctions import alternatives, conjuncts, disproofs, product_bound
from .effects import NOTHING, reads, writes
from .integer_sets import Constraint
from .known_conditions import choices, remaining, stated
from .refutation import MAX_DEPTH, PATIENCE, Alternative, Clause, Range, is_false, refuted, without_common_factors
from .statements import Aref, Assume, Barrier, Fail, For, If, Incf, Let, Setf, Stmt, Vref
from .value_ranges import GREATEST_BYTES, GREATEST_SIZE, Valuation

SMALL = 8                      # nodes of a part that is kept in a large value
MOST_NODES = 64                # of the value of a name that is recorded; longer values would slow down every proof
MOST_CASES = 2                 # of a recorded disjunction; more help no proof and slow all down


@frozen
class Context(Valuation):
    """Immutable assumptions."""

    # construction

    @staticmethod
    def of(program: Program) -> Context:
        """The context at entry: sizes in range, bindings, arrays that fit in memory, the checked conditions. Programs
        that agree in these share one context if their work is counted together, and while one of them lives."""
        return _at_entry(program)

    @classmethod
    def _of(cls, program: Program) -> Context:
        ranges: dict[str, Range] = {s.name: (0, GREATEST_SIZE) for s in program.all(Size)}
        ranges |= {b.name: (b.value, b.value) for b in program.all(Bind)}
        context = cls(ranges, bound=frozenset([b.name for b in program.all(Bind)]))
        for dtype, shape in _kinds(program.all(Buffer)):
            context = context.holding_array(dtype, shape)
        for ensured in program.all(Ensure):
            context = context.given(ensured.cond)
        for required in program.all(Require):
            context = context.given(required.cond)
        return context

    def holding_array(self, dtype: str, shape: Iterable[Expr]) -> Context:
        """With an array: no extent is negative, and the byte size is at most 2^62."""
        context, count = self, constant(1)
        for extent in shape:
            form = linear(extent)
            count = count.times(form)
            if not isinstance(extent, Const | Var):
                context = context._assuming(((Constraint(form),),))
        if count.degree > 1:
            greatest = GREATEST_BYTES // DTYPES[dtype].bytes
            context = context._assuming(((Constraint(constant(greatest) - count),),))
            match list(count.terms.items()):
                case [((Var() as side, *others) as m, k)] if k > 0 and count.constant == 0 and {*others} == {side}:
                    most = int((greatest // k) ** (1 / len(m))) + 2        # of one square or cube; 2: floats round
                    context = context._assuming(((Constraint(constant(most) - of_atom(side)),),))
        return context

    def inside(self, loop: For) -> Context:
        """The context in the body of a loop, at any iteration."""
        changed = writes(loop)
        if not changed.isdisjoint(self.values):
            return self._inside(loop, changed)
        changed &= self._remembered().union(reads(loop.lo), reads(loop.hi), reads(loop.step))
        return self.once(("inside", loop.name, loop.lo, loop.hi, loop.step, changed),
                          lambda: self._inside(loop, changed))

    def _inside(self, loop: For, changed: frozenset[str]) -> Context:
        var = Var(loop.name, "i64")
        counted: dict[str, Expr] = {}                        # induction variables: locals that grow by a constant
        for name in [n for n in self.values if n in changed]:
            gain = self._gain(loop.body, name) if loop.step is index(1) else None
            if gain is not None and not reads(self.values[name]):
                passed = gain.times(of_atom(var) - self.linear(loop.lo))
                counted[name] = expression(self.linear(self.values[name]) + passed, self.values[name].dtype)
        lo, hi, step = self.linear(loop.lo), self.linear(loop.hi), self.linear(loop.step)
        least, most = self.interval(lo), self.interval(hi)
        for form in _equal_to(self, loop.hi) if isinstance(loop.hi, Var) else ():      # such as N = ⌊-2 / K⌋ + 2 ≤ 1
            most = most[0], min(most[1], self.interval(form)[1])
        if least[0] < 0 and self.is_nonnegative(lo):             # shown once, not at every index inside
            least = 0, least[1]
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
            context = context._assuming((upward if rising else downward,))
            length = hi - lo if rising else lo - hi
            for factor in _factors_of_tiles(context, length):                  # a nonzero product
                context = context._assuming(((Constraint(of_atom(factor).shifted(-1)),),))
            shown = frozenset([n.name for a in (hi - lo).atoms() for n in a.unique() if isinstance(n, Var)])
            context = context._with_whole_products(shown)._with_decided_products(length)._with_divided_equations()
            context = context._with_decided_extrema((lo, hi))
            if step.is_constant and abs(step.constant) != 1:      # i = lo + step·k
                count = Var(loop.name + ".k", "i64")
                context = context._with(ranges={**context.ranges, count.name: (0, GREATEST_BYTES)})
                context = context._assuming(((Constraint(i - lo - of_atom(count).scaled(step.constant), equal=True),),))
        else:
            context = context._assuming((upward, downward))
        context = context.forgetting(changed)
        return context._with(values={**context.values, **counted}) if counted else context

    def _with_decided_products(self, length: Linear) -> Context:
        """With the one of several alternatives that is left, if it says that a product is not 0: in a loop over k,
        where 1 ≤ a · b or k ≤ 0, neither a nor b is 0. `length`: that of the loop, 1 at least."""
        context = self
        for clause in self.clauses:
            if len(clause.alternatives) < 2:
                continue
            products = [a for a in clause.alternatives if len(a) == 1 and len(a[0].linear.terms) == 1
                        and a[0].linear.degree > 1 and a[0].linear.constant < 0 and not a[0].equal]
            others = [a for a in clause.alternatives if a not in products]
            if len(products) == 1 and all(any(not c.equal and self._is_below_zero(c.linear, length.shifted(-1))
                                              for c in a) for a in others):
                for factor in _factors(self, products[0][0].linear.shifted(-products[0][0].linear.constant)):
                    context = context._assuming(((Constraint(of_atom(factor).shifted(-1)),),))
        return context

    def _is_below_zero(self, form: Linear, least: Linear) -> bool:
        """Is a form negative by its interval, or by that of its sum with what is ≥ 0? A chain of bounds, which fails
        nearly always, would be tried again in each loop of a nest."""
        return self.interval(form)[1] < 0 or self.interval(form + least)[1] < 0

    def _with_decided_extrema(self, forms: Iterable[Linear]) -> Context:
        """With what the quotients and remainders in the bounds of a loop, and in what is known, are inside it, where it
        is known which operand a maximum in them is: k mod max(N, 1) = k mod N, since the loop has iterations, and
        ⌊max(N - 3, 0) / M⌋ = ⌊(N - 3) / M⌋. Simplified statements have that form."""
        context = self
        divided = [a for form in forms for a in form.atoms() if _divides_extremum(a)]
        for atom in dict.fromkeys([*divided, *[a for clause in self.clauses for a in clause.divided]]):
            assert isinstance(atom, Op)
            a, divisor = atom.args
            decided = canonical(atom.replace(args=(self._decided(a), self._decided(divisor))))
            if decided is not atom:
                context = context._assuming(((Constraint(of_atom(atom) - self.linear(decided), equal=True),),))
        return context

    def _decided(self, e: Expr) -> Expr:
        """An expression whose maxima and minima are the operand that they are known to be."""
        whole: Expr = e.map(self._decided)
        if isinstance(whole, Op) and _is_extremum(whole):
            a, b = whole.args
            if self.proves(a <= b):
                return b if whole.fn == "max" else a
            if self.proves(b <= a):
                return a if whole.fn == "max" else b
        return whole

    def _with_divided_equations(self) -> Context:
        """With the equations of products without their positive factors: in loops over b < B and t < T, B · T · E =
        2 · B · T · ⌊E / 2⌋ gives E = 2 · ⌊E / 2⌋."""
        context = self
        equations = [c.alternatives[0][0].linear for c in self.clauses
                     if len(c.alternatives) == len(c.alternatives[0]) == 1 and c.alternatives[0][0].equal]
        for divided in dict.fromkeys([without_common_factors(self, form) for form in equations]):
            if divided not in equations:
                context = context._assuming(((Constraint(divided, equal=True),),))
        return context

    def _with_whole_products(self, shown: frozenset[str]) -> Context:
        """With what is known of a · b, the bound of a loop, where it does not wrap: a · b · c fits, and c is not 0.
        That is known of c, or a loop is entered over c or over parts of it. `shown`: the sizes in the bounds of that
        loop, or those that are known not to be 0 from here on; one of them is a factor: others were tried before."""
        wide = dict.fromkeys([frozenset([a.name for a in m if isinstance(a, Var)])
                              for clause in self.clauses if clause.is_wide for c in clause.alternatives[0]
                              for m in c.linear.terms if len(m) > 2]) if shown else {}
        context = self
        for length in dict.fromkeys([name for whole in wide for name in sorted(whole)]):
            if shown != {length} and self.ranges.get(length, (0, 0))[0] < 1:
                continue
            fitting = [whole for whole in wide if length in whole and shown & whole]
            for clause in self.clauses:
                if len(clause.alternatives) > 1 or clause.is_wide:
                    continue
                for c in clause.alternatives[0]:
                    for m in c.linear.terms:
                        found = frozenset[str]().union(*[a.variables for a in m])
                        if length not in found and any(found < whole and all(
                                self.shows_nonnegative(of_atom(Var(n, "i64")).shifted(-1))
                                for n in sorted(whole - found - {length})) for whole in fitting):
                            context = context._with_rows(c, m, Var(length, "i64"))
        return context

    def _with_rows(self, c: Constraint, m: Monomial, length: Var) -> Context:
        """With a constraint in which the number of rows of an array, a · b, is not seen as something that may wrap; and
        with what follows for the factors, and for the index of a row times its length."""
        context, form, whole = self, c.linear, Linear({m: 1})
        is_below = c.linear.terms[m] == 1 and not c.equal
        if len(m) > 1 and not is_below:
            return self
        if len(m) == 1:
            if not (isinstance(m[0], Op) and m[0].fn == "mul") or (whole := self.linear(m[0])) == of_atom(m[0]):
                return self
            form = form.replace(m[0], whole)
            context = context._assuming(((Constraint(form, c.equal),),))
        rest = form - whole
        if not is_below or self.interval(rest)[1] >= 0:
            return context
        for factor in _factors(context, whole) if len(m) == 1 else ():                   # whole ≥ 1
            context = context._assuming(((Constraint(of_atom(factor).shifted(-1)),),))
        row = rest.scaled(-1).shifted(rest.constant)
        if len(row.terms) == 1 and rest.constant < 0:                                    # row < whole
            inside = constant(GREATEST_BYTES) - row.times(of_atom(length))
            context = context._assuming(((Constraint(inside),),))
        return context

    def given(self, cond: Expr, holds: bool = True) -> Context:
        """The context where a condition holds (or does not)."""
        return self.once(("given", cond, holds), lambda: self._given(cond, holds))

    def _given(self, cond: Expr, holds: bool) -> Context:
        # The others are arithmetic; but checks of conditions that read memory may contain them, too.
        context = self._stated(cond, holds) if reads(cond) or self.checks else self
        for part in conjuncts(cond, holds):
            if part[1] and (bound := product_bound(part[0])) is not None:
                context = context._assuming(((Constraint(bound),),))
                continue
            possible = context.alternatives(*part)
            if possible is not None and (part[1] or len(possible := _not_false(possible)) <= MOST_CASES):
                context = context._assuming(possible)
            context = context._with_factors_of(*part)
            for c in possible[0] if possible is not None and len(possible) == 1 else ():
                if not c.equal and c.linear.degree > 1:                  # k ≤ a · b, where 1 ≤ k: neither is 0
                    for factor in _factors_of_tiles(context, c.linear.shifted(1)):
                        context = context._assuming(((Constraint(of_atom(factor).shifted(-1)),),))
        return context._with_whole_products(frozenset([
            n for n in cond.variables if self.ranges.get(n, (0, 0))[0] < 1 <= context.ranges.get(n, (0, 0))[0]]))

    def _with_factors_of(self, cond: Expr, holds: bool) -> Context:
        """With what an equation says of the factors of a product: where a · b = 384, even modulo 2^64, neither is 0."""
        context = self
        match cond:
            case Op("eq" | "ne" as fn, (a, b)) if a.dtype == "i64" and (fn == "eq") == holds:
                form = linear(a) - linear(b)
                form = form if form.constant < 0 else form.scaled(-1)
                for factor in _factors(context, form) if form.constant else ():
                    context = context._assuming(((Constraint(of_atom(factor).shifted(-1)),),))
        return context

    def _stated(self, cond: Expr, holds: bool) -> Context:
        """With a condition as written, and the consequences of checks that contain it (unit propagation)."""
        literals = self.literals.union(stated(cond, holds))
        checks = (*self.checks,
                  *[c for part in conjuncts(cond, holds) if (c := choices(*part)) and c not in self.checks])
        context = self._with(literals=literals, checks=checks)
        for check in checks:
            left = remaining(check, literals)
            if left is not None and len(left) == 1 and left[0] not in literals:
                context = context._given(*left[0])
                literals = context.literals
        return context

    def where_nonnegative(self, form: Linear) -> Context:
        """The context where form ≥ 0."""
        return self._assuming(((Constraint(form),),))

    def with_elements_in(self, expr: Expr) -> Context:
        """With what is known of all elements of an array for those that an expression reads: an index that is made of
        one."""
        if not self.elements or self.elements.keys().isdisjoint(reads(expr)):
            return self
        return self.once(("elements", expr), lambda: self._with_elements_in(expr))

    def _with_elements_in(self, expr: Expr) -> Context:
        context = self
        for ref in [n for n in expr.unique() if isinstance(n, Aref) and n.buffer in self.elements]:
            least, end = map(self.linear, self.elements[ref.buffer])
            element = self.linear(ref)
            context = context._assuming(((Constraint(element - least), Constraint((end - element).shifted(-1))),))
        return context

    def after(self, stmt: Stmt) -> Context:
        """The context after `stmt` in its list."""
        if isinstance(stmt, Let | If):   # worth memoising
            return self.once(("after", stmt), lambda: self._after(stmt))
        return self._after(stmt)

    def _after(self, stmt: Stmt) -> Context:
        match stmt:
            case Assume(array, least, end):
                return self._with(elements={**self.elements, array.buffer: (least, end)})
            case Let(name, dtype, value):
                if dtype == "bool":
                    return self._with(conditions={**self.conditions, name: value})
                if not is_integer(dtype):
                    return self
                unknown: dict[str, Range] = {}
                if value.written_out > MOST_NODES:
                    value, unknown = _outlined(self, value, name)
                    if value.written_out > MOST_NODES or isinstance(value, Var):
                        return self
                context = self.with_elements_in(value)
                context = context._with(ranges={**self.ranges, **unknown}) if unknown else context
                form = context.linear(value)
                context = context._with(ranges={**context.ranges, name: context.interval(form)})
                return context._assuming(((Constraint(of_atom(Var(name, dtype)) - form, equal=True),),))
            case Fail():
                return self._with(unreachable=True)
            case Barrier():                                      # other threads may have written anything
                return self.forgetting(self._remembered())
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
        """The context after a list of statements."""
        context = self
        for stmt in stmts:
            context = context.after(stmt)
        return context

    def forgetting(self, buffers: frozenset[str]) -> Context:
        """Without the facts about buffers that may have been written."""
        if self._remembered().isdisjoint(buffers):
            return self
        kept = tuple([c for c in self.clauses if c.buffers.isdisjoint(buffers)])
        values = {n: v for n, v in self.values.items() if n not in buffers and reads(v).isdisjoint(buffers)}
        conditions = {n: v for n, v in self.conditions.items() if reads(v).isdisjoint(buffers)}
        literals = frozenset([p for p in self.literals if reads(p[0]).isdisjoint(buffers)])
        checks = tuple([c for c in self.checks if all(reads(cond).isdisjoint(buffers) for cond, _ in c)])
        elements = {n: of for n, of in self.elements.items() if n not in buffers}
        return self._with(clauses=kept, values=values, conditions=conditions, literals=literals, checks=checks,
                          elements=elements)

    def together(self, other: Context) -> Context:
        """The conjunction of two contexts: two points of a program whose variables differ."""
        known = {id(c) for c in self.clauses}
        ranges = {**other.ranges, **self.ranges}
        for name in self.ranges.keys() & other.ranges.keys():
            (a, b), (c, d) = self.ranges[name], other.ranges[name]
            ranges[name] = max(a, c), min(b, d)
        contradictory = any(lo > hi for lo, hi in ranges.values())
        return self._with(ranges=ranges, clauses=(*self.clauses, *[c for c in other.clauses if id(c) not in known]),
                          values={}, conditions={}, literals=frozenset(), checks=(), elements={
                              n: of for n, of in self.elements.items() if other.elements.get(n) == of},
                          unreachable=contradictory or self.unreachable or other.unreachable)

    # questions

    def equates(self, names: Iterable[str]) -> bool:
        """True if an equality with one of these variables is known. Without one, no remainder of them is known."""
        wanted = set(names)
        if any(self.ranges[n][0] == self.ranges[n][1] for n in wanted & self.ranges.keys()):
            return True
        return any(c.equal and any(isinstance(a, Var) and a.name in wanted for a in clause.atoms)
                   for clause in self.clauses for alternative in clause.alternatives for c in alternative)

    def with_equations_of(self, other: Context) -> Context:
        """With the equations that are known in another context, and the variables of which it knows the value. Contexts
        that agree in these share one."""
        def equations() -> tuple[tuple[Clause, ...], dict[str, Range]]:
            return (tuple([c for c in other.clauses if any(k.equal for a in c.alternatives for k in a)]),
                    {n: (lo, hi) for n, (lo, hi) in other.ranges.items() if lo == hi})
        clauses, values = other._of_facts("equations", equations)
        known = {c.alternatives for c in self.clauses}
        new = tuple([c for c in clauses if c.alternatives not in known])
        return self.once(("with", new, frozenset(values.items())), lambda: self._with(
            clauses=(*self.clauses, *new), ranges={**self.ranges, **values}))

    def proves(self, cond: Expr) -> bool:
        """True if the condition is shown to hold wherever the assumptions do."""
        return self._shown(cond, True)

    def refutes(self, cond: Expr) -> bool:
        """True if the condition is shown to fail wherever the assumptions hold."""
        return self._shown(cond, False)

    def _shown(self, cond: Expr, holds: bool) -> bool:
        return self.unreachable or self.once(
            (cond, holds), lambda: all(self._excludes_all(self.alternatives(*part)) for part in disproofs(cond, holds)))

    def _excludes_all(self, possible: tuple[Alternative, ...] | None) -> bool:
        return possible is not None and all(self.excludes(a) for a in possible)

    def is_contradictory(self) -> bool:
        """True if one of the conditions as written is shown to fail wherever the assumptions hold: nothing runs
        here."""
        return self.unreachable or any(self.refutes(cond) if holds else self.proves(cond)
                                       for cond, holds in self.literals)

    def is_nonnegative(self, form: Linear) -> bool:
        """True if form ≥ 0 is shown wherever the assumptions hold."""
        return self.interval(form)[0] >= 0 or self.excludes((Constraint(self._at_ends(form).scaled(-1).shifted(-1)),))

    def _at_ends(self, form: Linear) -> Linear:
        """The least value of the form over the variables that nothing but their range is known of, as the lane of a
        vector: a search would only carry them along."""
        for (atom, *more), factor in form.terms.items():
            if more or not isinstance(atom, Var) or atom.name not in self.ranges or self.about(atom):
                continue
            if sum(atom.name in a.variables for a in form.atoms()) == 1:
                end = self.ranges[atom.name][factor < 0]
                form = form.plus(of_atom(atom), -factor).shifted(factor * end)
        return form

    def shows_nonnegative(self, form: Linear) -> bool:
        """As `is_nonnegative`, by short proofs alone: for what is better where it is shown, and right in any case."""
        return self.interval(form)[0] >= 0 or self.once(
            ("shows", form), lambda: bound_chains.is_nonnegative(self, form))

    def excludes(self, constraints: Alternative, widely: bool = False) -> bool:
        """True if the assumptions are shown to exclude the conjunction. `widely`: use ranges beyond 2^31."""
        if self.unreachable:
            return True
        return self.depth > 0 and self.once(("excludes", constraints, widely),
                                             lambda: self._excluded(constraints, widely))

    def _excluded(self, constraints: Alternative, widely: bool) -> bool:
        if not widely and _contradicts(self, constraints):
            operation_count.current().charge(operation_count.QUESTION)
            return True
        if refuted(self._within_proof, constraints, widely):
            return True
        return _contradicts(self._within_proof, constraints) if widely else self._separates(constraints)

    def _separates(self, constraints: Alternative) -> bool:
        """Does a chain of bounds exclude an equation of a conjunction where its inequalities hold? Two iterations i < k
        and the rows of an array: i · N + j, with j < N, is not k · N + N - 4."""
        equations = [c.linear for c in constraints if c.equal]
        rest = tuple([c for c in constraints if not c.equal])
        known = self._assuming((rest,)) if equations and rest else self
        return known is not self and any(bound_chains.is_nonnegative(known, side.shifted(-1))
                                         for form in equations for side in (form, form.scaled(-1)))

    def patient(self) -> Context:
        """The same assumptions with a larger work limit: for rare questions after a failed proof."""
        return self.once("patient", lambda: self._copied(memo={}, patience=PATIENCE))

    @property
    def _within_proof(self) -> Context:
        """The same assumptions for questions inside a proof. Their answers are memoised apart, so that no answer
        depends on itself or on the order of questions, and every search ends."""
        return self.once("within proof", lambda: self._copied(memo={}, depth=self.depth - 1))

    def alternatives(self, cond: Expr, holds: bool = True) -> tuple[Alternative, ...] | None:
        """The condition as a disjunction of conjunctions; None if that is too large."""
        return alternatives(self, cond, holds)

    # details

    def _with(self, **changes: Any) -> Context:
        return self._copied(memo={}, facts={}, depth=MAX_DEPTH, **changes)

    def _copied(self, **changes: Any) -> Context:
        """With other values of fields. Contexts are many: `dataclasses.replace` would take three times as long."""
        made = object.__new__(Context)
        made.__dict__.update(self.__dict__)
        made.__dict__.update(changes)
        return made

    def _valued(self, name: str, form: Linear, dtype: str) -> Context:
        """With the value of a scalar local."""
        value = expression(form, dtype)
        if len(form.terms) > 8 or name in reads(value):
            return self
        return self._with(values={**self.values, name: value})

    def _assuming(self, possible: tuple[Alternative, ...]) -> Context:
        possible = _not_false(possible)
        if not possible:
            return self._with(unreachable=True)
        if any(all(c.linear.is_constant for c in a) for a in possible):
            return self
        known = self._of_facts("stated", lambda: {c.alternatives for c in self.clauses})
        if len(possible) > 1:
            return self if possible in known else self._with(clauses=(*self.clauses, _clause(possible)))
        ranges = dict(self.ranges)
        kept: list[Constraint] = []
        for c in (*possible[0], *[part for whole in possible[0] for part in self._of_operands(whole)]):
            if not _tightened(ranges, c):
                kept.append(c)
        new = [_clause(((c,),)) for c in kept if not c.linear.is_constant and ((c,),) not in known]
        if not new and ranges == self.ranges:
            return self                    # nested loops state much again
        return self._with(ranges=ranges, clauses=(*self.clauses, *new), unreachable=self.unreachable
                          or any(lo > hi for lo, hi in ranges.values()))

    def _of_operands(self, c: Constraint) -> list[Constraint]:
        """What a bound of a minimum or maximum says of an operand that may be any number, such as an element of an
        array: where 1 ≤ min(n, max(k, 0)), 1 ≤ k, so that k - 1 does not wrap. Not where it is a factor, too:
        m - N · m may fall where m rises."""
        found: list[Constraint] = []
        for m, k in c.linear.terms.items() if not c.equal else ():
            match m:
                case (Op("min" | "max" as fn, (a, b)) as atom,) if (
                        is_integer(atom.dtype) and sum(atom in product for product in c.linear.terms) == 1):
                    sides = [c.linear.replace(atom, self.linear(side)) for side in (a, b)]
                    if (fn == "min") != (k > 0):               # one of the two holds
                        sides = [side for side in sides if self.interval(side)[1] >= 0]
                        sides = sides if len(sides) == 1 else []
                    for side in sides:
                        if any(max(map(abs, self.atom_range(each))) > GREATEST_BYTES for each in side.atoms()):
                            found += [Constraint(side), *self._of_operands(Constraint(side))]
        return found

    def _gain(self, stmts: Iterable[Stmt], name: str) -> Linear | None:
        """The sum that the statements add to the scalar local `name`, over names known here; None for other uses."""
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

    def _remembered(self) -> frozenset[str]:
        """The buffers that occur in facts (memoised: needed at every statement)."""
        return self.once("remembered", lambda: frozenset(self.values).union(
            self.elements, *[c.buffers for c in self.clauses],
            *[reads(e)
              for e in (*self.values.values(), *self.conditions.values(), *[cond for cond, _ in self.literals])],
            *[reads(cond) for check in self.checks for cond, _ in check]))

    def _invariant(self, form: Linear) -> bool:
        return all(isinstance(a, Var) and a.name in self.ranges for a in form.atoms())


def _kinds(buffers: Iterable[Buffer]) -> tuple[tuple[str, tuple[Expr, ...]], ...]:
    """The distinct element types and shapes of arrays. A second array of the same shape adds no facts."""
    return tuple(dict.fromkeys([(b.type, b.shape) for b in buffers]))


def _is_extremum(e: Node) -> bool:
    """Is it a maximum or minimum of two integers?"""
    return isinstance(e, Op) and e.fn in ("min", "max") and is_integer(e.dtype) and e.lanes == 1 and len(e.args) == 2


def _divides_extremum(e: Expr) -> bool:
    """Is it a quotient or remainder by what has a maximum or minimum, or one of such by what is no number?"""
    return (isinstance(e, Op) and e.fn in ("mod", "floordiv") and not isinstance(e.args[1], Const)
            and any(map(_is_extremum, e.unique())))


def ends_in_failure(stmts: tuple[Stmt, ...]) -> bool:
    """True if a list of statements never reaches its end."""
    return bool(stmts) and (isinstance(stmts[-1], Fail)
                            or (isinstance(stmts[-1], If) and ends_in_failure(stmts[-1].then)
                                                            and ends_in_failure(stmts[-1].otherwise)))


@kept_for(operation_count.current)
def _at_entry(program: Program) -> Context:
    contexts = operation_count.current().contexts
    facts = (_kinds(program.all(Buffer)),
             *[c for c in program.clauses if c.__class__ in (Size, Bind, Ensure, Require)])
    context: Context | None = contexts.get(facts)
    if context is None:
        context = contexts[facts] = Context._of(program)
    return context


def _outlined(context: Context, value: Expr, name: str) -> tuple[Expr, dict[str, Range]]:
    """A large value with a variable for each large operand that is no arithmetic of integers, such as a number that was
    a float, and the ranges of these variables: of an index that is kept inside of an array, its minima and maxima
    count."""
    unknown: dict[Expr, Var] = {}

    def small(e: Expr) -> Expr:
        if e.written_out <= SMALL:
            return e
        if isinstance(e, Op) and (is_integer(e.dtype) or e.dtype == "bool") and all(is_integer(a.dtype)
                                                                                 or a.dtype == "bool" for a in e.args):
            return e.map(small)
        if e not in unknown:
            unknown[e] = Var(f"{name}.{len(unknown)}", e.dtype)
        return unknown[e]
    made = small(value)
    return made, {var.name: context.atom_range(e) for e, var in unknown.items()}


def _not_false(possible: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    """The alternatives without those that are constantly false."""
    return tuple([a for a in possible if not any(is_false(c) for c in a)])


def _clause(alternatives: tuple[Alternative, ...]) -> Clause:
    atoms: dict[Expr, None] = {}                         # in order, so that proofs do not depend on hashes
    stack = [a for alternative in alternatives for c in alternative for a in c.linear.atoms()]
    while stack:
        atom = stack.pop()
        if atom not in atoms:
            atoms[atom] = None
            if not isinstance(atom, Aref | Vref):   # not its index
                stack.extend([n for n in atom.children if isinstance(n, Expr)])
    wide = len(alternatives) == 1 and all(c.linear.constant > GREATEST_SIZE and all(len(m) > 1 for m in c.linear.terms)
                                          for c in alternatives[0])
    return Clause(alternatives, NOTHING.union(*[reads(a) for a in atoms]), frozenset(atoms), wide,
                  tuple([a for a in atoms if _divides_extremum(a)]))


def _factors(context: Context, count: Linear) -> tuple[Expr, ...]:
    """The factors of an iteration count that is a single product of nonnegative atoms; else none."""
    ((m, k),) = count.terms.items() if len(count.terms) == 1 else (((), 0),)
    return m if len(m) > 1 and k > 0 and count.constant <= 0 and all(context.atom_range(a)[0] >= 0 for a in m) else ()


def _factors_of_tiles(context: Context, count: Linear, replaced: frozenset[Expr] = frozenset()) -> tuple[Expr, ...]:
    """The same of an iteration count that may be one of tiles, or of a slice with a step, ⌊a · b / 4⌋ ≥ 1 only where
    a · b ≥ 4; of the tail that they leave: a · b - 4 · ⌊a · b / 4⌋, or ⌊(a · b + 3) / 4⌋ - ⌊a · b / 4⌋; or of a size
    that an equation gives. `replaced`: the sizes whose equations were used."""
    less = {m: k for m, k in count.terms.items() if k < 0 and all(context.atom_range(a)[0] >= 0 for a in m)}
    if less:
        kept = {m: k for m, k in count.terms.items() if m not in less}
        count = Linear(kept, count.constant + context.interval(Linear(less))[1])
    match list(count.terms.items()):
        case [((atom,), k)] if k > 0 and (least := -((count.constant - 1) // k)) >= 0:            # atom ≥ least
            match atom:
                case Op("floordiv", (a, b)) if context.interval(divisor := context.linear(b))[0] > 0:
                    rest = context.linear(a) - divisor.scaled(least)
                    return _factors_of_tiles(context, rest.shifted(1), replaced)
                case Op("max", (a, b)) if context.interval(context.linear(b))[1] < least:
                    return _factors_of_tiles(context, context.linear(a).shifted(1 - least), replaced)
                case Var() if atom not in replaced:
                    for form in _equal_to(context, atom):
                        found = _factors_of_tiles(context, form.shifted(1 - least), replaced | {atom})
                        if found:
                            return found
    return _factors(context, count)


def _equal_to(context: Context, var: Var) -> list[Linear]:
    """The forms to which equations say that a variable is equal."""
    equations = [c.alternatives[0][0].linear for c in context.clauses
                 if len(c.alternatives) == len(c.alternatives[0]) == 1 and c.alternatives[0][0].equal
                 and var in c.atoms]
    of_var = [(form.terms.get((var,), 0), form) for form in equations]
    return [(form - of_atom(var).scaled(k)).scaled(-k) for k, form in of_var if abs(k) == 1]


def _ranged(lo: int, hi: int) -> Range:
    """The range of a loop variable, clipped to i64."""
    lo, hi = max(lo, DTYPES["i64"].least), min(hi, DTYPES["i64"].greatest)
    return (lo, max(hi, lo - 1))


def _tightened(ranges: dict[str, Range], c: Constraint) -> bool:
    """Intersect the range of a variable with a constraint on it alone; False if the constraint is of another form."""
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


def _contradicts(known: Context, constraints: Alternative) -> bool:
    """Does a chain of bounds show that an inequality does not hold?"""
    return any(not c.equal and bound_chains.is_nonnegative(known, c.linear.scaled(-1).shifted(-1)) for c in constraints)

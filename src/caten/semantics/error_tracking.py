"""Error tracking: one expression in float64 together with the bound of its rounding error, for the oracle.

Every intermediate value gets a name, which its bound refers to. Integers keep their types; one that depends on an
unsure decision (a comparison within the error bound) is marked loose.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..core.dtypes import DTYPES, FORMATS, part, rounded
from ..core.expr import FALSE, TRUE, Bitcast, Cast, Const, Expr, Op, Var, index, number
from ..core.scalars import OPERATORS
from ..errors import error
from ..frozen import frozen
from ..loop.effects import reads
from ..loop.statements import Aref, If, Let, Local, Setf, Stmt
from .rounding_bounds import (
    EXACT,
    INFINITE,
    LIMITS,
    apart,
    both,
    choose,
    distance,
    either,
    finite_size,
    greater,
    is_finite,
    leaves_domain,
    negated,
    plus,
    propagated,
    reaches,
    rounding,
    settled,
    size,
    smallest,
    unlimited,
)

WIDE = {"f16": "f64", "bf16": "f64", "f32": "f64", "f64": "f64", "c64": "c128", "c128": "c128"}


@frozen
class Tracked:
    """A value, the bound of its error, and whether an unsure decision makes it arbitrary. `factors`: of a product."""

    value: Expr
    bound: Expr = EXACT
    loose: Expr = FALSE
    factors: tuple[Expr, ...] = ()

    @property
    def overflowed(self) -> Expr:
        """True for a product of finite numbers that overflows. A fused multiply-add may still give a finite sum."""
        return both(negated(is_finite(self.value)), both(*map(is_finite, self.factors))) if self.factors else FALSE

    @property
    def whole(self) -> Expr:
        """The value, or the exact product if it overflows; 0 for NaN. Infinite beyond float64."""
        if not self.factors:
            return choose(is_finite(self.value), self.value, EXACT)
        return choose(is_finite(self.value), self.value,
                      choose(self.overflowed, self.factors[0] * self.factors[1], EXACT))


class Tracking:
    """Translates expressions; the statements that compute their values are collected in `out`.

        inputs    read-only arrays, which keep their types
        inexact   arrays with an array of bounds; `unsure`: those with an array of marks
        shapes    the shapes of all arrays
        doubtful  the code may be a branch that the exact run does not take
        memo      valid until memory is written
        fast      functions use their fast forms
    """

    def __init__(self, shapes: Mapping[str, tuple[Expr, ...]], inputs: Iterable[str], inexact: frozenset[str],
                 unsure: frozenset[str],
                 fast: bool = False):
        self.shapes, self.inputs, self.fast = shapes, frozenset(inputs), fast
        self.assumed_inexact, self.assumed_unsure = inexact, unsure
        self.lets: dict[str, Tracked] = {}
        self.count = 0
        self.out: list[Stmt] = []
        self.memo: dict[Expr, Tracked] = {}
        self.doubtful = False

    def named(self, value: Expr) -> Expr:
        """A value computed now, under a fresh name."""
        if isinstance(value, (Const, Var)):
            return value
        self.count += 1
        var = Var(f"q__{self.count}", value.dtype)
        self.out.append(Let(var.name, value.dtype, value))
        return var

    def value(self, expr: Expr) -> Tracked:
        if expr not in self.memo:
            self.memo[expr] = self.compute(expr)
        return self.memo[expr]

    def is_exact(self, expr: Expr) -> bool:
        """True if the expression has neither a float nor an unsure integer."""
        return all(not isinstance(n, Expr)
                   or (n.dtype not in WIDE and not (isinstance(n, Aref) and n.buffer in self.assumed_unsure)
                                               and not (isinstance(n, Var) and n.name in self.lets
                                                        and self.lets[n.name].loose is not FALSE))
                   for n in expr.unique())

    def compute(self, expr: Expr) -> Tracked:
        if self.is_exact(expr) and not (self.doubtful and reads(expr)):
            return Tracked(expr)
        match expr:
            case Const(value, dtype):
                return Tracked(Const(rounded_constant(value, dtype), WIDE[dtype]))
            case Var(name, dtype):
                return self.lets.get(name) or Tracked(self.named(Cast(WIDE[dtype], expr)) if dtype != WIDE[dtype]
                                                      else expr)
            case Aref():
                return self.load(expr)
            case Cast(target, arg):
                return self.cast(target, arg)
            case Bitcast(target, arg):
                return self.bitcast(target, arg)
            case Op("where", (cond, then, otherwise)):
                return self.where(self.value(cond), then, otherwise)
            case Op(fn, args):
                return self.operator(fn, tuple(self.value(a) for a in args), args[-1].dtype)
        raise error("E485", f"the oracle does not know ({expr.head} …)")

    def load(self, ref: Aref) -> Tracked:
        name, indices = ref.buffer, tuple(self.value(i) for i in ref.index)
        at = tuple(i.value for i in indices)
        loose: Expr = FALSE
        for i in indices:
            loose = either(loose, i.loose)
        wide = WIDE.get(ref.dtype, ref.dtype)
        held = ref.dtype if name in self.inputs else wide
        place = Aref(name, at, held)
        value = self.held(place, place)
        value = self.named(value if held == wide else Cast(wide, value))
        bound = (self.named(self.held(Aref(f"{name}__bound", at, "f64"), place)) if name in self.assumed_inexact
                 and ref.dtype in WIDE else EXACT)
        if name in self.assumed_unsure:
            loose = either(loose, Op("ne", (self.held(Aref(f"{name}__loose", at, "u8"), place), number(0, "u8"))))
        return Tracked(value, bound, self.named(loose))

    def held(self, ref: Aref, place: Aref) -> Expr:
        """The element of an array; 0 out of bounds. `ref`: the reference, or the same one in a companion array."""
        return choose(self.inside(place), ref, number(0, ref.dtype))

    def inside(self, place: Aref) -> Expr:
        """True if the reference is in bounds: always, unless the branch is doubtful."""
        if not self.doubtful:
            return TRUE
        asked = Aref(f"{place.buffer}__inside", place.index, "bool")
        if asked not in self.memo:
            within: Expr = TRUE
            for at, extent in zip(place.index, self.shapes[place.buffer], strict=True):
                end = self.value(extent).value
                if not (isinstance(at, Const) and isinstance(end, Const) and 0 <= at.value < end.value):
                    within = both(within, both(index(0) <= at, at < end))
            self.memo[asked] = Tracked(self.named(within))
        return self.memo[asked].value

    def operator(self, fn: str, args: tuple[Tracked, ...], dtype: str) -> Tracked:
        """`dtype`: the declared type of the operands."""
        values, bounds = tuple(a.value for a in args), tuple(a.bound for a in args)
        result = self.named(Op(fn, values))
        loose = self.named(decided(fn, args))
        if dtype not in WIDE or fn in ("isnan", "isinf"):
            return Tracked(result, EXACT,
                           loose if dtype not in WIDE else self.named(either(loose, unlimited(bounds[0]))))
        if OPERATORS[fn].gives == "bool":
            gap = self.named(distance(*values))
            return Tracked(result, EXACT, self.named(either(loose, reaches(gap, self.named(plus(*bounds))))))
        error_of_operands = propagated(fn, values, bounds, result)
        bound = plus(error_of_operands, rounding(fn, values, result, dtype, self.fast))
        loose = either(loose, leaves_domain(fn, values, bounds))
        if fn == "add":
            for x, y in [(x, y) for x, y in (args, args[::-1]) if x.factors]:
                against = both(x.overflowed, x.value * y.value < EXACT)
                bound = choose(both(against, negated(outweighs(size(x.whole), size(y.value), dtype))), INFINITE, bound)
        gives = OPERATORS[fn].result_type((dtype,))
        made = self.limited(Tracked(result, bound, loose), gives)
        return replace(made, factors=values) if fn == "mul" and gives in LIMITS else made

    def limited(self, tracked: Tracked, dtype: str) -> Tracked:
        """The value in its declared type: infinite beyond the greatest number, with an infinite bound near it."""
        bound, loose = self.named(tracked.bound), self.named(tracked.loose)
        if bound is EXACT:
            return Tracked(tracked.value, EXACT, loose)
        if dtype not in LIMITS:
            return Tracked(tracked.value, self.named(choose(unlimited(bound), INFINITE, bound)), loose)
        greatest = number(LIMITS[dtype][0], "f64")
        magnitude = self.named(size(tracked.value))
        value = choose(magnitude <= greatest, tracked.value, tracked.value * INFINITE)
        return Tracked(self.named(value), self.named(settled(magnitude, bound, greatest)), loose)

    def where(self, cond: Tracked, then: Expr, otherwise: Expr) -> Tracked:
        """Only the chosen arm is evaluated; both if the condition is unsure."""
        test, unsure = self.named(cond.value), self.named(cond.loose)
        outer, self.doubtful = self.doubtful, self.doubtful or unsure is not FALSE
        x = self.arm(then, either(test, unsure))
        y = self.arm(otherwise, either(negated(test), unsure))
        self.doubtful = outer
        value = self.named(choose(test, x.value, y.value))
        bound = choose(test, x.bound, y.bound)
        loose = choose(test, x.loose, y.loose)
        if unsure is not FALSE and then.dtype in WIDE:
            bound = choose(unsure, plus(greater(x.bound, y.bound), apart(x.value, y.value)), bound)
            loose = either(loose, both(unsure, either(x.loose, y.loose)))
        elif unsure is not FALSE:
            loose = either(loose, both(unsure, either(either(x.loose, y.loose), Op("ne", (x.value, y.value)))))
        return Tracked(value, self.named(bound), self.named(loose))

    def arm(self, expr: Expr, guard: Expr) -> Tracked:
        """An arm that reads arrays is computed into locals, under its condition only."""
        if not any(isinstance(n, Aref) for n in expr.unique()):
            return self.value(expr)
        outer, outer_memo = self.out, self.memo
        self.out, self.memo = [], dict(outer_memo)
        inner = self.value(expr)
        self.count += 1
        name, dtype = f"q__{self.count}", WIDE.get(expr.dtype, expr.dtype)
        slots = [(Aref(name, (), dtype), inner.value), (Aref(f"{name}__bound", (), "f64"), inner.bound),
                 (Aref(f"{name}__loose", (), "bool"), inner.loose)]
        kept = [(slot, v) for slot, v in slots if v not in (EXACT, FALSE) or slot.buffer == name]
        body = (*self.out, *[Setf(slot, v) for slot, v in kept])
        self.out, self.memo = outer, outer_memo
        for slot, _ in kept:
            self.out.append(Local(slot.buffer, slot.dtype, (), "register"))
            self.out.append(Setf(slot, number(0, slot.dtype)))
        self.out.append(If(guard, body))
        read = {slot.buffer: self.named(slot) for slot, _ in kept}
        return Tracked(read[name], read.get(f"{name}__bound", EXACT), read.get(f"{name}__loose", FALSE))

    def cast(self, target: str, arg: Expr) -> Tracked:
        x = self.value(arg)
        if arg.dtype not in WIDE:
            narrow = Cast(target, x.value)
            return Tracked(self.named(narrow if target == WIDE.get(target, target) else Cast(WIDE[target], narrow)),
                           EXACT, x.loose)
        if target in WIDE:
            value: Expr = x.value if x.value.dtype == WIDE[target] else Cast(WIDE[target], x.value)
            narrows = _narrows(arg.dtype, target)
            if narrows:
                value = Cast(WIDE[target], Cast(target, value))
            value = self.named(value)
            return Tracked(value, self.narrowed(x, target) if narrows and x.bound is not EXACT else x.bound, x.loose)
        if target == "bool":
            return Tracked(self.named(Cast(target, x.value)), EXACT,
                           self.named(either(x.loose, reaches(x.value, x.bound))))
        jump = FALSE if x.bound is EXACT else either(
            Op("ne", (Cast(target, x.value - x.bound), Cast(target, x.value + x.bound))), unlimited(x.bound))
        return Tracked(self.named(Cast(target, x.value)), EXACT, self.named(either(x.loose, jump)))

    def narrowed(self, x: Tracked, target: str) -> Expr:
        """The bound of an inexact value in a less precise type."""
        moved = self.named(x.bound + finite_size(x.value) * (2 * DTYPES[target].unit_roundoff) + smallest(target))
        within = choose(is_finite(moved), moved, INFINITE)
        if target in LIMITS:
            within = settled(size(x.value), moved, number(LIMITS[target][0], "f64"))
        return self.named(choose(Op("eq", (x.bound, EXACT)), EXACT, within))

    def bitcast(self, target: str, arg: Expr) -> Tracked:
        x = self.value(arg)
        held = x.value if arg.dtype == x.value.dtype else Cast(arg.dtype, x.value)
        value: Expr = Bitcast(target, held)
        if target in WIDE and target != WIDE[target]:
            value = Cast(WIDE[target], value)
        return Tracked(self.named(value), EXACT,
                       self.named(either(x.loose, FALSE if x.bound is EXACT else x.bound > EXACT)))


def _narrows(source: str, target: str) -> bool:
    """True if one float type has less precision or range than the other."""
    (precise, _, great), (rough, _, small) = (FORMATS[part(d)] for d in (source, target))
    return rough < precise or small < great


def outweighs(great: Expr, other: Expr, dtype: str) -> Expr:
    """True if a sum overflows its type although a term is subtracted. Beyond float64 it is infinite."""
    greatest = LIMITS[dtype][0]
    if greatest == LIMITS["f64"][0]:
        return both(great > number(greatest, "f64"), other <= number(greatest * 2.0**-60, "f64"))
    return number(greatest, "f64") < great - other


def decided(fn: str, args: tuple[Tracked, ...]) -> Expr:
    """True if an arbitrary operand makes the result arbitrary. A conjunction with a false operand is not arbitrary."""
    loose: Expr = FALSE
    if fn in ("and", "or") and args[0].value.dtype == "bool" and any(a.loose is not FALSE for a in args):
        x, y = args
        open_x, open_y = (x.value, y.value) if fn == "and" else (negated(x.value), negated(y.value))
        return either(both(x.loose, either(y.loose, open_y)), both(y.loose, either(x.loose, open_x)))
    for a in args:
        loose = either(loose, a.loose)
    return loose


def rounded_constant(value: float | complex, dtype: str) -> float | complex:
    """A literal rounded to its declared type."""
    if isinstance(value, complex):
        parts = [rounded_constant(p, "f32" if dtype == "c64" else "f64") for p in (value.real, value.imag)]
        return complex(*parts)
    return rounded(value, dtype)

"""What a loop keeps of the iteration with the greatest or least element: the two-variable pattern of argmax and argmin.

    (if (> x best) ((setf best x) (setf at j)))

The condition may be spelled in any way. What counts is its value if the element is less than, equal to or greater than
the best one so far, and if one of them is NaN: `Extreme.of` evaluates it in these cases.

    x > best, x >= best, not (x <= best), …      the first or last of the greatest elements; never a NaN, or NumPy's
                                                 rule, by which a NaN is greater than all numbers
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from ..core.dtypes import is_float
from ..core.expr import TRUE, Const, Expr, Op, Var
from ..core.monoids import identity, is_monoid
from ..core.node import substitute
from ..frozen import frozen
from .loop_splitting import conjunction, conjuncts

# The cases of a comparison: an element, and the best one so far.
LESS, EQUAL, GREATER, NAN, AFTER_NAN, BOTH_NAN = CASES = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (nan, 1.0), (1.0, nan),
                                                           (nan, nan))
COMPARISONS = {"lt": float.__lt__, "le": float.__le__, "gt": float.__gt__, "ge": float.__ge__, "eq": float.__eq__,
               "ne": float.__ne__}


@frozen
class Extreme:
    """A variable `best` that holds the extreme `key` so far, of the iterations where `conds` hold. `fn`: max or min.
    `is_last`: of equal elements it is the last. `takes_nan`: a NaN is more extreme than all numbers. `relation`: is the
    key taken? `kept`: what other variables are set to then."""

    best: Var
    key: Expr
    conds: tuple[Expr, ...]
    fn: str
    is_last: bool
    takes_nan: bool
    relation: Expr
    kept: Mapping[Var, Expr]

    @classmethod
    def of(cls, after: Mapping[Var, Expr]) -> Extreme | None:
        """The extreme that an iteration keeps. `after`: what each variable that it sets holds at its end, over what the
        variables hold before it. None if the iteration has another form."""
        updates = {v: _update(e, v) for v, e in after.items()}
        (facts, _), *others = updates.values()
        names = {v.name for v in after}
        if any(other != facts for other, _ in others) or any(names & e.variables for _, e in updates.values()):
            return None
        conds = tuple([c for c in facts if not names & c.variables])
        relation = conjunction([c for c in facts if names & c.variables])
        best = next((v for v in after if relation.variables & names == {v.name}), None)
        if best is None:
            return None
        key = updates[best][1]
        rule = _rule(relation, key, best)
        if rule is None:
            return None
        return cls(best, key, conds, *rule, relation, {v: e for v, (_, e) in updates.items() if v is not best})

    @property
    def reduced(self) -> Expr:
        """The expression whose maximum or minimum is the key that is taken, if any is."""
        if self.takes_nan or not is_float(self.key.dtype):
            return self.key
        return Op("where", (Op("eq", (self.key, self.key)), self.key, identity(self.fn, self.key.dtype)))

    def is_at(self, key: Expr, top: Expr) -> Expr:
        """Is a key the extreme?"""
        found = Op("eq", (key, top))
        return Op("or", (found, Op("isnan", (key,)))) if self.takes_nan and is_float(key.dtype) else found

    def is_taken(self, top: Expr, start: Expr) -> Expr:
        """Is the extreme taken, where the variable holds `start` before the loop?"""
        taken: Expr = substitute(self.relation, {self.key: top, self.best: start})
        return taken

    def begins_neutrally(self, start: Expr) -> bool:
        """Does the variable begin as the identity element, and is what is not taken equal to it?"""
        return start is identity(self.fn, self.key.dtype) and (self.takes_nan or not is_float(self.key.dtype))


def _update(e: Expr, before: Var) -> tuple[list[Expr], Expr]:
    """The conditions under which a variable is set, and what to."""
    facts: list[Expr] = []
    while True:
        match e:
            case Op("where", (cond, yes, no)) if no is before:
                facts, e = [*facts, *_facts(cond)], yes
            case Op("where", (cond, yes, no)) if yes is before:
                facts, e = [*facts, *_facts(Op("not", (cond,)))], no
            case _:
                return facts, e


def _facts(cond: Expr) -> list[Expr]:
    """The conditions that hold where a condition holds; those of `not (a or b)`, too."""
    match cond:
        case Op("not", (Op("or", (a, b)),)):
            return [*_facts(Op("not", (a,))), *_facts(Op("not", (b,)))]
        case Op("not", (Op("where", (a, yes, b)),)) if yes is TRUE:
            return [*_facts(Op("not", (a,))), *_facts(Op("not", (b,)))]
        case Op("not", (Op("not", (a,)),)):
            return _facts(a)
        case Op("and" | "where"):
            parts = conjuncts(cond)
            return parts if parts == [cond] else [f for part in parts for f in _facts(part)]
    return [cond]


def _rule(relation: Expr, key: Expr, best: Var) -> tuple[str, bool, bool] | None:
    """`fn`, `is_last` and `takes_nan`, if the extreme does not depend on the order of the others."""
    holds = {}
    for case in CASES:
        found = _value(relation, dict(zip((key, best), case, strict=True)))
        if found is None:
            return None
        holds[case] = bool(found)
    fn = {(False, True): "max", (True, False): "min"}.get((holds[LESS], holds[GREATER]))
    if fn is None or not is_monoid(fn, key.dtype):
        return None
    if not is_float(key.dtype):
        return fn, holds[EQUAL], False
    if holds[AFTER_NAN] or holds[BOTH_NAN] != (holds[EQUAL] and holds[NAN]):
        return None
    return fn, holds[EQUAL], holds[NAN]


def _value(e: Expr, at: Mapping[Expr, float]) -> float | bool | None:
    """What a comparison, or a condition of comparisons, gives in a case; None if it depends on anything else."""
    if e in at:
        return at[e]
    match e:
        case Const(value, "bool"):
            return bool(value)
        case Op("where", (cond, yes, no)):
            chosen = _value(cond, at)
            return None if chosen is None else _value(yes if chosen else no, at)
        case Op("and" | "or" | "not" | "isnan" | "lt" | "le" | "gt" | "ge" | "eq" | "ne", args):
            values = [_value(a, at) for a in args]
            known = [v for v in values if v is not None]
            return _applied(e.fn, known) if len(known) == len(values) else None
    return None


def _applied(fn: str, args: Sequence[float | bool]) -> bool:
    match fn:
        case "and":
            return all(args)
        case "or":
            return any(args)
        case "not":
            return not args[0]
        case "isnan":
            return args[0] != args[0]
    return bool(COMPARISONS[fn](float(args[0]), float(args[1])))

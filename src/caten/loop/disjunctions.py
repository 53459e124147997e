"""Disjunctive normal form: conditions as disjunctions of conjunctions of linear constraints."""
from __future__ import annotations

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op, Var
from ..core.node import kept
from ..core.scalars import EXCHANGED, NEGATED
from .affine import Linear, constant, linear
from .integer_sets import Constraint
from .refutation import Alternative
from .value_ranges import Valuation

MAX_ALTERNATIVES = 16          # of one condition

# comparison -> the relation between its operands, and whether they are exchanged
_COMPARISONS = {"lt": ("lt", False), "le": ("le", False), "gt": ("lt", True), "ge": ("le", True), "eq": ("eq", False),
                "ne": ("ne", False)}
# relation -> alternatives (sign, gap, equality) of sign · (right - left) - gap ≥ 0 or = 0
_FORMS = {"lt": ((1, 1, False),), "le": ((1, 0, False),), "eq": ((1, 0, True),), "ne": ((1, 1, False), (-1, 1, False))}


def alternatives(known: Valuation, cond: Expr, holds: bool = True) -> tuple[Alternative, ...] | None:
    """The condition as a disjunction of conjunctions; None if that is too large, or compares two numbers of tiles, of
    which nothing follows for a single size: with such products among what is known, all proofs take longer."""
    match cond:
        case Const(value=value):
            return ((),) if bool(value) == holds else ()
        case Var(name) if name in known.conditions:
            return alternatives(known, known.conditions[name], holds)
        case Op(fn="not", args=(a,)) if cond.dtype == "bool":
            return alternatives(known, a, not holds)
        case Op(fn="and" | "or", args=(a, b)) if cond.dtype == "bool":
            left, right = alternatives(known, a, holds), alternatives(known, b, holds)
            if (cond.fn == "and") == holds:
                if left is None or right is None:          # one conjunct is enough
                    return right if left is None else left
                both = tuple([x + y for x in left for y in right])
                return both if len(both) <= MAX_ALTERNATIVES else None
            return None if left is None or right is None else left + right
        case Op(fn="where", args=(c, a, b)) if cond.dtype == "bool":
            return alternatives(known, _chosen(c, a, b), holds)
        case Op(fn=fn, args=(a, b)) if fn in _COMPARISONS and is_integer(a.dtype) and a.lanes == b.lanes == 1:
            if _is_of_tiles(a) and _is_of_tiles(b):
                return None
            kind, swap = _COMPARISONS[fn if holds else NEGATED[fn]]
            left_form, right_form = (known.linear(b), known.linear(a)) if swap else (known.linear(a), known.linear(b))
            room = right_form - left_form                  # left < right is room ≥ 1
            return tuple([(Constraint(room.scaled(sign).shifted(-gap), equal),) for sign, gap, equal in _FORMS[kind]])
        case Op(fn="ne", args=operands):                   # of floats, as not eq
            return alternatives(known, Op("eq", operands), not holds)
        case Op(fn="gt" | "ge" as fn, args=(a, b)):
            return alternatives(known, Op(EXCHANGED[fn], (b, a)), holds)
        case _:
            return ((Constraint(known.linear(cond).shifted(-1 if holds else 0), equal=True),),)


@kept
def _is_of_tiles(expr: Expr) -> bool:
    """Is it a number of tiles along several axes, ⌊(H + 3) / 4⌋ · ⌊(W + 7) / 8⌋?"""
    return any(len(m) > 1 and any(isinstance(a, Op) and a.fn == "floordiv" for a in m) for m in linear(expr).terms)


def _chosen(cond: Expr, a: Expr, b: Expr) -> Expr:
    """`(where cond a b)` of conditions as a formula. The lazy `and` and `or` of bodies are short ones."""
    otherwise = Op("not", (cond,))
    if isinstance(b, Const):
        return otherwise | a if b.value else cond & a
    if isinstance(a, Const):
        return cond | b if a.value else otherwise & b
    return (cond & a) | (otherwise & b)


def product_bound(cond: Expr) -> Linear | None:
    """c - x·a·b, which is ≥ 0 where `x <= ⌊⌊c / max(a, 1)⌋ / max(b, 1)⌋` holds: a product bounded by division."""
    match cond:
        case Op("le", (x, Op("floordiv") as room)):
            product = linear(x)
            rest: Expr = room
            while isinstance(rest, Op) and rest.fn == "floordiv":
                rest, divisor = rest.args
                match divisor:
                    case Op("max", (factor, Const(value=1)) | (Const(value=1), factor)):
                        product = product.times(linear(factor))
                    case _:
                        return None
            return constant(rest.value) - product if isinstance(rest, Const) else None
    return None


def conjuncts(cond: Expr, holds: bool) -> list[tuple[Expr, bool]]:
    """Conditions that hold together exactly when `cond` does (or does not)."""
    match cond:
        case Op(fn="not", args=(a,)) if cond.dtype == "bool":
            return conjuncts(a, not holds)
        case Op(fn="and" | "or", args=(a, b)) if cond.dtype == "bool" and (cond.fn == "and") == holds:
            return conjuncts(a, holds) + conjuncts(b, holds)
        case Op(fn="where", args=args) if cond.dtype == "bool":
            chosen = _chosen(*args)
            if isinstance(chosen, Op) and (chosen.fn == "and") == holds:
                return conjuncts(chosen, holds)
    return [(cond, holds)]


def disjuncts(cond: Expr, holds: bool) -> list[tuple[Expr, bool]]:
    """Conditions of which at least one holds exactly when `cond` does (or does not)."""
    return [(part, not truth) for part, truth in conjuncts(cond, not holds)]


def disproofs(cond: Expr, holds: bool) -> list[tuple[Expr, bool]]:
    """The conditions to exclude one by one in order to show that `cond` holds (or does not)."""
    return [(part, not truth) for part, truth in conjuncts(cond, holds)]

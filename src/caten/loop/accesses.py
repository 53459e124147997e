"""The accesses of a statement's own expressions, each with the context in which it runs."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.dtypes import is_integer
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, substitute
from ..frozen import frozen
from .affine import Linear, canonical, linear, of_atom
from .context import Context
from .effects import reads
from .integer_sets import Constraint
from .statements import Aref, For, If, Incf, Let, Local, Ramp, Ref, Setf, Splat, Stmt, Transpose, Vref

LANE = Var("lane.", "i64")          # the lane of a vector access; names of programs have no dot


@frozen
class Access:
    """A read or write of one element or vector. `guards`: the vector conditions under which a lane is accessed. `rows`:
    for a block, an axis and the number of vectors that follow each other along it."""

    ref: Aref | Vref
    context: Context
    is_write: bool = False
    guards: tuple[Expr, ...] = ()
    rows: tuple[int, int] | None = None

    def positions(self, lane: Var = LANE) -> tuple[Context, tuple[Expr, ...]]:
        """The index of any one accessed element (of a vector: any lane that its mask selects), and the context
        there."""
        if isinstance(self.ref, Aref):
            return self.context, self.ref.index
        context = self.context.given(index(0) <= lane).given(index(self.ref.count) > lane)
        for guard in (*self.guards, *((self.ref.mask,) if self.ref.mask is not None else ())):
            for part in conjuncts(guard):
                cond = lane_of(part, lane)
                context = context if cond is None else context.given(cond)
        moves = {self.ref.axis % max(len(self.ref.index), 1): lane}
        if self.rows is not None:
            axis, count = self.rows
            row = Var(lane.name + ".", "i64")
            context = context.given(index(0) <= row).given(index(count) > row)
            moves[axis % len(self.ref.index)] = row
        return context, tuple([i + moves[k] if k in moves else i for k, i in enumerate(self.ref.index)])


def conjuncts(mask: Expr) -> tuple[Expr, ...]:
    """The conditions that a mask joins by `and`; of vectors, whose reads have masks of their own, also those where the
    first says whether the second counts."""
    match mask:
        case Op("and", (a, b)) | Op("where", (a, b, Splat(_, Const(value=False)))):
            return (*conjuncts(a), *conjuncts(b))
    return (mask,)


def equalities(cond: Expr) -> Iterator[tuple[Var, Const]]:
    """The integer constants that variables equal where the condition holds."""
    for part in conjuncts(cond):
        match part:
            case Op("eq", (Var() as name, Const() as value)) | Op("eq", (Const() as value, Var() as name)):
                if is_integer(name.dtype):
                    yield name, value


def lane_of(value: Expr, lane: Var = LANE) -> Expr | None:
    """One lane of a vector value, as a scalar; None if it is not a simple function of the lane."""
    if value.lanes == 1:
        return value
    match value:
        case Splat(_, arg):
            return arg
        case Ramp(_, base, step):
            return base + step * lane
        case Op(fn, args):
            lanes = [lane_of(a, lane) for a in args]
            return None if None in lanes else Op(fn, tuple([a for a in lanes if a is not None]))
    return None


def accesses(stmt: Stmt, context: Context) -> Iterator[Access]:
    """The accesses that a statement itself makes (not those inside it), in order."""
    match stmt:
        case For(_, lo, hi, step):
            parts: tuple[Expr, ...] = (lo, hi, step)
        case If(cond):
            parts = (cond,)
        case Let(_, _, value):
            parts = (value,)
        case Local(_, _, shape):
            parts = shape
        case Setf(ref, value) | Incf(ref, value):
            for part in (*ref.children, value):
                yield from reading(part, context)
            if isinstance(ref, Aref | Vref):
                yield Access(ref, context, True)
            return
        case Transpose(ref, axis, value, value_axis):
            for part in (*ref.children, *value.children):
                yield from reading(part, context)
            yield Access(value, context, False, (), (value_axis, ref.count))
            yield Access(ref, context, True, (), (axis, value.count))
            return
        case _:
            return
    for part in parts:
        yield from reading(part, context)


def reading(expr: Node, context: Context, guards: tuple[Expr, ...] = ()) -> Iterator[Access]:
    """The reads of an expression. Reads inside an index come before the access that uses it."""
    if not reads(expr):
        return
    match expr:
        case Op("where", (cond, a, b)):
            yield from reading(cond, context, guards)
            if cond.lanes > 1:
                yield from reading(a, context, (*guards, cond))
                yield from reading(b, context, (*guards, Op("not", (cond,))))
            else:
                yield from reading(a, context.given(cond), guards)
                yield from reading(b, context.given(cond, False), guards)
        case _:
            for child in expr.children:
                yield from reading(child, context, guards)
            if isinstance(expr, Aref | Vref):
                yield Access(expr, context, False, guards)


def below(context: Context, position: Expr, extent: Expr) -> tuple[Linear, Linear]:
    """The two forms that are ≥ 0 exactly when 0 ≤ position < extent."""
    at = context.linear(position)
    return at, (context.linear(extent) - at).shifted(-1)


def is_inside(context: Context, position: Expr, extent: Expr) -> bool:
    """True if 0 ≤ position < extent wherever the assumptions hold (an access that is in bounds)."""
    context = context.with_elements_in(position)
    if all(context.is_nonnegative(form) for form in below(context, position, extent)):
        return True
    # Where its loop begins the extent may be a product that could wrap, and inside no more: then it is a whole there.
    if isinstance(extent, Op):
        form = context.linear(position)
        if all(context.is_nonnegative(each) for each in (form, (of_atom(canonical(extent)) - form).shifted(-1))):
            return True
    whole = _with_dividends(context, position)
    if whole is not position:
        return is_inside(context, whole, extent)
    # Where it was checked it may have been one that could wrap: then the check is about the expression as a whole.
    at = of_atom(canonical(position))
    if isinstance(position, Op):
        return all(context.is_nonnegative(form) for form in (at, (context.linear(extent) - at).shifted(-1)))
    named = _named(context, position)
    return named is not None and _is_bounded(context, named, "min", lambda form: form) and _is_bounded(
        context, named, "max", lambda form: (context.linear(extent) - form).shifted(-1))


def _with_dividends(context: Context, position: Expr) -> Expr:
    """The index with r for ⌊r / d⌋·d + r mod d, also times the same: where d is known to be positive, as inside of a
    loop that ends at it. Equal to it modulo 2^64."""
    divided = {n.args for n in position.unique() if isinstance(n, Op) and n.fn == "floordiv"}
    for n in [n for n in position.unique() if isinstance(n, Op) and n.fn == "mod" and n.args in divided]:
        r, d = n.args
        whole = Op("floordiv", n.args)
        if not isinstance(d, Const) and context.interval(context.linear(d))[0] >= 1:
            joined = canonical(substitute(position, {n: r - d * whole}))
            position = position if whole in joined.unique() else joined
    return position


def _named(context: Context, position: Expr) -> Op | None:
    """The minimum or maximum that a variable is known to equal: a `let` before what is known here."""
    if not isinstance(position, Var):
        return None
    for clause in context.clauses:
        for constraint in clause.alternatives[0] if len(clause.alternatives) == 1 else ():
            terms = constraint.linear.terms
            if constraint.equal and len(terms) == 2 and (position,) in terms and not constraint.linear.constant:
                (other, by), = [(m, c) for m, c in terms.items() if m != (position,)]
                if by == -terms[position,] and isinstance(other[0], Op) and other[0].fn in ("min", "max"):
                    return other[0] if len(other) == 1 else None
    return None


def _is_bounded(context: Context, at: Expr, every: str, bound: Callable[[Linear], Linear]) -> bool:
    """Is `bound(at)` ≥ 0 for one operand of minima and maxima, and for each operand of those that `every` names?"""
    if isinstance(at, Op) and at.fn in ("min", "max"):
        decide = all if at.fn == every else any
        return decide([_is_bounded(context, a, every, bound) for a in at.args])
    return context.is_nonnegative(bound(context.linear(at)))


def is_outside(context: Context, position: Expr, extent: Expr) -> bool:
    """True if 0 ≤ position < extent fails wherever the assumptions hold."""
    low, high = below(context, position, extent)
    return context.excludes((Constraint(low), Constraint(high)))


__all__ = ["LANE", "Access", "Ref", "accesses", "below", "is_inside", "is_outside", "lane_of", "reading"]


def stride_in(expr: Expr, name: str) -> int | None:
    """The constant stride of `expr` in the variable `name`; None if it is not constant.

    (+ (* 8 i) j) grows by 8 in i; (* i i) and (aref I i) by no constant.
    """
    stride = 0
    for monomial, factor in linear(expr).terms.items():
        match monomial:
            case (Var(name=n),) if n == name:
                stride = factor
            case _ if any(name in atom.variables for atom in monomial):
                return None
    return stride

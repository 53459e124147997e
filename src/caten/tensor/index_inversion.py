"""Index maps, inverted: which elements of a value read a given element of an array.

    y[i, j] = x[j, 2 * i + q]      x[b0, b1] is read where  j = b0,  2 i = b1 - q  for each q

Each component of the index of a read is an equation φ(axes) = b. It is solved for one of its axes, or for several whose
strides are digits of a number:

- an axis; the second time it occurs, the two must agree;
- s · a + rest = b, where the rest is over axes that stay free: a = (b - rest) / s, if s divides it;
- Σ strides · axes, each stride the product of the next one and its extent (a reshape): quotients and remainders;
- a quotient and a remainder of one number (the other way of a reshape): the number; one of them alone leaves an axis
  free that counts the others.

Axes that no equation determines stay free: they are summed over. What has an element as an index is not solved.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import substitute
from ..frozen import frozen
from ..loop.affine import Linear, canonical, expression, linear
from ..loop.context import Context
from ..loop.simplify import simplify
from ..loop.statements import For
from .values import Axis, reads_of

ZERO = index(0)
LONG = 1 << 62


@frozen
class Inverse:
    """`solved`: the axes that are determined, over the element's axes and the free ones; `free`: those that are not;
    `conds`: what must hold besides."""

    solved: Mapping[Expr, Expr]
    free: tuple[Axis, ...]
    conds: tuple[Expr, ...]


def inverse(read: Sequence[Expr], axes: Sequence[Axis], element: Sequence[Axis], context: Context) -> Inverse | None:
    """The inverse of an index map. `read`: the index, over `axes`; `element`: the axes of the array that is read, whose
    names differ from those of `axes`. None if it has none of these forms."""
    try:
        return _Solving(axes, element, context).inverse(read)
    except _Unsolved:
        return None


class _Unsolved(Exception):
    """An equation of no known form."""


class _Solving:
    def __init__(self, axes: Sequence[Axis], element: Sequence[Axis], context: Context) -> None:
        self.axes = {a.var: a for a in axes if not is_one(a.extent)}
        self.ones: dict[Expr, Expr] = {a.var: ZERO for a in axes if is_one(a.extent)}
        self.element = element
        self.context, self.among = within(element, context), within(axes, context)
        self.solved: dict[Expr, Expr] = {}
        self.conds: list[Expr] = []
        self.names = (f"(free {n})" for n in count())

    def inverse(self, read: Sequence[Expr]) -> Inverse:
        """The equations, the simplest first."""
        todo: list[tuple[Expr, Expr]] = [(canonical(substitute(e, self.ones)), ZERO if is_one(b.extent) else b.var)
                                         for e, b in zip(read, self.element, strict=True)]
        if any(reads_of(e) for e, _ in todo):
            raise _Unsolved
        todo = self.without_quotients(self.with_split_axes(todo))
        while todo:
            todo.sort(key=lambda equation: len(self.unknown(equation[0])))
            self.solve(*todo.pop(0))
        free = tuple([a for v, a in self.axes.items() if v not in self.solved])
        known: dict[Expr, Expr] = {**self.ones}
        for v, solution in reversed(self.solved.items()):    # in terms of axes that were determined later, if at all
            known[v] = canonical(substitute(solution, known))
        conds = [substitute(c, known) for c in self.conds]
        context = within(free, self.context)
        shown = tuple(dict.fromkeys([c for c in conds if not context.proves(c)]))
        return Inverse({v: simplify(e, context) for v, e in known.items()}, free, shown)

    def with_split_axes(self, todo: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr]]:
        """Equations in which an axis of m · n values that occurs as i // n and i mod n is two axes, of m and of n."""
        while (found := next((s for e, _ in todo for s in self.splits(e)), None)) is not None:
            axis, n, m = found
            high, low = self.new(m), self.new(n)
            self.solved[axis] = canonical(high * n + low)
            context = within([a for v, a in self.axes.items() if v not in self.solved], self.context)
            parts = {Op("floordiv", (axis, n)): high, Op("mod", (axis, n)): low, axis: self.solved[axis]}
            todo = [(simplify(substitute(e, parts), context), b) for e, b in todo]
        return todo

    def splits(self, e: Expr) -> Iterator[tuple[Var, Expr, Expr]]:
        """The axes of which an expression has quotients and remainders by a divisor of the extent, with the divisor and
        the number of times that it divides the extent."""
        for part in e.unique():
            match part:
                case Op("floordiv" | "mod", (Var() as axis, n)) if axis in self.axes and axis not in self.solved:
                    times = linear(self.axes[axis].extent).quotient(linear(n)) if not self.unknown(n) else None
                    if times is not None and self.among.proves(Op("le", (ZERO, n))):      # not 0: the axis has values
                        yield axis, n, expression(times)

    def unknown(self, e: Expr) -> list[Var]:
        """The axes of an expression that are not solved."""
        return [v for v in self.axes if v not in self.solved and v.name in e.variables]

    def set(self, axis: Var, value: Expr) -> None:
        """An axis is determined; it must be one of its values."""
        self.solved[axis] = value
        self.conds += _in_range(value, self.axes[axis].extent)

    def solve(self, e: Expr, b: Expr) -> None:
        """One equation e = b."""
        open_ = self.unknown(e)
        form = linear(canonical(substitute(e, self.solved)))
        if not open_:
            self.conds.append(Op("eq", (expression(form), b)))
            return
        parts = {v: form.coefficient(v) for v in open_}
        rest = form
        for v, c in parts.items():
            if any(w.name in expression(c).variables for w in self.axes) or any(
                    v.name in a.variables for m in form.terms for a in m if a is not v):
                raise _Unsolved                              # products of axes, or an axis within a quotient
            rest = rest - c.times(linear(v))
        target = linear(b) - rest
        if len(open_) > 1 and (found := digits(parts, self.axes)):
            self.as_digits(found, target)
            return
        axis, step = self.to_solve(parts)
        others = target
        for v, c in parts.items():
            if v is not axis:
                others = others - c.times(linear(v))
        if step == -1:
            others, step = others.scaled(-1), 1
        if step < 0:
            others, step = others.scaled(-1), -step
        value = canonical(expression(others))
        if step == 1:
            self.set(axis, value)
        else:
            self.conds.append(Op("eq", (Op("mod", (value, index(step))), ZERO)))
            self.set(axis, canonical(Op("floordiv", (value, index(step)))))

    def to_solve(self, parts: Mapping[Var, Linear]) -> tuple[Var, int]:
        """The axis that is determined by the others, over which is summed then: the longest, and of these one with the
        step 1. In 2 · q + a, that is the q of an image, and not the a of a window."""
        best = [(-_length(self.axes[v].extent), abs(c.constant) != 1, n, v)
                for n, (v, c) in enumerate(parts.items()) if c.is_constant and c.constant]
        if not best:
            raise _Unsolved
        axis = min(best)[3]
        return axis, parts[axis].constant

    def as_digits(self, digits: Sequence[tuple[Var, Linear]], target: Linear) -> None:
        """Σ stride · axis = target, by quotients and remainders."""
        first, top = digits[0]
        whole = top.times(linear(self.axes[first].extent))
        rest = canonical(expression(target))
        self.conds += _in_range(rest, expression(whole))
        for n, (axis, stride) in enumerate(digits):
            size = expression(stride)
            last = n + 1 == len(digits)
            self.solved[axis] = rest if last else canonical(Op("floordiv", (rest, size)))
            rest = rest if last else canonical(Op("mod", (rest, size)))

    def without_quotients(self, todo: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr]]:
        """Equations without x // n and x mod n, if these stand alone."""
        while (at := next((n for n, (e, _) in enumerate(todo) if self.is_quotient(e)), None)) is not None:
            pair = self.pair(todo)
            if pair is not None:
                high, low = pair
                (_, top), (e, bottom) = todo[high], todo[low]
                assert isinstance(e, Op)
                x, n = e.args
                self.conds += _in_range(bottom, n)
                made = canonical(top * n + bottom)
                todo = [t for k, t in enumerate(todo) if k not in pair] + [(x, made)]
                continue
            e, b = todo.pop(at)
            assert isinstance(e, Op)
            x, n = e.args
            if e.fn == "mod":                                # x = n · free + b: for each number of whole steps
                most = self.greatest(x)
                steps = most.shifted(1).quotient(linear(n))
                extent = canonical(Op("floordiv", (expression(most), n)) + 1) if steps is None else expression(steps)
                self.conds += _in_range(b, n)
                todo.append((x, canonical(self.new(extent) * n + b)))
            else:                                            # x = n · b + free
                todo.append((x, canonical(b * n + self.new(n))))
        return todo

    def new(self, extent: Expr) -> Expr:
        """A free axis."""
        axis = Axis(next(self.names), extent)
        self.axes[axis.var] = axis
        return axis.var

    def greatest(self, e: Expr) -> Linear:
        """The greatest value of a sum of axes that is nowhere negative."""
        form, high = linear(e), linear(ZERO)
        for m, c in form.terms.items():
            axes = [v for v in m if v in self.axes]
            if c < 0 or len(axes) > 1:
                raise _Unsolved
            term = Linear({m: c})
            for v in axes:
                assert isinstance(v, Var)
                term = term.replace(v, linear(self.axes[v].extent).shifted(-1))
            high = high + term
        if form.constant < 0:
            raise _Unsolved
        return high.shifted(form.constant)

    def is_quotient(self, e: Expr) -> bool:
        """Is it x // n or x mod n, with n a size and x over axes?"""
        return (isinstance(e, Op) and e.fn in ("floordiv", "mod") and not self.unknown(e.args[1])
                and bool(self.unknown(e.args[0])) and self.among.proves(Op("le", (index(1), e.args[1]))))

    def pair(self, todo: Sequence[tuple[Expr, Expr]]) -> tuple[int, int] | None:
        """A quotient and a remainder of the same number by the same divisor."""
        for low, (e, _) in enumerate(todo):
            if isinstance(e, Op) and e.fn == "mod" and self.is_quotient(e):
                wanted = canonical(Op("floordiv", e.args))
                for high, (other, _) in enumerate(todo):
                    if other is wanted or (high != low and self.is_same(other, wanted)):
                        return high, low
        return None

    def is_same(self, a: Expr, b: Expr) -> bool:
        """x // (m · n) is (x // n) // m."""
        match b:
            case Op("floordiv", (Op("floordiv", (x, n)), m)):
                return canonical(Op("floordiv", (x, canonical(m * n)))) is a
        return False


def digits(parts: Mapping[Var, Linear], axes: Mapping[Var, Axis]) -> list[tuple[Var, Linear]]:
    """The axes and their strides, the greatest first, if each stride is the next one times its extent, and the last
    one is 1; else none."""
    left = dict(parts)
    found: list[tuple[Var, Linear]] = []
    stride = linear(index(1))
    while left:
        axis = next((v for v, c in left.items() if c == stride), None)
        if axis is None:
            return []
        found.append((axis, left.pop(axis)))
        stride = stride.times(linear(axes[axis].extent))
    return found[::-1]


def _in_range(value: Expr, extent: Expr) -> Iterator[Expr]:
    yield Op("le", (ZERO, value))
    yield Op("lt", (value, extent))


def within(axes: Sequence[Axis], context: Context) -> Context:
    """Inside of loops over axes."""
    for a in axes:
        context = context.inside(For(a.name, ZERO, a.extent, index(1), "serial", ()))
    return context


def is_one(e: Expr) -> bool:
    """Is an extent 1 in each call?"""
    return isinstance(e, Const) and e.value == 1


def _length(e: Expr) -> int:
    """The number of values of an axis; of a size, more than any that is known, and more of a formula, as the extents of
    the result of a convolution are beside those of its window. But a window of k taps has k // 2 in each of two
    phases."""
    if isinstance(e, Const):
        return int(e.value)
    is_part = isinstance(e, Op) and e.fn == "floordiv" and isinstance(e.args[1], Const) and len(e.variables) == 1
    return LONG - 1 if is_part else LONG + (not isinstance(e, Var))


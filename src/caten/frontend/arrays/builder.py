"""The builder: where array operations put their values, conditions and complaints."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import NoReturn

from ...core.dtypes import computed, is_integer, is_short
from ...core.expr import TRUE, Cast, Const, Expr, Op, Var
from ...errors import error
from ...frozen import frozen
from ...tensor.values import Axis, Compute, Read, Reduce, Value, ValueTable
from ..typing import Term, Typing
from ..typing import Value as Typed
from .handles import ONE, ZERO, Array, Indices, Operand, is_one, spelled
from .size_facts import SizeFacts

CheckRow = Callable[[str, int], int]
MAX_INLINE = 24                # nodes of a scalar expression that its users repeat


@frozen
class Builder:
    """`table`: the values so far. `positions`: where each was first made, by name. `check`: allots the row of a
    run-time check, from its message and position. `rows`: those of the checks so far, by array, axis and array of
    indices. `counts`: the values that are numbers of what a mask selects, which are numbers of Python. `pos`: the
    offset in the body of the operation that is being made."""

    table: ValueTable
    typing: Typing
    sizes: SizeFacts
    check: CheckRow
    positions: dict[str, int]
    rows: dict[tuple[str, int, str], int]
    lang: str = "python"
    pos: int = 0
    counts: set[str] = field(default_factory=set)

    def at(self, pos: int) -> Builder:
        """The same for an operation at another position."""
        return replace(self, pos=pos)

    def fail(self, code: str, message: str, hint: str | None = None) -> NoReturn:
        raise error(code, message, self.typing.spot(self.pos), hint=hint)

    def is_never_negative(self, e: Expr, axes: frozenset[Expr] = frozenset()) -> bool:
        """Is an integer 0 or more if nothing in it overflows? Where something does, it is beyond every array. `axes`:
        those of the value that it is in."""
        match e:
            case Const(value=value):
                return int(value) >= 0
            case Var():
                return e in axes or e in self.sizes.never_negative or self.sizes.proves(e >= ZERO)
            case Read(name):
                value = self.table.values.get(name)
                return e in self.sizes.never_negative or (
                    isinstance(value, Compute)
                    and self.is_never_negative(value.expr, frozenset([a.var for a in value.axes])))
            case Op(fn="add" | "mul" | "min" | "floordiv", args=args):
                return all(self.is_never_negative(a, axes) for a in args)
            case Op(fn="max", args=args):
                return any(self.is_never_negative(a, axes) for a in args)
            case Op(fn="mod", args=(_, by)):                       # it has the sign of the divisor
                return self.is_never_negative(by, axes)
            case Op(fn="where", args=(_, a, b)):
                return self.is_never_negative(a, axes) and self.is_never_negative(b, axes)
            case Cast("i64", arg):
                return is_integer(arg.dtype) and (arg.dtype.startswith("u") or self.is_never_negative(arg, axes))
        return False

    # values

    def define(self, value: Value) -> str:
        """The name of a value."""
        name, = self.table.define(value)
        self.positions.setdefault(name, self.pos)
        return name

    def axes(self, shape: Sequence[Expr]) -> tuple[tuple[Axis, ...], Indices]:
        """The axes of a value of this shape, and their indices."""
        axes = self.table.axis_names.axes(shape)
        return axes, tuple([axis.var for axis in axes])

    def compute(self, shape: Sequence[Expr], element: Callable[[Indices], Expr]) -> Array:
        """The array whose elements are a formula over their indices."""
        axes, indices = self.axes(shape)
        expr = element(indices)
        return Array(self.define(Compute(expr.dtype, axes, expr)), expr.dtype, tuple(shape))

    def view(self, x: Array, shape: Sequence[Expr], index_map: Callable[[Indices], Sequence[Expr]]) -> Array:
        """The array whose element [i…] is x[index_map(i…)]; x itself where the map is the identity."""
        axes, indices = self.axes(shape)
        element = x.at(index_map(indices))
        if tuple(shape) == x.shape and element is x.at(indices):
            return x
        return Array(self.define(Compute(x.dtype, axes, element)), x.dtype, tuple(shape), x)

    def reduce(self, fn: str, shape: Sequence[Expr], over: Sequence[Expr],
               element: Callable[[Indices, Indices], Term], what: str,
               where: Callable[[Indices, Indices], Expr] = lambda kept, reduced: TRUE) -> Array:
        """The array of the sums (or another monoid) of an element over reduced indices, where a condition holds. 16-bit
        floats are accumulated in float32 and rounded once."""
        axes, kept = self.axes(shape)
        reduced = self.table.axis_names.over(over)
        inner = tuple([axis.var for axis in reduced])
        term = element(kept, inner)
        dtype = self.typing.storage(term.kind)
        fn = self.typing.monoid(fn, dtype)
        self.typing.apply(fn, [term, term], self.pos)               # E304 if it is not defined on the type
        expr = self.typing.settle_wide(term, dtype, what)
        reduce = Reduce(computed(dtype), axes, reduced, fn, where(kept, inner), expr)
        made = Array(self.define(reduce), computed(dtype), tuple(shape))
        return self.compute(shape, lambda i: Cast(dtype, made.at(i))) if is_short(dtype) else made

    def array(self, x: Operand) -> Array:
        """An operand as an array."""
        if isinstance(x, Array):
            return x
        expr = self.typing.default(x)
        return self.compute((), lambda _: expr)

    def term(self, x: Operand, indices: Indices) -> Term:
        """The element of an operand that numpy's broadcasting pairs with these indices."""
        if not isinstance(x, Array):
            return x
        own = indices[len(indices) - x.rank:]
        return Typed(x.dtype, self.pos, expr=x.at(own))

    def broadcast_term(self, x: Operand, indices: Indices, shape: Sequence[Expr]) -> Term:
        """`term`, with index 0 along the axes of extent 1 that are repeated."""
        if not isinstance(x, Array):
            return x
        start = len(shape) - x.rank
        return self.term(x, tuple([ZERO if is_one(mine) and not is_one(theirs) else i for mine, theirs, i in
                                   zip(x.shape, shape[start:], indices[start:], strict=True)]))

    # shapes

    def same_extent(self, x: Expr, y: Expr) -> Expr | None:
        """The extent of two axes that must have the same one: where it does not follow, it becomes a condition. None if
        they always differ."""
        if x is y:
            return x
        if not self.sizes.demand(Op("eq", (x, y)), self.pos):
            return None
        return min((x, y), key=lambda e: (not isinstance(e, Const), e.written_out))

    def broadcast(self, *shapes: Sequence[Expr]) -> tuple[Expr, ...]:
        """numpy's common shape. E320 if there is none."""
        common: tuple[Expr, ...] = tuple(shapes[0]) if shapes else ()
        for shape in shapes[1:]:
            rank = max(len(common), len(shape))
            padded = [(ONE,) * (rank - len(each)) + tuple(each) for each in (common, shape)]
            extents = []
            for x, y in zip(*padded, strict=True):
                both = y if is_one(x) else x if is_one(y) else self.same_extent(x, y)
                if both is None:
                    self.fail("E320", f"the shapes {spelled(common)} and {spelled(shape)} do not fit together",
                              "axes are compared from the last one on: each pair is equal, or one of them is 1")
                extents.append(both)
            common = tuple(extents)
        return common

    def same_shape(self, given: Sequence[Expr], wanted: Sequence[Expr], what: str, hint: str | None = None) -> None:
        """E320 unless two shapes are equal, perhaps on a condition."""
        if len(given) != len(wanted) or any(self.same_extent(x, y) is None
                                            for x, y in zip(given, wanted, strict=True)):
            self.fail("E320", f"{what} has the shape {spelled(wanted)}, but the value has {spelled(given)}", hint)

    def require(self, cond: Expr, code: str, message: str, hint: str | None = None) -> None:
        """Make it a condition of every call; the error if it never holds."""
        if not self.sizes.demand(cond, self.pos):
            self.fail(code, message, hint)

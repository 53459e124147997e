"""Closures: expressions and references of the loop level compiled to Python closures over one flat environment (the
interpreter's inner half).

Integer and bool scalars are Python numbers, floats are numpy scalars of their own type, vectors are numpy arrays. An
access out of bounds raises.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import integer_arithmetic
from ..core.dtypes import DTYPES
from ..core.expr import Bitcast, Cast, Const, Expr, Op, Var
from ..core.node import Node
from ..errors import CatenError, error
from ..loop.statements import Aref, Fold, Lanes, Prefix, Ramp, Ref, Shuffle, Splat, Transpose, Vref
from ..mathematics import evaluate

Value = Callable[[], Any]
Action = Callable[[], None]


def is_plain(dtype: str) -> bool:
    """True if scalars of this type are Python numbers here."""
    return DTYPES[dtype].kind in ("int", "uint", "bool")


def to_scalar(value: Any, dtype: str) -> Any:
    """A number as a scalar of the interpreter."""
    if dtype == "bool":
        return bool(value)
    return integer_arithmetic.wrap(int(value), dtype) if is_plain(dtype) else evaluate.numpy_type(dtype)(value)


def poison(dtype: str) -> Any:
    """The content of an uninitialised element: a value that shows when it is read."""
    return float("nan") if DTYPES[dtype].kind in ("float", "complex") else DTYPES[dtype].greatest


# Common scalar operators without numpy's overhead; they agree with evaluate.
SCALAR: dict[str, Callable[..., Any]] = {
    "max": lambda x, y: x if x >= y or x != x else y,
    "min": lambda x, y: x if x <= y or x != x else y,
}


class Closures:
    """Compiles nodes into closures over one flat environment (names are unique in a program)."""

    def __init__(self) -> None:
        self.env: list[Any] = []
        self.slots: dict[str, int] = {}
        self.memo: dict[Expr, Value] = {}

    def slot(self, name: str) -> int:
        if name not in self.slots:
            self.slots[name] = len(self.env)
            self.env.append(None)
        return self.slots[name]

    def set(self, name: str, value: Any) -> None:
        self.env[self.slot(name)] = value

    # expressions

    def value(self, expr: Expr) -> Value:
        if expr not in self.memo:
            self.memo[expr] = self._value(expr)
        return self.memo[expr]

    def _value(self, expr: Expr) -> Value:
        match expr:
            case Const(value, dtype):
                constant = to_scalar(value, dtype)
                return lambda: constant
            case Var(name):
                env, slot = self.env, self.slot(name)
                return lambda: env[slot]
            case Op("where", (cond, then, otherwise)) if expr.lanes == 1:
                test, yes, no = self.value(cond), self.value(then), self.value(otherwise)
                return lambda: yes() if test() else no()
            case Op(fn, args):
                return self.operator(fn, args, expr.lanes)
            case Cast(target, arg):
                return self.cast(arg, target)
            case Bitcast(target, arg):
                return self.bitcast(arg, target)
            case Aref():
                return self.read(expr)
            case Vref():
                return self.read_vector(expr) if expr.mask is None else self.read_lanes(expr, expr.mask)
            case Splat(count, arg):
                value, dtype = self.value(arg), evaluate.numpy_type(arg.dtype)
                return lambda: _filled(count, value(), dtype)
            case Ramp(count, base, step):
                first, by = self.value(base), self.value(step)
                lanes = np.arange(count).astype(evaluate.numpy_type(base.dtype))
                return lambda: first() + by() * lanes
            case Lanes(args):
                scalars, of = [self.value(a) for a in args], evaluate.numpy_type(expr.dtype)
                return lambda: np.array([scalar() for scalar in scalars], of)
            case Shuffle(arg, picks):
                value, chosen = self.value(arg), list(picks)
                return lambda: value()[chosen]
            case Fold(fn, arg):
                return self.fold(fn, arg)
            case Prefix(fn, arg):
                return self.prefix(fn, arg)
        raise error("E485", f"the interpreter does not know ({expr.head} …)")

    @staticmethod
    def function(fn: str, dtype: str, lanes: int) -> Callable[..., Any]:
        """The Python function of an operator on operands of an element type."""
        on_scalars = None
        if lanes == 1:
            on_scalars = SCALAR.get(fn) if DTYPES[dtype].kind == "float" else integer_arithmetic.function(fn, dtype)
        return on_scalars or evaluate.function(fn, dtype)

    def operator(self, fn: str, args: tuple[Expr, ...], lanes: int) -> Value:
        compute = self.function(fn, args[-1].dtype, lanes)
        values = [self.value(a) for a in args]
        if len(values) == 1:
            x, = values
            return lambda: compute(x())
        if len(values) == 2:
            x, y = values
            return lambda: compute(x(), y())
        x, y, z = values
        return lambda: compute(x(), y(), z())

    def cast(self, arg: Expr, target: str) -> Value:
        value, source = self.value(arg), arg.dtype
        if arg.lanes > 1 or DTYPES[source].kind == "complex":
            return lambda: evaluate.cast(value(), source, target)
        to = evaluate.numpy_type(target)
        d = DTYPES[target]
        if target == "bool":
            return lambda: bool(value() != 0)
        if is_plain(target) and is_plain(source):
            return lambda: integer_arithmetic.wrap(int(value()), target)
        if is_plain(target):
            return lambda: _saturate(float(value()), d.least, d.greatest)
        if target == "bf16" and source not in ("f16", "f32"):           # ml_dtypes would round to float32 on the way
            like = evaluate.numpy_type(source)
            return lambda: evaluate.cast(like(value()), source, target)
        if is_plain(source) and DTYPES[source].bits == 64:
            wide = evaluate.numpy_type(source)
            return lambda: to(x) if -1 << 53 <= (x := value()) <= 1 << 53 else evaluate.cast(wide(x), source, target)
        return lambda: to(value())

    def bitcast(self, arg: Expr, target: str) -> Value:
        value, like, plain = self.value(arg), evaluate.numpy_type(arg.dtype), is_plain(target) and arg.lanes == 1

        def reinterpret() -> Any:
            x = value()
            bits = evaluate.bitcast(x if isinstance(x, (np.ndarray, np.generic)) else like(x), target)
            return bits.item() if plain else bits
        return reinterpret

    def fold(self, fn: str, arg: Expr) -> Value:
        value, combine, plain = self.value(arg), evaluate.function(fn, arg.dtype), is_plain(arg.dtype)

        def tree() -> Any:
            v = value()
            while len(v) > 1:
                half = len(v) // 2
                v = np.concatenate((combine(v[:half], v[half:2 * half]), v[2 * half:]))
            return v[0].item() if plain else v[0]
        return tree

    def prefix(self, fn: str, arg: Expr) -> Value:
        value, combine = self.value(arg), evaluate.function(fn, arg.dtype)

        def steps() -> Any:
            v, apart = value(), 1
            while apart < len(v):
                v = np.concatenate((v[:apart], combine(v[:-apart], v[apart:])))
                apart *= 2
            return v
        return steps

    # references

    def locate(self, ref: Aref) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
        """The array and the index of an element, which is in bounds. Fast for one and two axes: every access comes
        here."""
        env, slot = self.env, self.slot(ref.buffer)
        parts = [self.value(i) for i in ref.index]
        if len(parts) == 1:
            first, = parts

            def place1() -> tuple[Any, tuple[Any, ...]]:
                array, i = env[slot], first()
                if not 0 <= i < len(array):
                    raise _outside(ref, (i,), array.shape)
                return array, (i,)
            return place1
        if len(parts) == 2:
            first, second = parts

            def place2() -> tuple[Any, tuple[Any, ...]]:
                array, at = env[slot], (first(), second())
                rows, columns = array.shape
                if not (0 <= at[0] < rows and 0 <= at[1] < columns):
                    raise _outside(ref, at, array.shape)
                return array, at
            return place2

        def place() -> tuple[Any, tuple[Any, ...]]:
            array, at = env[slot], tuple([p() for p in parts])
            for i, extent in zip(at, array.shape, strict=True):
                if not 0 <= i < extent:
                    raise _outside(ref, at, array.shape)
            return array, at
        return place

    def read(self, ref: Aref) -> Value:
        place = self.locate(ref)
        if is_plain(ref.dtype):
            def item() -> Any:
                array, at = place()
                return array.item(at)
            return item

        def element() -> Any:
            array, at = place()
            return array[at]
        return element

    def locate_vector(self, ref: Vref) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
        """The array, and the index of all lanes: a slice along the axis of the vector."""
        env, slot, parts, count = self.env, self.slot(ref.buffer), [self.value(i) for i in ref.index], ref.count
        axis = ref.axis % len(ref.index)
        spans = [count if n == axis else 1 for n in range(len(parts))]

        def place() -> tuple[Any, tuple[Any, ...]]:
            array, at = env[slot], [p() for p in parts]
            for i, span, extent in zip(at, spans, array.shape, strict=True):
                if not 0 <= i <= extent - span:
                    raise _outside(ref, tuple(at), array.shape)
            at[axis] = slice(at[axis], at[axis] + count)
            return array, tuple(at)
        return place

    def locate_lanes(self, ref: Vref, mask: Expr) -> Callable[[], tuple[Any, Any, Any]]:
        """The array, the index of the lanes under the mask, and which lanes these are: none, the first ones as a slice,
        or a mask."""
        env, slot, parts, count = self.env, self.slot(ref.buffer), [self.value(i) for i in ref.index], ref.count
        axis, asked, lanes = ref.axis % len(ref.index), self.value(mask), np.arange(count)

        def place() -> tuple[Any, Any, Any]:
            array, at = env[slot], [p() for p in parts]
            touched: Any = np.asarray(asked())
            if touched.shape != lanes.shape:
                touched = np.broadcast_to(touched, count)
            some = int(np.count_nonzero(touched))
            if some == 0:
                return array, (), slice(0)
            first = at[axis]
            if some == count or touched.argmin() == some:                  # the first ones
                along, touched, last = slice(first, first + some), slice(some), first + some - 1
            else:
                along = first + lanes[touched]
                first, last = int(along[0]), int(along[-1])
            for n, (i, extent) in enumerate(zip(at, array.shape, strict=True)):
                if not (0 <= first <= last < extent if n == axis else 0 <= i < extent):
                    raise _outside(ref, tuple(at), array.shape)
            at[axis] = along
            return array, tuple(at), touched
        return place

    def read_vector(self, ref: Vref) -> Value:
        place = self.locate_vector(ref)

        def vector() -> Any:
            array, at = place()
            return array[at]                   # a view: vectors have no names, so none outlives its statement
        return vector

    def read_lanes(self, ref: Vref, mask: Expr) -> Value:
        place, dtype, count = self.locate_lanes(ref, mask), evaluate.numpy_type(ref.dtype), ref.count

        def lanes() -> Any:
            array, at, touched = place()
            out = np.zeros(count, dtype)
            if at:
                out[touched] = array[at]
            return out
        return lanes

    def transpose(self, stmt: Transpose) -> Action:
        to, of = self.rows(stmt.ref, stmt.axis, stmt.value.count), self.rows(stmt.value, stmt.value_axis,
                                                                             stmt.ref.count)

        def move() -> None:
            to()[...] = of().T
        return move

    def rows(self, ref: Vref, axis: int, count: int) -> Callable[[], Any]:
        """`count` consecutive vectors along an axis, as a view: rows by lanes."""
        env, slot, parts, rank = self.env, self.slot(ref.buffer), [self.value(i) for i in ref.index], len(ref.index)
        counts = {axis % rank: count, ref.axis % rank: ref.count}

        def view() -> Any:
            array, at = env[slot], tuple([p() for p in parts])
            if any(not 0 <= i <= i + counts.get(k, 1) <= extent
                   for k, (i, extent) in enumerate(zip(at, array.shape, strict=True))):
                raise _outside(ref, at, array.shape)
            part = array[tuple([slice(i, i + counts[k]) if k in counts else i for k, i in enumerate(at)])]
            return part if axis % rank < ref.axis % rank else part.T
        return view

    def combine(self, ref: Ref, value: Expr, fn: str) -> Action:
        """place = fn(place, value)"""
        if isinstance(ref, Vref):
            return self.write(ref, self.operator(fn, (ref, value), ref.lanes))
        assert isinstance(ref, Aref)
        place, compute, more, plain = self.locate(ref), self.function(fn, ref.dtype,
                                                                      1), self.value(value), is_plain(ref.dtype)

        def update() -> None:
            x = more()
            array, at = place()
            array[at] = compute(array.item(at) if plain else array[at], x)
        return update

    def write(self, ref: Ref, value: Value) -> Action:
        if isinstance(ref, Vref) and ref.mask is not None:
            return self.write_lanes(ref, ref.mask, value)
        assert isinstance(ref, Aref | Vref)
        place = self.locate(ref) if isinstance(ref, Aref) else self.locate_vector(ref)

        def store() -> None:
            element = value()
            array, at = place()
            array[at] = element
        return store

    def write_lanes(self, ref: Vref, mask: Expr, value: Value) -> Action:
        place, count = self.locate_lanes(ref, mask), ref.count

        def store() -> None:
            vector = value()
            array, at, touched = place()
            if at:
                array[at] = (vector if np.ndim(vector) else np.broadcast_to(vector, count))[touched]
        return store


def _filled(count: int, value: Any, dtype: Any) -> Any:
    """`numpy.full`, which takes three times as long."""
    made = np.empty(count, dtype)
    made.fill(value)
    return made


def _saturate(x: float, least: int, greatest: int) -> int:
    if x != x:
        return 0
    return least if x <= least else greatest if x >= greatest else int(x)


def _outside(ref: Node, at: tuple[Any, ...], shape: tuple[int, ...]) -> CatenError:
    return error("E485", f"the access {ref!r} is outside its array: index {tuple(int(i) for i in at)}, shape {shape}")

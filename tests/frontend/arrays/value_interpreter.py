"""The meaning of values, element by element over numpy arrays: a reference for tests at small sizes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from caten.core.expr import Bitcast, Cast, Const, Expr, Op, Var
from caten.core.monoids import identity
from caten.core.node import Node
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Buffer, Require, Scalar, Size
from caten.core.text import place_in
from caten.frontend.arrays.whole_arrays import Evaluated, evaluate
from caten.mathematics import evaluate as meaning
from caten.tensor.values import (
    Compute,
    Inside,
    Pieces,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    ValueTable,
)

Environment = Mapping[str, Any]


class OutsideError(Exception):
    """A checked index is outside, or an access that nothing checks."""


def element(expr: Expr, env: Environment, arrays: Environment) -> Any:
    """The value of an expression; `env` has indices, sizes and scalars."""
    match expr:
        case Const(value, dtype):
            return numpy_dtype(dtype).type(value)
        case Var(name):
            return env[name]
        case Read(buffer, index, _):
            at = tuple(int(element(i, env, arrays)) for i in index)
            array = arrays[buffer]
            if len(at) != array.ndim or not all(0 <= i < n for i, n in zip(at, array.shape, strict=True)):
                raise OutsideError(f"{expr!r} at {at} of {array.shape}")
            return array[at]
        case Pieces(at, arms, bounds):
            i = element(at, env, arrays)
            below = [n for n, bound in enumerate(bounds) if i < element(bound, env, arrays)]
            return element(arms[below[0] if below else len(arms) - 1], env, arrays)
        case Inside(index, extent, row):
            i = element(index, env, arrays)
            if not 0 <= i < element(extent, env, arrays):
                raise OutsideError(f"check {row}: {i}")
            return i
        case Cast(dtype, arg):
            return meaning.cast(element(arg, env, arrays), arg.dtype, dtype)
        case Bitcast(dtype, arg):
            return meaning.bitcast(element(arg, env, arrays), dtype)
        case Op("where", (cond, yes, no)):
            return element(yes if element(cond, env, arrays) else no, env, arrays)
        case Op(fn, args):
            return meaning.apply(fn, [element(a, env, arrays) for a in args], args[-1].dtype)
    raise AssertionError(expr)


def value(node: Value, env: Environment, arrays: Environment) -> Any:
    """All elements of a value."""
    if isinstance(node, Scatter):
        return scatter(node, env, arrays)
    assert isinstance(node, Compute | Reduce | Scan)
    shape = [int(element(axis.extent, env, arrays)) for axis in node.axes]
    made = np.zeros(shape, numpy_dtype(node.type))
    names = [axis.name for axis in node.axes]
    for at in np.ndindex(*shape):
        own = {**env, **dict(zip(names, map(np.int64, at), strict=True))}
        if isinstance(node, Compute):
            made[at] = element(node.expr, own, arrays)
        else:
            made[at] = reduction(node, own, arrays) if isinstance(node, Reduce) else running(node, own, arrays)
    return made


def reduction(node: Reduce, env: Environment, arrays: Environment) -> Any:
    """One element of a reduction."""
    total = numpy_dtype(node.type).type(identity(node.fn, node.type).value)
    spans = [range(int(element(axis.extent, env, arrays))) for axis in node.over]
    for at in product(*spans):
        own = {**env, **dict(zip([axis.name for axis in node.over], map(np.int64, at), strict=True))}
        if element(node.cond, own, arrays):
            total = meaning.apply(node.fn, [total, element(node.expr, own, arrays)], node.type)
    return total


def running(node: Scan, env: Environment, arrays: Environment) -> Any:
    """One element of a scan."""
    total = numpy_dtype(node.type).type(identity(node.fn, node.type).value)
    at, size = int(env[node.axis]), int(element(node.scanned.extent, env, arrays))
    span = range(at + (node.mode == "inclusive")) if node.direction == "up" else range(
        size - 1, at - (node.mode == "inclusive"), -1)
    for k in span:
        own = {**env, node.axis: np.int64(k)}
        if element(node.cond, own, arrays):
            total = meaning.apply(node.fn, [total, element(node.expr, own, arrays)], node.type)
    return total


def scatter(node: Scatter, env: Environment, arrays: Environment) -> Any:
    """All elements of a scatter."""
    made = arrays[node.source].copy()
    spans = [range(int(element(axis.extent, env, arrays))) for axis in node.axes]
    for at in product(*spans):
        own = {**env, **dict(zip([axis.name for axis in node.axes], map(np.int64, at), strict=True))}
        if element(node.cond, own, arrays):
            place = tuple(int(element(i, own, arrays)) for i in node.index)
            if not all(0 <= i < n for i, n in zip(place, made.shape, strict=True)):
                raise OutsideError(f"{place} of {made.shape}")
            made[place] = meaning.apply(node.fn, [made[place], element(node.expr, own, arrays)], node.type)
    return made


def run(found: Evaluated, sizes: Mapping[str, int], given: Environment) -> list[Any]:
    """The outputs for these sizes, scalars and arrays. A condition that fails is an AssertionError."""
    env = {**{name: np.int64(n) for name, n in sizes.items()}, **given}
    for required in found.conditions:
        assert element(required.cond, env, {}), f"{required!r} does not hold"
    arrays = dict(given)
    with np.errstate(all="ignore"):
        for definition in found.definitions:
            arrays[definition.name] = value(definition.value, env, arrays)
    return [arrays[output.value] for output in found.outputs]


def parameters(declared: str) -> tuple[Node, ...]:
    """Clauses from a short text: `X f32 M N; a f32; out Y f32 M; inout C f32 M`. Scalars have no axes."""
    sizes: dict[str, None] = {}
    clauses: list[Node] = []
    for part in declared.split(";"):
        words = part.split()
        access = words.pop(0) if words[0] in ("out", "inout") else "in"
        name, dtype, *axes = words
        if not axes and access == "in":
            clauses.append(Scalar(name, dtype))
            continue
        sizes.update(dict.fromkeys([a for a in axes if not a.isdigit()]))
        shape = tuple([Const(int(a), "i64") if a.isdigit() else Var(a, "i64") for a in axes])
        clauses.append(Buffer(name, dtype, shape, tuple(range(len(shape))), access))
    return (*[Size(name) for name in sizes], *clauses)


def evaluated(declared: str, code: str, outputs: Sequence[str] = ("R",), lang: str = "python",
              conditions: Sequence[Expr] = (), table: ValueTable | None = None) -> Evaluated:
    """The values of a body."""
    params = (*parameters(declared), *map(Require, conditions))
    rows = iter(range(1, 1000))
    return evaluate(params, outputs, code, lang, lambda pos: place_in(code, pos, "<body>"),
                    table or ValueTable(TensorProgram("t", params)), lambda message, pos: next(rows))


def tolerance(dtype: str) -> float:
    """A relative error that no sum of these sizes exceeds."""
    return {"f16": 3e-2, "f64": 1e-9}.get(dtype, 2e-4)


__all__ = ["OutsideError", "evaluated", "parameters", "run", "tolerance"]

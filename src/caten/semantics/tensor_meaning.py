"""The meaning of the tensor level: every element of a value by its formula, one after the other, over NumPy arrays. A
reference for tests at small sizes; `interpret` is that of loops."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..core.expr import Bitcast, Cast, Const, Expr, Op, Var, index
from ..core.monoids import identity
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Ensure, Scalar, Size
from ..loop.statements import Kernel, LoopProgram
from ..mathematics import evaluate as meaning
from ..tensor.values import (
    Compute,
    Inside,
    Nest,
    Pieces,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    operands_of,
    reads_of,
)
from . import interpret

Environment = Mapping[str, Any]


class OutsideError(Exception):
    """An index is outside its array. `row`: the check that fails; 0 where there is none."""

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


def run(program: TensorProgram, arguments: dict[str, Any]) -> int:
    """Run a program of the tensor level. `arguments`: an int for each size, a number for each scalar, an array for each
    buffer; those of outputs are updated in place. Returns 0, or the number of the check that failed. Raises
    OutsideError for an access that nothing checks."""
    env = {name: np.int64(v) if name in program.sizes else v for name, v in arguments.items()}
    for ensure in program.all(Ensure):
        if not element(ensure.cond, env, {}):
            return ensure.row
    arrays = {name: arguments[name].copy() for name in program.buffers}
    try:
        with np.errstate(all="ignore"):
            for check in program.checks:                               # before what rests on them
                define(program, [r.buffer for r in reads_of(check)], env, arrays)
                if element(check.cond, env, arrays):
                    return check.row
            define(program, [name for d in program.definitions for name in d.names or [""]], env, arrays)
    except OutsideError as outside:
        if outside.row:
            return outside.row
        raise
    for output in program.outputs:
        arguments[output.name][...] = arrays[output.value]
    return 0


def define(program: TensorProgram, names: Sequence[str], env: Environment, arrays: dict[str, Any]) -> None:
    """Compute the values of these names, and those that they read, unless they are known. The empty name is that of
    nests without results."""
    needed = set(names)
    for d in reversed(program.definitions):
        if needed & set(d.names):
            needed |= set(operands_of(d.value))
    for d in program.definitions:
        if not needed & set(d.names or [""]) or set(d.names) & arrays.keys():
            continue
        if isinstance(d.value, Nest):
            arrays.update(zip(d.names, nest(d.value, program, env, arrays), strict=True))
        else:
            arrays[d.name] = value(d.value, env, arrays)


def nest(node: Nest, program: TensorProgram, env: Environment, arrays: Environment) -> list[Any]:
    """The arrays that a nest writes: its loops are run. Raises OutsideError for a check that fails."""
    own: dict[str, Any] = {}
    for out in node.outs:
        shape = [int(element(e, env, {})) for e in out.shape]
        own[out.name] = arrays[out.source].copy() if out.source else np.zeros(shape, numpy_dtype(out.type))
    used = {name: arrays[name] for name in operands_of(node) if name not in own and name in arrays} | own
    types = {b.name: b.type for b in program.buffers.values()} | {out.name: out.type for out in node.outs}
    for d in program.definitions:
        types |= {name: dtype for name, dtype in d.declares_all() if name not in own}
    buffers = [Buffer(name, types[name], tuple([index(n) for n in a.shape]), tuple(range(a.ndim)), "inout")
               for name, a in used.items()]
    loops = LoopProgram(program.name, (*program.all(Size), *program.all(Scalar), *buffers, Kernel("nest", node.stmts)))
    sizes = {s.name: int(env[s.name]) for s in program.all(Size)}
    row = interpret.run(loops, {**sizes, **{s.name: env[s.name] for s in program.all(Scalar)}, **used})
    if row:
        raise OutsideError(f"check {row}", row)
    return [own[out.name] for out in node.outs]


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
                raise OutsideError(f"check {row}: {i}", row)
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

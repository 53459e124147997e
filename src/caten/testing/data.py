"""Arguments for a test run: drawn from a seed, fit for the operator, equal on every machine.

Floats are uniform in (-1, 1), integers in ±100, bool even; an integer that reaches an index is drawn inside the extent
that it indexes. An output that is no input is poisoned, so that an element which is never written shows.
"""
from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES, is_integer
from ..core.expr import Expr, Var
from ..core.node import Node
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Scalar
from ..core.size_formula import evaluate
from ..core.text import flat, form_of
from ..errors import error
from ..frontend.op import OpProgram
from ..loop.statements import Aref, Let, Local, Setf
from .archives import memory

POISON = {"float": np.nan, "complex": np.nan, "bool": True}


def arguments(op: OpProgram, values: Mapping[str, int | float], seed: int,
              given: Mapping[str, np.ndarray] | None = None) -> dict[str, Any]:
    """Every tensor, scalar and size by name, in the order of the parameters. Arrays lie in memory as declared.
    `given` replaces drawn arrays."""
    sizes = {n: int(values[n]) for n in op.sizes}
    check_extents(op, sizes)
    check_memory(op, sizes)
    limits = index_limits(op)
    result: dict[str, Any] = {}
    for param in op.params:
        if isinstance(param, Scalar):
            result[param.name] = _scalar(param, values, limits, seed)
        elif isinstance(param, Buffer):
            shape = tuple(int(evaluate(e, sizes)) for e in param.shape)
            array = laid_out(param, shape)
            if given is not None and param.name in given:
                with np.errstate(all="ignore"):
                    array[...] = given[param.name]
            elif param.access == "out":
                kind = DTYPES[param.type].kind
                array[...] = POISON.get(kind, min(0x5A, DTYPES[param.type].greatest))
            else:
                extents = [int(evaluate(e, sizes)) for e in limits.get(param.name, ())]
                array[...] = draw(param.type, shape, rng(seed, param.name), min(extents) if extents else None)
            result[param.name] = array
    return result | sizes


def check_extents(op: OpProgram, sizes: Mapping[str, int]) -> None:
    """E711 where an array would have a negative extent: there is none that the call, which refuses these sizes,
    could be made with."""
    for buffer in op.buffers.values():
        for extent in buffer.shape:
            if int(evaluate(extent, sizes)) < 0:
                raise error("E711",
                            f"{op.name}: the condition (>= {flat(form_of(extent))} 0) does not hold, which is an "
                            f"extent of '{buffer.name}'",
                            hint="give other sizes")


def check_memory(op: OpProgram, sizes: Mapping[str, int]) -> None:
    """E834 where the arrays, which a test run holds twice, are more than the memory of this machine."""
    total = sum(math.prod(max(0, int(evaluate(e, sizes))) for e in b.shape) * DTYPES[b.type].bytes
                for b in op.buffers.values())
    there = memory()
    if 2 * total > there:
        raise error("E834",
                    f"the arrays of {op.name} take {total / 2**30:,.1f} GiB at these sizes; this machine has "
                    f"{there / 2**30:,.1f} GiB",
                    hint="use smaller sizes")


def laid_out(param: Buffer, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape, dense in the declared order."""
    base = np.empty(tuple(shape[a] for a in param.order), numpy_dtype(param.type))
    return base.transpose(np.argsort(param.order)) if len(shape) > 1 else base


def rng(seed: int, name: str) -> np.random.Generator:
    """A generator of its own for each array, so that one array's size does not change another's numbers."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def draw(dtype: str, shape: tuple[int, ...], source: np.random.Generator, below: int | None = None) -> np.ndarray:
    """Random elements; integers in [0, below) where a limit is given."""
    d = DTYPES[dtype]
    if d.kind == "float":
        return source.uniform(-1, 1, shape).astype(numpy_dtype(dtype))
    if d.kind == "complex":
        return (source.uniform(-1, 1, shape) + 1j * source.uniform(-1, 1, shape)).astype(d.numpy)
    if d.kind == "bool":
        return source.integers(0, 2, shape).astype(bool)
    low, high = (0, max(1, below)) if below is not None else (max(d.least, -100), min(d.greatest, 100) + 1)
    return source.integers(low, min(high, d.greatest + 1), shape).astype(numpy_dtype(dtype))


def _scalar(param: Scalar, values: Mapping[str, int | float], limits: Mapping[str, list[Expr]], seed: int) -> Any:
    numpy_type = numpy_dtype(param.type).type
    if param.name in values:
        return numpy_type(values[param.name])
    if param.name in limits or (is_integer(param.type) and param.name.endswith(("stride", "step"))):
        return numpy_type(1)
    return draw(param.type, (), rng(seed, param.name))[()]


def index_limits(op: OpProgram) -> dict[str, list[Expr]]:
    """For every integer array or scalar whose elements reach an index: the extents that they index."""
    extents = {b.name: b.shape for b in op.buffers.values()}
    names: dict[str, Expr] = {}
    for s in op.body:
        for n in s.walk():
            if isinstance(n, Let):
                names[n.name] = n.value
            elif isinstance(n, Local):
                extents[n.name] = n.shape
            elif isinstance(n, Setf) and isinstance(n.ref, Aref) and not n.ref.index:
                names[n.ref.buffer] = n.value
    found: dict[str, list[Expr]] = {}
    for s in op.body:
        for n in s.walk():
            if isinstance(n, Aref) and n.buffer in extents:
                for axis, e in enumerate(n.index):
                    for source in _sources(e, names, op, 0):
                        found.setdefault(source, []).append(extents[n.buffer][axis])
    return found


def _sources(e: Node, names: Mapping[str, Expr], op: OpProgram, depth: int) -> Iterator[str]:
    """The integer arrays and scalars that an index is computed from, through names."""
    scalars = {s.name for s in op.all(Scalar)}
    for n in e.unique():
        if isinstance(n, Aref) and n.buffer in op.buffers and n.index:
            yield n.buffer
        elif isinstance(n, Var) and n.name in scalars:
            yield n.name
        name = n.name if isinstance(n, Var) else n.buffer if isinstance(n, Aref) else ""
        if name in names and depth < 8:
            yield from _sources(names[name], names, op, depth + 1)

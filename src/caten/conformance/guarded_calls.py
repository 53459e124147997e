"""Calling a kernel in memory that is watched: what it computed, and whether it touched what is not its own."""
from __future__ import annotations

import ctypes
import math
import mmap
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import Built
from ..core.dtypes import DTYPES
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Scalar
from ..core.size_formula import evaluate
from ..errors import CatenError
from ..frontend.op import OpProgram
from ..testing.data import POISON, index_limits
from ..testing.reference import caller, outputs_of
from .cases import Case
from .operand_values import ordinary

ALIGNMENT, AROUND = 64, 1 << 12                     # bytes
WATCHED = 1 << 26                                   # bytes up to which the memory around an array is compared
# beside 1: of the distance to the next number
ONE, HALF, MORE_THAN_HALF, LEAST_NORMAL, LEAST = 1.0, 0.5, 0.75 * 2.0**-52, 2.0**-1022, 2.0**-1074
Array = np.ndarray[Any, Any]


class Placed:
    """An array in memory of its own, with bytes around it and between its elements that nobody may change. `strides`
    in elements; `shift`: by how many elements it lies beside an aligned address; `fill`: the byte around it, another
    one for each array, so that a copy of it shows."""

    def __init__(self, array: Array, strides: Sequence[int], shift: int, fill: int):
        size = array.itemsize
        before = -sum([(n - 1) * s for n, s in zip(array.shape, strides, strict=True) if s < 0 < n]) * size
        reach = before + (sum([(n - 1) * s for n, s in zip(array.shape, strides, strict=True)
                               if s > 0]) + 1) * size if array.size else 0
        length = AROUND + ALIGNMENT + shift * size + reach + AROUND
        self.watched = length <= WATCHED
        self.memory = np.full(length, fill, np.uint8) if self.watched else np.frombuffer(_sparse(length), np.uint8)
        start = AROUND + -(self.memory.ctypes.data + AROUND) % ALIGNMENT + shift * size
        self.offset = start + before if array.size else 0
        self.view = np.ndarray(array.shape, array.dtype, self.memory, self.offset, [s * size for s in strides])
        self.view[...] = array
        self.before = self.memory.copy() if self.watched else None

    def strays(self) -> bool:
        """Was a byte written that belongs to no element?"""
        return self.before is not None and not np.array_equal(self._others(self.memory), self._others(self.before))

    def changed(self) -> bool:
        """Was any byte written?"""
        return self.before is not None and not np.array_equal(self.memory, self.before)

    def _others(self, memory: Array) -> Array:
        copy = memory.copy()
        np.ndarray(self.view.shape, self.view.dtype, copy, self.offset, self.view.strides)[...] = 0
        return copy


def _sparse(length: int) -> mmap.mmap:
    """Memory of which only the pages that are touched exist."""
    return mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))


def arguments_of(op: OpProgram, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """All arguments by name. What is not given is drawn, indices inside their axes; outputs are poisoned, so that
    what is never written shows."""
    arguments: dict[str, Any] = {}
    sizes = {n: int(given[n]) for n in op.sizes}
    limits = index_limits(op)
    for param in op.params:
        if not isinstance(param, (Buffer, Scalar)):
            continue
        kind, row = numpy_dtype(param.type), DTYPES[param.type]
        shape = tuple([int(evaluate(e, sizes)) for e in param.shape]) if isinstance(param, Buffer) else ()
        if param.name in given:
            arguments[param.name] = np.asarray(given[param.name]).astype(kind, copy=False)
        elif isinstance(param, Buffer) and param.access == "out":
            arguments[param.name] = np.full(shape, POISON.get(row.kind, min(0x5A, row.greatest)), kind)
        else:
            below = min([int(evaluate(e, sizes)) for e in limits.get(param.name, ())], default=None)
            arguments[param.name] = drawn(param.type, shape, rng) if below is None else rng.integers(0, max(1, below),
                                                                                                     shape).astype(kind)
        if isinstance(param, Scalar):
            arguments[param.name] = arguments[param.name][()]
    return arguments | sizes


def drawn(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Small numbers, of which the floats are quarters; integers over the whole range."""
    kind = DTYPES[dtype].kind
    if kind == "float":
        return (rng.integers(-12, 13, shape) / 4).astype(numpy_dtype(dtype))
    if kind == "complex":
        return ((rng.integers(-12, 13, shape) + 1j * rng.integers(-12, 13, shape)) / 4).astype(numpy_dtype(dtype))
    return ordinary(dtype, rng, math.prod(shape)).reshape(shape)


def call(built: Built, loaded: Any, op: OpProgram, case: Case, arguments: Mapping[str,
         Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """One call: {"error": …, "wrong": […]}, and the arrays that the kernel may write; {"memory": …} where there is
    none for it."""
    held: dict[str, Placed] = {}
    run: dict[str, Any] = dict(arguments)
    for param in op.params:
        if isinstance(param, Buffer):
            array = np.asarray(arguments[param.name])
            try:
                held[param.name] = Placed(array, _strides(param, array.shape, case), case.shift, 0xA5 - len(held))
            except (OSError, MemoryError) as problem:
                return {"memory": str(problem)}, {}
            run[param.name] = held[param.name].view
    message, arithmetic = "", _arithmetic()
    try:
        caller(op, getattr(loaded, op.name, loaded), run)()
    except CatenError as problem:
        message = problem.diagnostics[0].message
        if problem.diagnostics[0].code == "E712":
            return {"memory": message}, {}
    except Exception as problem:                     # a runtime's own Python may fail in any way
        message = f"{type(problem).__name__}: {problem}"
    outputs = outputs_of(op)
    wrong = [f"bytes beside the elements of {n} were written" for n in outputs if held[n].strays()]
    wrong += [f"the input {n} was written" for n in held if n not in outputs and held[n].changed()]
    if _arithmetic() != arithmetic:
        wrong.append("the call changed how this thread rounds, or what becomes of denormal numbers")
        _restore()
    for n in outputs:
        view = held[n].view
        if view.dtype == bool and view.size and (most := int(view.view(np.uint8).max())) > 1 and not message:
            wrong.append(f"{n} holds the byte {most} for true")
    return {"error": message, "wrong": wrong}, {n: np.array(held[n].view) for n in outputs}


def _arithmetic() -> bytes:
    """The bits that come of operations that tell the modes of rounding apart, and whether denormal numbers are kept
    (those may compare as zeros)."""
    return struct.pack("4d", ONE + MORE_THAN_HALF, -ONE - MORE_THAN_HALF, LEAST_NORMAL * HALF, LEAST * ONE)


def _restore() -> None:
    """The floating-point environment that a process begins with, for the next call."""
    libm = ctypes.CDLL(None)
    libm.fesetenv(ctypes.c_void_p(-1))                                  # FE_DFL_ENV


def _strides(param: Buffer, shape: tuple[int, ...], case: Case) -> tuple[int, ...]:
    """In elements: as the case has them for an array that passes strides, else dense in the declared order."""
    if case.strides is not None and case.kernel is not None and param.name in case.kernel.strided:
        return case.strides(shape)
    strides, step = [1] * len(shape), 1
    for axis in reversed(param.order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)

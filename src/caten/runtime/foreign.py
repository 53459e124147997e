"""Arguments for a kernel that does not work on the caller's memory: a machine of its own, another process, a device.

The caller's side of a call is always the same (runtime.call): pointers, scalars, sizes and strides, in the order of the C function. Here they become
what can be copied over a border and back.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DTYPES
from ..core.formula import evaluate, formula
from .library import Entry, Library
from .manifest import operators

if TYPE_CHECKING:
    import numpy as np

# A scalar as it lies in memory, little-endian: codes of the module struct.
PACKED: dict[str, str] = {"bool": "<B", "f32": "<f", "f64": "<d", "c64": "<ff", "c128": "<dd",
                          "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}
Argument = Mapping[str, Any]                 # one argument of a manifest
Run = Callable[["Call"], int]                # runs a call and returns its result, as the C function does


@dataclass(frozen=True)
class Memory:
    """A tensor argument. `region`: the caller's bytes from its first element in memory to its last; `before`: how many of them lie before element 0;
    `written`: may the kernel write? `array`: the elements, with the axes as the spec numbers them."""

    name: str
    region: memoryview
    before: int
    written: bool
    array: np.ndarray[Any, Any]

    def write_back(self, content: bytes | memoryview) -> None:
        """Take over the elements from `content`, which lies as `region` does; what is between the elements stays as it is."""
        import numpy as np
        if self.array.nbytes == len(self.region):
            self.region[:] = content
        elif self.array.size:
            self.array[...] = np.ndarray(self.array.shape, self.array.dtype, content, self.before, self.array.strides)


@dataclass(frozen=True)
class Call:
    """One call of an operator. `values` are a Memory for each tensor, and for scalars, sizes and strides what the C function takes; `sizes` are all
    numbers by name."""

    op: Mapping[str, Any]
    values: tuple[Any, ...]
    sizes: Mapping[str, Any]

    @property
    def memories(self) -> list[Memory]:
        return [v for v in self.values if isinstance(v, Memory)]

    @property
    def scratch(self) -> int:
        """The bytes of scratch memory that it needs, on one thread."""
        return int(evaluate(formula(self.op["scratch_bytes"]), {**self.sizes, "ct_threads": 1}))


def library(artifact: Path, manifest: Mapping[str, Any], run: Callable[[int, Mapping[str, Any]], Run]) -> Library:
    """A library whose calls `run(number of the operator, its manifest)` makes."""
    import cffi
    ffi = cffi.FFI()
    ops = operators(manifest)
    return Library(artifact, dict(manifest), ffi, {op["op"]: Entry(_entry(op, ffi, run(n, op)), _texts(op)) for n, op in enumerate(ops)})


def _entry(op: Mapping[str, Any], ffi: Any, run: Run) -> Callable[..., int]:
    declared: Sequence[Argument] = op["arguments"]

    def call(*given: Any) -> int:
        numbers = {a["name"]: v for a, v in zip(declared, given, strict=True) if a["kind"] != "tensor"}
        values = [memory(ffi, v, a, numbers) if a["kind"] == "tensor" else v for a, v in zip(declared, given, strict=True)]
        return run(Call(op, tuple(values), numbers))
    return call


def _texts(op: Mapping[str, Any]) -> Callable[[int], str]:
    texts = {row["row"]: str(row["text"]) for row in op["checks"]}
    return lambda row: texts.get(row, f"check {row}")


def packed(value: Any, dtype: str) -> bytes:
    """A scalar as the target has it in memory."""
    return struct.pack(PACKED[dtype], *(value if isinstance(value, tuple) else (value,)))


def memory(ffi: Any, pointer: Any, argument: Argument, sizes: Mapping[str, Any]) -> Memory:
    """The caller's memory behind the pointer of a tensor; `array` has its axes as the spec numbers them."""
    import numpy as np
    shape = [evaluate(formula(e), sizes) for e in argument["shape"]]
    kind = np.dtype(DTYPES[argument["dtype"]].numpy)
    written = argument["direction"] != "in"
    if 0 in shape:
        return Memory(argument["name"], memoryview(bytearray()), 0, written, np.empty(shape, kind))
    strides = [1] * len(shape)
    if argument["strides"]:
        strides = [evaluate(formula(e), sizes) for e in argument["strides"]]
    else:
        for slower, faster in reversed(list(zip(argument["order"], argument["order"][1:], strict=False))):
            strides[slower] = strides[faster] * shape[faster]
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum([r for r in reach if r < 0]) * kind.itemsize
    count = before + (sum([r for r in reach if r > 0]) + 1) * kind.itemsize
    region = memoryview(ffi.buffer(ffi.cast("char *", pointer) - before, count))
    return Memory(argument["name"], region, before, written, np.ndarray(shape, kind, region, before, [s * kind.itemsize for s in strides]))

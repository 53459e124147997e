"""Calls of kernels that do not work on the caller's memory: those of a machine of its own, or of another process.

The caller's side of a call is always the same (runtime.call): pointers, scalars, sizes and strides, in the order of the
C function. Here they become arrays and numbers that can be copied over a border, and back."""
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.dtypes import is_packed
from ..core.size_formula import evaluate, formula, names
from ..errors import error
from ..frozen import frozen
from .library import Entry, Library
from .manifest import embedded_text, operators
from .pointer_arrays import dense, extents, over

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# A scalar as it lies in memory, little-endian: codes of the module struct.
PACKED: dict[str, str] = {"bool": "<B", "f32": "<f", "f64": "<d", "c64": "<ff", "c128": "<dd",
                          "f16": "<H", "bf16": "<H", "i4": "<b", "u4": "<B",
                          "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u8": "<B", "u16": "<H", "u32": "<I",
                          "u64": "<Q"}
Argument = Mapping[str, Any]                 # one argument of a manifest
Run = Callable[["Call"], int]                # runs a call and returns its result, as the C function does


@frozen
class Call:
    """One call of an operator. `arrays`: the caller's memory of every tensor, its axes as the spec numbers them;
    `numbers`: the scalars, sizes and strides. Both by name."""

    op: Mapping[str, Any]
    arrays: Mapping[str, Array]
    numbers: Mapping[str, Any]

    @property
    def scratch(self) -> int:
        """The bytes of scratch memory that it needs, on one thread."""
        return int(evaluate(formula(self.op["scratch_bytes"]), {**self.numbers, "ct_threads": 1}))

    def shape(self, argument: Argument) -> tuple[int, ...]:
        """The shape of an array."""
        return tuple(extents(argument, self.numbers))

    def packed(self) -> Packed:
        """The arguments without gaps in any array."""
        import numpy as np
        arrays, numbers = {}, dict(self.numbers)
        for a in self.op["arguments"]:
            if a["kind"] == "tensor":
                array = self.arrays[a["name"]]
                if is_packed(a["dtype"]):
                    arrays[a["name"]] = array
                    continue
                arrays[a["name"]] = np.ascontiguousarray(array.transpose(a["order"])).reshape(-1).view(np.uint8)
                for text, distance in zip(a["strides"] or (), dense(list(array.shape), a["order"]), strict=False):
                    numbers |= dict.fromkeys(names(formula(text)), distance)
        return Packed(self, arrays, numbers)


@frozen
class Packed:
    """The same call where arrays have no gaps. `bytes`: what they lie in, the caller's memory itself where it is like
    that; `numbers`: strides among them are those of that memory."""

    call: Call
    bytes: Mapping[str, Array]
    numbers: Mapping[str, Any]

    @property
    def arguments(self) -> Sequence[Argument]:
        declared: Sequence[Argument] = self.call.op["arguments"]
        return declared

    def unpack(self) -> None:
        """Bring what was written to the caller."""
        import numpy as np
        for a in self.arguments:
            if a["kind"] == "tensor" and a["direction"] != "in":
                array, content = self.call.arrays[a["name"]], self.bytes[a["name"]]
                if array.size and not np.may_share_memory(array, content):
                    along = array.transpose(a["order"])
                    along[...] = content.view(array.dtype).reshape(along.shape)


def check_manifest(artifact: Path, manifest: Mapping[str, Any]) -> None:
    """E663 where a manifest that lies beside a library is not the one inside it."""
    if embedded_text(manifest).encode() not in artifact.read_bytes():
        raise error("E663", f"the manifest beside {artifact} is that of another library",
                    hint="compile the spec again, or bring the one that belongs to it")


def library(artifact: Path, manifest: Mapping[str, Any], run: Callable[[int, Mapping[str, Any]], Run]) -> Library:
    """A library whose calls `run(number of the operator, its manifest)` makes."""
    import cffi
    ffi = cffi.FFI()
    ops = operators(manifest)
    return Library(artifact, dict(manifest), ffi,
                   {op["op"]: Entry(_entry(op, ffi, run(n, op)), _texts(op)) for n, op in enumerate(ops)})


def _entry(op: Mapping[str, Any], ffi: Any, run: Run) -> Callable[..., int]:
    declared: Sequence[Argument] = op["arguments"]

    def call(*given: Any) -> int:
        numbers = {a["name"]: v for a, v in zip(declared, given, strict=True) if a["kind"] != "tensor"}
        return run(Call(op, {a["name"]: over(ffi, v, a, numbers) for a, v in zip(declared, given, strict=True)
                             if a["kind"] == "tensor"}, numbers))
    return call


def _texts(op: Mapping[str, Any]) -> Callable[[int], str]:
    texts = {row["row"]: str(row["text"]) for row in op["checks"]}
    return lambda row: texts.get(row, f"check {row}")


def scalar_bytes(value: Any, dtype: str) -> bytes:
    """A scalar as the target has it in memory."""
    return struct.pack(PACKED[dtype], *(value if isinstance(value, tuple) else (value,)))

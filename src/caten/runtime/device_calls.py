"""Call kernels on a device: check the conditions, copy arrays in, launch the kernels, copy results back."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ..core.dtypes import DTYPES, is_packed, is_short
from ..core.size_formula import evaluate, formula, names
from ..errors import error, out_of_memory
from ..render.kernel_launch import NO_FAILURE, SCRATCH, STATUS
from .library import Entry, Library
from .manifest import operators
from .pointer_arrays import dense, over

MOST_GROUPS = (1 << 31) - 1            # thread groups of one launch that every device accepts


class Device(Protocol):
    """A device. Host arrays are contiguous numpy arrays; buffers are in device memory."""

    def allocate(self, size: int) -> Any:
        """A buffer of `size` bytes, at least one. Raises MemoryError."""

    def write(self, buffer: Any, content: Any) -> None:
        """Copy an array to the device."""

    def read(self, buffer: Any, into: Any) -> None:
        """Copy a buffer to a host array after all earlier launches have finished."""

    def start(self, function: str, groups: int, threads: Sequence[int], arguments: Sequence[Any]) -> None:
        """Launch a kernel. `threads`: the shape of a group, fastest axis last; `arguments`: buffers, numpy scalars."""

    def release(self, buffers: Sequence[Any]) -> None:
        """Free buffers."""


def library(path: Path, manifest: Mapping[str, Any], device: Device) -> Library:
    """The operators of an artifact, as functions with the arguments of their C counterparts."""
    import cffi
    ffi = cffi.FFI()
    entries = {}
    for op in operators(manifest):
        texts = {c["row"]: c["text"] for c in op["checks"]}
        entries[op["op"]] = Entry(entry(op, ffi, device), partial(_text, texts))
    return Library(path, dict(manifest), ffi, entries)


def _text(texts: Mapping[int, str], row: int) -> str:
    return texts.get(row, "")


def entry(op: Mapping[str, Any], ffi: Any, device: Device) -> Callable[..., int]:
    """One operator as a function that returns 0 or the number of the failed check. It raises OutOfMemory E712."""
    declared = op["arguments"]
    ensures = [(int(row["row"]), formula(row["condition"])) for row in op["ensures"]]

    def call(*given: Any) -> int:
        numbers = {a["name"]: v for a, v in zip(declared, given, strict=True) if a["kind"] != "tensor"}
        failed = next((row for row, condition in ensures if not evaluate(condition, numbers)), 0)
        if failed:
            return failed
        tensors = {a["name"]: (a, over(ffi, p, a, numbers)) for a, p in zip(declared, given, strict=True)
                   if a["kind"] == "tensor"}
        made = _Call(op, device, numbers)
        try:
            return made.run(tensors)
        except MemoryError:
            raise out_of_memory(op["op"], "the device has too little memory for the arrays of this call") from None
        finally:
            device.release(made.buffers)
    return call


class _Call:
    """One call and its buffers on the device."""

    def __init__(self, op: Mapping[str, Any], device: Device, numbers: Mapping[str, Any]) -> None:
        self.op, self.device, self.numbers = op, device, dict(numbers)
        self.wanted = {name for k in op["kernels"] for name in k["arguments"]}
        self.there: dict[str, Any] = {}
        self.buffers: list[Any] = []

    def run(self, tensors: Mapping[str, tuple[Mapping[str, Any], Any]]) -> int:
        """Run the call and return its result. `tensors`: name -> (argument, host array)."""
        import numpy as np
        used = {name: tensor for name, tensor in tensors.items() if name in self.wanted and tensor[1].size}
        copies = {name: self.packed(*tensor) for name, tensor in used.items()}
        for name in self.wanted & tensors.keys():
            self.new(name, copies[name].nbytes if name in copies else 0)
        for name, copy in copies.items():
            self.device.write(self.there[name], copy)
        self.there |= {n: scalar(a["dtype"], self.numbers[n]) for a in self.op["arguments"]
                       if (n := a["name"]) in self.numbers}
        if SCRATCH in self.wanted:
            self.new(SCRATCH, evaluate(formula(self.op["scratch_bytes"]), self.numbers))
        if STATUS in self.wanted:
            self.new(STATUS, 4)
            self.device.write(self.there[STATUS], np.array([NO_FAILURE], np.int32))
        for kernel in self.op["kernels"]:
            if (row := self.start(kernel)) != NO_FAILURE:
                return row
        for name, (argument, array) in used.items():
            if argument["direction"] != "in":
                self.device.read(self.there[name], copies[name])
                along = array if is_packed(argument["dtype"]) else array.transpose(argument["order"])
                along[...] = copies[name]
        return 0

    def packed(self, argument: Mapping[str, Any], array: Any) -> Any:
        """A contiguous copy of the elements, in device layout. Strides that are arguments get their values for it."""
        import numpy as np
        if is_packed(argument["dtype"]):
            return array
        for text, distance in zip(argument["strides"] or (), dense(list(array.shape), argument["order"]), strict=False):
            for name in names(formula(text)):
                self.numbers[name] = distance
        return np.ascontiguousarray(array.transpose(argument["order"]))

    def new(self, name: str, size: int) -> None:
        """Allocate the buffer of an argument, in whole words for atomic operations."""
        self.there[name] = self.device.allocate(max((size + 3) // 4 * 4, 4))
        self.buffers.append(self.there[name])

    def start(self, kernel: Mapping[str, Any]) -> int:
        """Launch a kernel. If it has checks, wait for it; the lowest number of a failed check, or NO_FAILURE."""
        import numpy as np
        groups = evaluate(formula(kernel["groups"]), self.numbers)
        if groups > MOST_GROUPS:
            raise error("E716", f"{self.op['op']}: {groups} groups of threads are more than a device accepts",
                        hint="call it for parts of the arrays")
        if groups > 0:
            self.device.start(kernel["function"], groups, kernel["threads"],
                              [self.there[n] for n in kernel["arguments"]])
        status = np.array([NO_FAILURE], np.int32)
        if STATUS in kernel["arguments"]:
            self.device.read(self.there[STATUS], status)
        return int(status[0])


def scalar(dtype: str, value: Any) -> Any:
    """A number in the representation of the device; 16-bit floats as their bits."""
    import numpy as np
    stored = {"bool": "uint8", "u4": "uint8", "i4": "int8"}.get(dtype, "uint16" if is_short(dtype)
                                                                else DTYPES[dtype].numpy)
    kind: Any = np.dtype(stored).type
    return kind(complex(*value) if isinstance(value, tuple) else value)


def block(threads: Sequence[int]) -> tuple[int, int, int]:
    """The block dimensions x, y and z; `threads` ends with the fastest axis."""
    x, y, z = (*reversed(threads), 1, 1, 1)[:3]
    return x, y, z

"""Calls kernels of a library by its C interface, every array between two pages that no one may touch, in a process that may crash alone."""
from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caten.calls.array_arguments import packed, unpacked
from caten.core.dtypes import is_packed, is_short, short_bits
from caten.core.numpy_types import kind_of
from caten.runtime.library import Library, open_library
from caten.runtime.manifest import operators
from caten.testing import isolate

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


@dataclass(frozen=True)
class Job:
    """One call: arrays by name as the spec numbers their axes, numbers by name. `strides`: in elements per axis, for arrays that pass them.
    `at_end`: arrays end where the forbidden page begins, else they start after one."""

    name: str
    arguments: Mapping[str, Any]
    strides: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    at_end: bool = True


class Guarded:
    """Memory of an array with a forbidden page before and after it. Bytes between its elements have a known value."""

    def __init__(self, array: np.ndarray, strides: Sequence[int], at_end: bool):
        size = array.itemsize
        reach = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
        before = -sum(r for r in reach if r < 0)
        used = 0 if array.size == 0 else (before + sum(r for r in reach if r > 0) + 1) * size
        self.length = -(-max(used, 1) // PAGE) * PAGE
        self.base = LIBC.mmap(None, self.length + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        for page in (self.base, self.base + PAGE + self.length):
            if LIBC.mprotect(page, PAGE, 0) != 0:
                raise OSError("cannot protect a page")
        self.memory = np.ctypeslib.as_array((ctypes.c_uint8 * self.length).from_address(self.base + PAGE))
        self.memory[:] = 0xA5
        start = self.length - used if at_end else 0
        self.view = np.ndarray(array.shape, array.dtype, self.memory, start + before * size if array.size else 0, [s * size for s in strides])
        self.address = self.base + PAGE + start + before * size
        self.view[...] = array
        self.before = self.memory.copy()

    def strays(self) -> bool:
        """Was a byte written that belongs to no element?"""
        result = self.view.copy()
        now = self.memory.copy()
        theirs = np.ndarray(self.view.shape, self.view.dtype, now, self.view.ctypes.data - self.memory.ctypes.data if self.view.size else 0, self.view.strides)
        mine = np.ndarray(self.view.shape, self.view.dtype, self.before, self.view.ctypes.data - self.memory.ctypes.data if self.view.size else 0, self.view.strides)
        mine[...] = 0
        theirs[...] = 0
        return bool((now != self.before).any()) or not bits_equal(result, self.view)

    def release(self) -> None:
        LIBC.munmap(self.base, self.length + 2 * PAGE)


class Allocated:
    """Memory of an array as malloc gives it, no byte longer: a sanitizer watches its ends."""

    def __init__(self, array: np.ndarray, strides: Sequence[int], at_end: bool):
        reach = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
        before = -sum(r for r in reach if r < 0)
        self.length = 0 if array.size == 0 else (before + sum(r for r in reach if r > 0) + 1) * array.itemsize
        self.base = LIBC.malloc(self.length)
        self.address = self.base + before * array.itemsize
        memory = (ctypes.c_uint8 * self.length).from_address(self.base)
        self.view = np.ndarray(array.shape, array.dtype, memory if array.size else None, before * array.itemsize, [s * array.itemsize for s in strides])
        self.view[...] = array

    def strays(self) -> bool:
        return False

    def release(self) -> None:
        LIBC.free(self.base)


def bits_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Have they the same bits, any NaN counting as any other?"""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if kind_of(a.dtype) in "fc":
        nan = np.isnan(a)
        if (nan != np.isnan(b)).any():
            return False
        a, b = np.where(nan, a.dtype.type(0), a), np.where(nan, a.dtype.type(0), b)
    return a.tobytes() == b.tobytes()


def dense(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Strides in elements of an array that is dense in this order."""
    strides, step = [1] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return strides


def call(library: Library, job: Job, memory: type[Guarded] | type[Allocated] = Guarded) -> tuple[int, dict[str, np.ndarray], list[str]]:
    """What the kernel returns, the arrays that it may write, and what is wrong with what else it did."""
    op = next(o for o in operators(library.manifest) if o["op"] == job.name)
    held: dict[str, Guarded | Allocated] = {}
    kept: dict[str, np.ndarray] = {}
    given: list[Any] = []
    for argument in op["arguments"]:
        name = argument["name"]
        value = job.arguments[name]
        if argument["kind"] == "tensor":
            taken = packed(value, argument) if is_packed(argument["dtype"]) else value
            strides = [1] if taken is not value else job.strides.get(name) or dense(value.shape, argument["order"])
            kept[name] = taken
            held[name] = memory(taken, strides, job.at_end)
            given.append(library.ffi.cast("void *", held[name].address))
        else:
            number = value.item() if isinstance(value, np.generic) else value
            given.append([number.real, number.imag] if isinstance(number, complex) else short_bits(number, argument["dtype"]) if is_short(argument["dtype"]) else number)
    status = int(library.entries[job.name].call(*given))
    writable = [a["name"] for a in op["arguments"] if a["kind"] == "tensor" and a["direction"] != "in"]
    wrong = [f"bytes between the elements of {n} changed" for n in held if held[n].strays()]
    wrong += [f"the input {n} changed" for n in held if n not in writable and not bits_equal(held[n].view, np.asarray(kept[n]))]
    results = {a["name"]: unpacked(held[a["name"]].view, job.arguments[a["name"]].shape, a, job.name) if is_packed(a["dtype"]) else np.array(held[a["name"]].view)
               for a in op["arguments"] if a["name"] in writable}
    for g in held.values():
        g.release()
    return status, results, wrong


@dataclass(frozen=True)
class Called:
    """What became of a job: its status (None after a crash), its results, what was wrong."""

    status: int | None
    results: dict[str, np.ndarray]
    wrong: tuple[str, ...] = ()


def call_all(artifact: Path, manifest: Mapping[str, Any], jobs: Sequence[Job], seconds: float = 120.0,
             threads: int = 1) -> list[Called]:
    """All jobs in one child, with so many threads; where that dies, one child for each half."""
    def work() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        faulthandler.disable()                               # a crash is a result here
        os.environ |= {"OMP_NUM_THREADS": str(threads), "KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": "passive", "OMP_DYNAMIC": "false"}
        library = open_library(artifact, manifest)
        facts, arrays = [], {}
        for n, job in enumerate(jobs):
            status, results, wrong = call(library, job)
            facts.append([status, wrong, list(results)])
            arrays |= {f"{n}/{k}": v for k, v in results.items()}
        return {"jobs": facts}, arrays
    outcome = isolate.run(work, seconds)
    if outcome.status == "ok":
        return [Called(status, {k: outcome.arrays[f"{n}/{k}"] for k in names}, tuple(wrong))
                for n, (status, wrong, names) in enumerate(outcome.facts["jobs"])]
    if len(jobs) == 1:
        text = "; ".join(d.message for d in outcome.diagnostics) or outcome.signal
        return [Called(None, {}, (f"{outcome.status} {text}".strip(),))]
    half = len(jobs) // 2                                    # to open a library takes a while: most halves are fine
    return [*call_all(artifact, manifest, jobs[:half], seconds, threads), *call_all(artifact, manifest, jobs[half:], seconds, threads)]

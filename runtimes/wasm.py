"""WebAssembly: C without a C library, compiled by the embedded clang and run by wasmtime in this process.

The library works on a memory of its own with 32-bit addresses: a call copies its arrays there, and finds room for the
scratch memory, too, as there is no malloc.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from caten.calls.call_arguments import OUT_OF_MEMORY
from caten.core.program import Machine
from caten.errors import error, out_of_memory
from caten.render.code import Libm, Spelling
from caten.render.cstyle import CStyle
from caten.runtime import copied_calls, cpu, toolchain
from caten.runtime.c_runtime import Compiled
from caten.runtime.call import callables
from caten.runtime.copied_calls import Call, scalar_bytes
from caten.runtime.manifest import manifest_c
from caten.runtime.protocol import Choice, Flag, Option, Text, Unavailable
from caten.runtime.toolchain import Compiler

TARGET = {"zig": ["-target", "wasm32-freestanding"], "clang": ["--target=wasm32"]}
FEATURES = ("-mbulk-memory", "-mnontrapping-fptoint", "-msign-ext")
# Functions of the C library that are instructions, or in render/freestanding.h; the others are decomposed.
MATH = ("sqrt", "floor", "ceil", "trunc", "round", "sin", "cos")
# The one function of the compiler's own library that clang calls: a product of 128 bits, where it finds that something
# amounts to one. It must not find that here.
PRODUCT = """
__attribute__((weak, visibility("hidden"), noinline, optnone)) __int128 __multi3(__int128 a, __int128 b)
{
    const uint64_t al = (uint64_t)a, bl = (uint64_t)b, x = (uint32_t)al, y = (uint32_t)bl;
    const uint64_t middle = (al >> 32) * y + (x * y >> 32), cross = x * (bl >> 32) + (uint32_t)middle;
    const uint64_t high = (al >> 32) * (bl >> 32) + (middle >> 32) + (cross >> 32) + al * (uint64_t)(b >> 64) \
+ (uint64_t)(a >> 64) * bl;
    return (__int128)high << 64 | (al * bl);
}
"""
PAGE, MOST_BYTES = 1 << 16, 1 << 32
ALIGNMENT = 64


class Wasm(Compiled):
    """32-bit WebAssembly, optionally with 128-bit vectors."""

    api_version, name = 1, "wasm"
    description = "C for WebAssembly, cross-compiled by clang and run by wasmtime"
    suffixes: ClassVar[Mapping[str, str]] = toolchain.SUFFIXES | {"so": ".wasm"}
    link = ("-nostdlib", "-Wl,--no-entry", "-Wl,--export-dynamic", "-Wl,-z,stack-size=1048576")
    ops: ClassVar[Mapping[str, Spelling]] = {fn: s for fn, s in CStyle.ops.items()
                                             if fn not in ("fma", "abs") and (fn in MATH or not isinstance(s, Libm))}
    headers: ClassVar[Mapping[str, str]] = {
        "math.h": resources.files("caten.render").joinpath("freestanding.h").read_text("utf-8")}
    allocates, promotes_unrolled_arrays = False, True
    config: ClassVar[Mapping[str, Option]] = {
        "SIMD": Flag(False, "use the instructions on vectors of 128 bits"),
        "OPT": Choice(3, "the C compiler's optimisation level", of=(0, 1, 2, 3)),
        "CC": Text(None, "a C compiler for the target"),
        "MATH": Choice("precise",
                       "functions on vectors: within the error of the operator's row, or in fewer operations",
                       of=("precise", "fast")),
    }

    def machine(self) -> Machine:
        return cpu.MACHINES["wasm32"].replace(vector_bytes=self.vector_bytes)

    @property
    def vector_bytes(self) -> int:
        return 16 if self.settings["SIMD"] else 1

    def available(self) -> None:
        self.compiler()
        if importlib.util.find_spec("wasmtime") is None:
            raise Unavailable("wasmtime, which runs WebAssembly, is not here", "pip install 'caten[wasm]'")

    def compiler(self) -> Compiler:
        return toolchain.cross(self.settings["CC"], ("zig",), self.host, lambda compiler: True, "WebAssembly")

    def flags(self, compiler: Compiler) -> list[str]:
        own = [w for w in super().flags(compiler) if w not in ("-O2", "-fPIC")]
        vector = ["-msimd128"] if self.settings["SIMD"] else []
        scheduled = ["-fno-vectorize", "-fno-slp-vectorize"]                  # the schedule says what is a vector
        return [*TARGET.get(compiler.family, []), "-ffreestanding", f"-O{self.settings['OPT']}", *FEATURES, *vector,
                *scheduled, *own]

    def libraries(self, compiler: Compiler) -> list[str]:
        return list(self.host.ldflags)

    def trailer(self, manifest: Mapping[str, Any]) -> str:
        return manifest_c(manifest) + PRODUCT

    def check_library(self, library: Path) -> None:
        content = library.read_bytes()
        if content[:8] != b"\0asm\1\0\0\0":
            raise error("E660", f"{library} is not a module of WebAssembly")
        if not is_whole(content):
            raise error("E660", f"{library} is incomplete, or more than a module of WebAssembly",
                        hint="compile it again")

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        self.available()
        instance = Instance(artifact)
        return callables(copied_calls.library(artifact, manifest, lambda number, op: instance.call))


def is_whole(module: bytes) -> bool:
    """Do the sections of a module, each with its length, end where the file does?"""
    at = 8
    while at < len(module):
        at, length, shift = at + 1, 0, 0
        while at < len(module):
            byte, at = module[at], at + 1
            length, shift = length | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        else:
            return False
        at += length
    return at == len(module)


class Instance:
    """A module in wasmtime, with its memory. Calls from several threads wait for each other."""

    def __init__(self, artifact: Path):
        import wasmtime
        config = wasmtime.Config()
        config.parallel_compilation = False                 # its threads would be missing after a fork
        self._wasm, self._engine, self._owner = wasmtime, wasmtime.Engine(config), 0
        self._module = wasmtime.Module(self._engine, artifact.read_bytes())
        self._start()

    def _start(self) -> None:
        self._store = self._wasm.Store(self._engine)
        self._exports = self._wasm.Instance(self._store, self._module, []).exports(self._store)
        self._memory = self._exports["memory"]
        self._free = self._memory.size(self._store) * PAGE                    # lower addresses belong to the module

    def call(self, call: Call) -> int:
        """What the function returns. E715 where it was stopped by a trap, OutOfMemory E712 where an argument does not
        fit."""
        if self._owner != os.getpid():  # after a fork a thread that is not here may hold the lock
            self._lock, self._owner = threading.Lock(), os.getpid()
        with self._lock:
            try:
                return self._call(call)
            except self._wasm.Trap as trap:
                self._start()
                raise error("E715", f"{call.op['op']}: the kernel crashed "
                                    f"({trap.message.strip().splitlines()[-1].strip()})") from None

    def _call(self, call: Call) -> int:
        packed, at, arguments = call.packed(), self._free, []
        places: list[tuple[int, Any]] = []
        for a in packed.arguments:
            value = packed.bytes.get(a["name"], b"")
            if a["kind"] != "tensor":
                value = scalar_bytes(packed.numbers[a["name"]], a["dtype"])
            if a["kind"] == "tensor" or a["dtype"] in ("c64", "c128"):
                if not self._reach(at + len(value)):
                    raise out_of_memory(call.op["op"], f"{a['name']} does not fit the 4 GiB that WebAssembly has")
                places.append((at, value))
                arguments.append(signed(at, 32))
                at += -(-len(value) // ALIGNMENT) * ALIGNMENT
            else:
                number = packed.numbers[a["name"]]
                arguments.append(number if a["dtype"] in ("f32", "f64")
                                 else signed(number, 64 if a["dtype"] in ("i64", "u64") else 32))
        if not self._reach(at + call.scratch):
            return OUT_OF_MEMORY
        base = ctypes.addressof(self._memory.data_ptr(self._store).contents)
        for place, value in places:
            ctypes.memmove(base + place, value if isinstance(value, bytes) else value.ctypes.data, len(value))
        result = self._exports[call.op["symbols"]["workspace"]](self._store, *arguments, signed(at, 32))
        if result == 0:
            written = [a["name"] for a in packed.arguments if a["kind"] == "tensor" and a["direction"] != "in"]
            for place, value in places:
                if any(value is packed.bytes[n] for n in written):
                    ctypes.memmove(value.ctypes.data, base + place, len(value))
            packed.unpack()
        return int(result)

    def _reach(self, end: int) -> bool:
        """Has the memory that many bytes, or can it get them?"""
        more = -(-end // PAGE) - self._memory.size(self._store)
        if end > MOST_BYTES:
            return False
        try:
            return more <= 0 or self._memory.grow(self._store, more) >= 0
        except self._wasm.WasmtimeError:
            return False


def signed(value: int, bits: int) -> int:
    """The bits of an integer as wasmtime takes them."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

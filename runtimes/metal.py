"""Metal for Apple's graphics cards: rendered anywhere, compiled by Xcode's tools where they are."""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.errors import Diagnostic, ToolError
from caten.render.c_tables import OPS
from caten.render.code import Spelling
from caten.render.device_c import DeviceStyle, Dialect, define_integers
from caten.runtime import process
from caten.runtime.protocol import CompileRecord, Int, Option, Runtime, Text, Unavailable

LACKING = ("cbrt", "hypot", "erf", "erfc", "lgamma", "expm1", "log1p")          # of the functions of C


class MetalC(Dialect):
    """The Metal Shading Language."""

    kernel, function, global_memory, shared_memory = "kernel void", "static inline ", "device ", "threadgroup "
    group_id, thread_ids = "ct_group", ("ct_thread.x", "ct_thread.y", "ct_thread.z")
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
    definitions = define_integers(signed="char, short, int, long", unsigned="uchar, ushort, uint, ulong")
    builtin_parameters = ("uint ct_group [[threadgroup_position_in_grid]]",
                          "uint3 ct_thread [[thread_position_in_threadgroup]]")
    prelude = "#include <metal_stdlib>\nusing namespace metal;\n"
    atomic_word = "device atomic_uint"

    def pointer(self, type: str, name: str, position: int, constant: bool = False) -> str:
        return f"device {'const ' * constant}{type} *{name} [[buffer({position})]]"

    def value(self, type: str, name: str, position: int) -> str:
        return f"constant {type} &{name} [[buffer({position})]]"

    def status(self, name: str, position: int) -> str:
        return f"device atomic_int *{name} [[buffer({position})]]"

    def fail(self, row: int) -> str:
        return f"atomic_fetch_min_explicit(ct_status, {row}, memory_order_relaxed);"

    def atomic_and(self, address: str, bits: str) -> str:
        return f"atomic_fetch_and_explicit({address}, {bits}, memory_order_relaxed)"

    def atomic_or(self, address: str, bits: str) -> str:
        return f"atomic_fetch_or_explicit({address}, {bits}, memory_order_relaxed)"

    def compound_literal(self, type: str) -> str:
        return f"{type}{{"


class Metal(DeviceStyle, Runtime):
    """Spellings of the Metal Shading Language. It has no float64."""

    api_version, name = 1, "metal"
    description = "Metal for Apple's graphics cards; rendered here, compiled where Xcode is"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".metallib"}
    config: ClassVar[Mapping[str, Option]] = {
        "STD": Text("metal3.0", "the version of the language, as -std"),
        "THREADS": Int(256, "the most threads of a group", least=1, greatest=1024),
        "SHARED": Int(32 << 10, "bytes that a group shares", least=0, greatest=32 << 10),
    }
    types: ClassVar[Mapping[str, str]] = {name: word for name,
                                          word in DeviceStyle.types.items() if name not in ("f64", "c128")}
    ops: ClassVar[Mapping[str, Spelling]] = {fn: spelling for fn, spelling in OPS.items() if fn not in LACKING}
    denormals = False                               # of float32
    dialect = MetalC()

    def machine(self) -> Machine:
        return Machine("metal", 4, 64, (64 << 10, 4 << 20), True,
                       (32, self.settings["THREADS"], self.settings["SHARED"]))

    def available(self) -> None:
        if shutil.which("xcrun", path=self.host.path) is None:
            raise Unavailable("Metal kernels are rendered here, and compiled on macOS by Xcode's xcrun")
        raise Unavailable("Metal kernels are rendered and compiled, and not started by caten yet")

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        flags = [f"-std={self.settings['STD']}", "-fno-fast-math", "-ffp-contract=off"]
        return [["xcrun", "-sdk", "macosx", "metal", *flags, str(source), "-o", str(out)]]

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        if shutil.which("xcrun", path=self.host.path) is None:
            raise Unavailable("Metal kernels are rendered here, and compiled on macOS by Xcode's xcrun",
                              "caten render --runtime metal")
        text = out.with_suffix(".metal")
        text.write_text(source, encoding="utf-8")
        (command,) = self.commands(text, out, kind)
        done = process.run(command, self.host.timeout, out.parent)
        text.unlink()
        if done.status != 0:
            raise ToolError(Diagnostic("E620", f"Metal: {done.errors.strip() or done.reason}"))
        return CompileRecord("xcrun metal", "", (tuple(command),), tuple(command[4:7]))

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        raise Unavailable("Metal kernels are rendered and compiled, and not started by caten yet")

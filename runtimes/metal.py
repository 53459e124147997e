"""Metal for Apple's graphics cards: rendered anywhere, compiled by Xcode's tools where they are."""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.errors import Diagnostic, ToolError
from caten.render.code import Spelling
from caten.render.cstyle import OPS
from caten.render.device import DeviceStyle, Dialect, integers
from caten.runtime import process
from caten.runtime.protocol import CompileRecord, Int, Option, Runtime, Text, Unavailable

LACKING = ("cbrt", "hypot", "erf", "erfc", "lgamma", "expm1", "log1p")          # of the functions of C


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
    types: ClassVar[Mapping[str, str]] = {name: word for name, word in DeviceStyle.types.items() if name not in ("f64", "c128")}
    ops: ClassVar[Mapping[str, Spelling]] = {fn: spelling for fn, spelling in OPS.items() if fn not in LACKING}
    denormals = False                               # of float32
    dialect = Dialect(
        kernel="kernel void", function="static inline ", pointer="device {type} *{name} [[buffer({n})]]",
        constant="device const {type} *{name} [[buffer({n})]]", value="constant {type} &{name} [[buffer({n})]]", memory="device ",
        word="device atomic_uint", both="atomic_fetch_and_explicit({at}, {bits}, memory_order_relaxed)",
        either="atomic_fetch_or_explicit({at}, {bits}, memory_order_relaxed)",
        shared="threadgroup ", group="ct_group", threads=("ct_thread.x", "ct_thread.y", "ct_thread.z"),
        barrier="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
        fail="atomic_fetch_min_explicit(ct_status, {row}, memory_order_relaxed);", status="device atomic_int *{name} [[buffer({n})]]",
        words=integers(signed="char, short, int, long", unsigned="uchar, ushort, uint, ulong"),
        own=("uint ct_group [[threadgroup_position_in_grid]]", "uint3 ct_thread [[thread_position_in_threadgroup]]"),
        prelude="#include <metal_stdlib>\nusing namespace metal;\n", compound="{type}{{")

    def machine(self) -> Machine:
        return Machine("metal", 4, 64, (64 << 10, 4 << 20), True, (32, self.settings["THREADS"], self.settings["SHARED"]))

    def available(self) -> None:
        if shutil.which("xcrun", path=self.host.path) is None:
            raise Unavailable("Metal kernels are rendered here, and compiled on macOS by Xcode's xcrun")
        raise Unavailable("Metal kernels are rendered and compiled, and not started by caten yet")

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        flags = [f"-std={self.settings['STD']}", "-fno-fast-math", "-ffp-contract=off"]
        return [["xcrun", "-sdk", "macosx", "metal", *flags, str(source), "-o", str(out)]]

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        if shutil.which("xcrun", path=self.host.path) is None:
            raise Unavailable("Metal kernels are rendered here, and compiled on macOS by Xcode's xcrun", "caten render --runtime metal")
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

"""OpenCL C on any device that has a driver, by pyopencl: a graphics card, or the CPU through PoCL."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.errors import Diagnostic, ToolError
from caten.render.device_c import DeviceStyle, Dialect, define_integers
from caten.runtime import device_calls, opencl, process
from caten.runtime.call import callables
from caten.runtime.protocol import CompileRecord, Flag, Int, Option, Runtime, Text


class OpenCLC(Dialect):
    """OpenCL C 1.2."""

    kernel, function, global_memory, shared_memory = "__kernel void", "static inline ", "__global ", "__local "
    group_id, thread_ids = "get_group_id(0)", ("get_local_id(0)", "get_local_id(1)", "get_local_id(2)")
    barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    definitions = define_integers(signed="char, short, int, long", unsigned="uchar, ushort, uint, ulong")
    prelude = "#pragma OPENCL FP_CONTRACT OFF\n"
    atomic_word = "volatile __global uint"

    def pointer(self, type: str, name: str, position: int, constant: bool = False) -> str:
        return f"__global {'const ' * constant}{type} *{name}"

    def value(self, type: str, name: str, position: int) -> str:
        return f"{type} {name}"

    def status(self, name: str, position: int) -> str:
        return f"volatile __global int *{name}"

    def fail(self, row: int) -> str:
        return f"atomic_min(ct_status, {row});"

    def atomic_and(self, address: str, bits: str) -> str:
        return f"atomic_and({address}, {bits})"

    def atomic_or(self, address: str, bits: str) -> str:
        return f"atomic_or({address}, {bits})"


class OpenCL(DeviceStyle, Runtime):
    """Spellings of OpenCL C 1.2, and the calls that start kernels."""

    api_version, name = 1, "opencl"
    description = "OpenCL C by pyopencl: graphics cards, or the CPU through PoCL"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".cl"}
    config: ClassVar[Mapping[str, Option]] = {
        "DEVICE": Text("", "part of the name of the device or its platform (the first one without it)"),
        "THREADS": Int(256, "the most threads of a group", least=1, greatest=1024),
        "SHARED": Int(32 << 10, "bytes that a group shares", least=0),
        "FLOAT64": Flag(True, "has the device float64?"),
    }
    dialect = OpenCLC()
    options = ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")

    @property
    def types(self) -> Mapping[str, str]:
        known = DeviceStyle.types
        return known if self.settings["FLOAT64"] else {name: word for name,
                                                       word in known.items() if name not in ("f64", "c128")}

    def machine(self) -> Machine:
        return Machine("opencl", 4, 16, (16 << 10, 256 << 10), True,
                       (32, self.settings["THREADS"], self.settings["SHARED"]))

    def available(self) -> None:
        opencl.platforms()

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        return [[sys.executable, "-m", "caten.runtime.opencl", str(source), self.settings["DEVICE"], *self.options]]

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        out.write_text(source, encoding="utf-8")
        version = ""
        (command,) = self.commands(out, out, kind)
        if kind == "so":
            done = process.run(command, self.host.timeout, out.parent)
            if done.status != 0:
                code = "E610" if done.status == 3 else "E620"
                raise ToolError(Diagnostic(code, f"OpenCL: {done.errors.strip()}",
                                           hint=opencl.MISSING if code == "E610" else None))
            version = done.output.strip()
        return CompileRecord("pyopencl", version, (tuple(command),), self.options)

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        return callables(device_calls.library(artifact, manifest, opencl.Card(artifact.read_text("utf-8"),
                                                                              self.settings["DEVICE"], self.options)))

"""OpenCL C on any device that has a driver, by pyopencl: a graphics card, or the CPU through PoCL.

Run as a program, `opencl.py SOURCE DEVICE OPTION…`, it compiles a file: a compiler that crashes or hangs does it there, and the process that asked
for it may fork later, which none can whose OpenCL has started.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.errors import Diagnostic, ToolError
from caten.render.device import DeviceStyle, Dialect, integers
from caten.runtime import device, process
from caten.runtime.call import callables
from caten.runtime.protocol import CompileRecord, Int, Option, Runtime, Text, Unavailable

MISSING = "apt install pocl-opencl-icd (OpenCL on the CPU), or the driver of your graphics card"


class OpenCL(DeviceStyle, Runtime):
    """Spellings of OpenCL C 1.2, and the calls that start kernels."""

    api_version, name = 1, "opencl"
    description = "OpenCL C by pyopencl: graphics cards, or the CPU through PoCL"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".cl"}
    config: ClassVar[Mapping[str, Option]] = {
        "DEVICE": Text("", "part of the name of the device or its platform (the first one without it)"),
        "THREADS": Int(256, "the most threads of a group", least=1, greatest=1024),
        "SHARED": Int(32 << 10, "bytes that a group shares", least=0),
    }
    dialect = Dialect(
        kernel="__kernel void", function="static inline ", pointer="__global {type} *{name}", constant="__global const {type} *{name}",
        value="{type} {name}", memory="__global ", shared="__local ", group="get_group_id(0)",
        threads=("get_local_id(0)", "get_local_id(1)", "get_local_id(2)"), barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        fail="atomic_min(ct_status, {row});", status="volatile __global int *{name}",
        words=integers(signed="char, short, int, long", unsigned="uchar, ushort, uint, ulong"),
        prelude="#pragma OPENCL FP_CONTRACT OFF\n")
    options = ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")

    def machine(self) -> Machine:
        return Machine("opencl", 4, 16, (16 << 10, 256 << 10), True, (32, self.settings["THREADS"], self.settings["SHARED"]))

    def available(self) -> None:
        platforms()

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        return [[sys.executable, "-P", str(Path(__file__)), str(source), self.settings["DEVICE"], *self.options]]

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        out.write_text(source, encoding="utf-8")
        (command,) = self.commands(out, out, kind)
        if kind == "so":
            done = process.run(command, self.host.timeout, out.parent)
            if done.status != 0:
                code = "E610" if done.status == 3 else "E620"
                raise ToolError(Diagnostic(code, f"OpenCL: {done.errors.strip()}", hint=MISSING if code == "E610" else None))
        return CompileRecord("pyopencl", "", (tuple(command),), self.options)

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        return callables(device.library(artifact, manifest, Card(artifact.read_text("utf-8"), self.settings["DEVICE"], self.options)))


def platforms() -> list[Any]:
    """The OpenCL platforms here; Unavailable where there is none."""
    try:
        import pyopencl
    except ImportError:
        raise Unavailable("pyopencl is not installed", "pip install 'caten[opencl]'") from None
    try:
        return list(pyopencl.get_platforms())
    except pyopencl.LogicError:
        raise Unavailable("no OpenCL platform", MISSING) from None


def chosen(wanted: str) -> Any:
    """The first device whose name or platform holds the text."""
    import pyopencl
    for platform in platforms():
        try:
            devices = platform.get_devices()
        except pyopencl.RuntimeError:
            continue
        for found in devices:
            if wanted.lower() in f"{platform.name} {found.name}".lower():
                return found
    raise Unavailable(f"no OpenCL device{f' called {wanted!r}' if wanted else ''}", MISSING)


class Card:
    """A program on a device; started when it is first called, so that a process may fork before."""

    def __init__(self, source: str, wanted: str, options: Sequence[str]) -> None:
        self.source, self.wanted, self.options, self.lock = source, wanted, list(options), threading.Lock()
        self.program: Any = None

    def begin(self) -> None:
        import pyopencl
        with self.lock:
            if self.program is None:
                self.context = pyopencl.Context([chosen(self.wanted)])
                self.queue = pyopencl.CommandQueue(self.context)
                self.program = pyopencl.Program(self.context, self.source).build(self.options)

    def allocate(self, size: int) -> Any:
        import pyopencl
        self.begin()
        try:
            return pyopencl.Buffer(self.context, pyopencl.mem_flags.READ_WRITE, size)
        except pyopencl.MemoryError:
            raise device.OutOfDeviceMemory from None

    def write(self, buffer: Any, content: Any) -> None:
        import pyopencl
        pyopencl.enqueue_copy(self.queue, buffer, content)

    def read(self, buffer: Any, into: Any) -> None:
        import pyopencl
        pyopencl.enqueue_copy(self.queue, into, buffer)

    def start(self, function: str, groups: int, threads: Sequence[int], arguments: Sequence[Any]) -> None:
        import pyopencl
        self.begin()
        kernel, (x, y, z) = pyopencl.Kernel(self.program, function), device.spread(threads)
        kernel.set_args(*arguments)
        pyopencl.enqueue_nd_range_kernel(self.queue, kernel, (groups * x, y, z), (x, y, z))

    def release(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            buffer.release()


if __name__ == "__main__":
    try:
        Card(Path(sys.argv[1]).read_text("utf-8"), sys.argv[2], sys.argv[3:]).begin()
    except Unavailable as problem:
        print(problem.diagnostics[0].message, file=sys.stderr)
        sys.exit(3)
    except Exception as problem:          # whatever the driver says
        said = str(problem).splitlines()
        print("\n".join([line for line in said if "error:" in line] or said), file=sys.stderr)
        sys.exit(1)

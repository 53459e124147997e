"""Use OpenCL devices: find one, compile for it, launch kernels.

`python -m caten.runtime.opencl SOURCE DEVICE OPTION…` compiles a file in a process of its own: a compiler may crash or
hang there, and the caller, which never initialises OpenCL, may still fork. It prints the platform and the driver
version. Exit code 1 with the compiler's messages, 3 without a device."""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import Diagnostic, ToolError
from .device_calls import block

MISSING = "apt install pocl-opencl-icd (OpenCL on the CPU), or the driver of your graphics card"


_started: set[int] = set()               # the processes that initialised OpenCL: a fork copies none of its threads


def missing(message: str, hint: str = MISSING) -> ToolError:
    """OpenCL cannot be used here."""
    return ToolError(Diagnostic("E610", message, hint=hint))


def platforms() -> list[Any]:
    """The OpenCL platforms here; E610 where there is none."""
    try:
        import pyopencl
    except ImportError:
        raise missing("pyopencl is not installed", "pip install 'caten[opencl]'") from None
    try:
        return list(pyopencl.get_platforms())
    except pyopencl.LogicError:
        raise missing("no OpenCL platform") from None


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
    raise missing(f"no OpenCL device{f' called {wanted!r}' if wanted else ''}")


class Card:
    """A program on a device, initialised at its first call, so that a process may fork before."""

    def __init__(self, source: str, wanted: str, options: Sequence[str]) -> None:
        self.source, self.wanted, self.options, self.lock = source, wanted, list(options), threading.Lock()
        self.program: Any = None

    def begin(self) -> None:
        import pyopencl
        if _started and os.getpid() not in _started:
            raise missing("OpenCL was started before this process was forked",
                          "call the first kernel after the fork, or start a process of its own")
        with self.lock:
            _started.add(os.getpid())
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
            raise MemoryError from None

    def write(self, buffer: Any, content: Any) -> None:
        import pyopencl
        pyopencl.enqueue_copy(self.queue, buffer, content)

    def read(self, buffer: Any, into: Any) -> None:
        import pyopencl
        pyopencl.enqueue_copy(self.queue, into, buffer)

    def start(self, function: str, groups: int, threads: Sequence[int], arguments: Sequence[Any]) -> None:
        import pyopencl
        self.begin()
        kernel, (x, y, z) = pyopencl.Kernel(self.program, function), block(threads)
        kernel.set_args(*arguments)
        pyopencl.enqueue_nd_range_kernel(self.queue, kernel, (groups * x, y, z), (x, y, z))

    def release(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            buffer.release()


def main(source: str, wanted: str, *options: str) -> int:
    try:
        card = Card(Path(source).read_text("utf-8"), wanted, options)
        card.begin()
        for used in card.context.devices:
            print(f"{used.platform.name}, {used.driver_version}")
    except ToolError as problem:
        print(problem.diagnostics[0].message, file=sys.stderr)
        return 3
    except Exception as problem:          # whatever the driver says
        said = str(problem).splitlines()
        print("\n".join([line for line in said if "error:" in line] or said), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

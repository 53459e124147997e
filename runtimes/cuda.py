"""CUDA C++ by NVIDIA's run-time compiler, which needs no graphics card; run through the driver where there is one."""
from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.errors import Diagnostic, ToolError
from caten.render.device_c import DeviceStyle, Dialect, define_integers
from caten.runtime import device_calls, nvrtc, process
from caten.runtime.call import callables
from caten.runtime.device_calls import block
from caten.runtime.protocol import CompileRecord, Int, Option, Runtime, Text, Unavailable

MISSING = "pip install 'caten[cuda]', which brings NVIDIA's run-time compiler"
NO_MEMORY = 2


class CudaC(Dialect):
    """CUDA C++."""

    kernel, function = 'extern "C" __global__ void', "static __device__ inline "
    global_memory, shared_memory = "", "__shared__ "
    group_id, thread_ids = "blockIdx.x", ("threadIdx.x", "threadIdx.y", "threadIdx.z")
    barrier = "__syncthreads();"
    definitions: ClassVar[Mapping[str, str]] = {
        **define_integers(signed="signed char, short, int, long long",
                          unsigned="unsigned char, unsigned short, unsigned int, unsigned long long"),
        "INFINITY": "#define INFINITY __int_as_float(0x7f800000)", "NAN": "#define NAN __int_as_float(0x7fc00000)"}
    atomic_word, float_suffix = "unsigned int", "f"

    def pointer(self, type: str, name: str, position: int, constant: bool = False) -> str:
        return f"{'const ' * constant}{type} *__restrict__ {name}"

    def value(self, type: str, name: str, position: int) -> str:
        return f"{type} {name}"

    def status(self, name: str, position: int) -> str:
        return f"int *{name}"

    def fail(self, row: int) -> str:
        return f"atomicMin(ct_status, {row});"

    def atomic_and(self, address: str, bits: str) -> str:
        return f"atomicAnd({address}, {bits})"

    def atomic_or(self, address: str, bits: str) -> str:
        return f"atomicOr({address}, {bits})"

    def compound_literal(self, type: str) -> str:
        return f"{type}{{"


class Cuda(DeviceStyle, Runtime):
    """Spellings of CUDA, and the calls of the driver that start kernels."""

    api_version, name = 1, "cuda"
    description = "CUDA C++ by NVRTC for NVIDIA's graphics cards"
    suffixes: ClassVar[Mapping[str, str]] = {"so": ".ptx"}
    config: ClassVar[Mapping[str, Option]] = {
        "ARCH": Text("compute_75",
                     "what to compile for: compute_NN (any card from there on) or sm_NN (one kind alone)"),
        "DEVICE": Int(0, "the number of the card", least=0, greatest=255),
        "THREADS": Int(256, "the most threads of a group", least=1, greatest=1024),
        "SHARED": Int(48 << 10, "bytes that a group shares", least=0, greatest=48 << 10),
    }
    dialect = CudaC()

    @property
    def options(self) -> list[str]:
        """What the compiler is told: nothing is fused, flushed or approximated."""
        return [f"--gpu-architecture={self.settings['ARCH']}", "--fmad=false", "--ftz=false", "--prec-div=true",
                "--prec-sqrt=true"]

    def machine(self) -> Machine:
        return Machine(self.settings["ARCH"], 4, 64, (128 << 10, 4 << 20), True,
                       (32, self.settings["THREADS"], self.settings["SHARED"]))

    def available(self) -> None:
        if nvrtc.found() is None:
            raise Unavailable("NVRTC is not installed", MISSING)
        driver()

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        return [[sys.executable, "-m", "caten.runtime.nvrtc", str(source), str(out), *self.options]]

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        text = out.with_suffix(".cu")
        text.write_text(source, encoding="utf-8")
        (command,) = self.commands(text, out, kind)
        done = process.run(command, self.host.timeout, out.parent)
        text.unlink()
        if done.status == 3:
            raise Unavailable("NVRTC is not installed", MISSING)
        if done.status != 0:
            raise ToolError(Diagnostic("E620", f"NVRTC: {done.errors.strip() or done.reason}"))
        return CompileRecord("nvrtc", done.output.strip(), (tuple(command),), tuple(self.options))

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        return callables(device_calls.library(artifact, manifest, Card(artifact.read_bytes(), self.settings["DEVICE"])))


def driver() -> ctypes.CDLL:
    """The driver's library; Unavailable where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise Unavailable("no NVIDIA driver: kernels are compiled here, and run where there is a GPU") from None


class Card:
    """A module on a card; loaded when it is first called, so that a process may fork before."""

    def __init__(self, code: bytes, number: int) -> None:
        self.code, self.number, self.lock = code + b"\0", number, threading.Lock()
        self.library: Any = None
        self.context, self.module = ctypes.c_void_p(), ctypes.c_void_p()

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the driver, which says what is wrong."""
        status = getattr(self.library, name)(*arguments)
        if status == NO_MEMORY:
            raise MemoryError
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise ToolError(Diagnostic("E620", f"CUDA: {name}: {(text.value or b'?').decode()}"))

    def begin(self) -> None:
        """Load the module once, and make its context this thread's."""
        with self.lock:
            if self.library is None:
                card, self.library = ctypes.c_int(), driver()
                self.call("cuInit", 0)
                self.call("cuDeviceGet", ctypes.byref(card), self.number)
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), card)
                self.call("cuCtxSetCurrent", self.context)
                self.call("cuModuleLoadData", ctypes.byref(self.module), self.code)
        self.call("cuCtxSetCurrent", self.context)

    def allocate(self, size: int) -> Any:
        self.begin()
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def write(self, buffer: Any, content: Any) -> None:
        self.call("cuMemcpyHtoD_v2", buffer, ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(content.nbytes))

    def read(self, buffer: Any, into: Any) -> None:
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(into.ctypes.data), buffer, ctypes.c_size_t(into.nbytes))

    def start(self, function: str, groups: int, threads: Sequence[int], arguments: Sequence[Any]) -> None:
        self.begin()
        kernel = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(kernel), self.module, function.encode())
        values = [a if isinstance(a, ctypes.c_uint64) else (ctypes.c_char * a.nbytes).from_buffer_copy(a.tobytes())
                  for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.call("cuLaunchKernel", kernel, groups, 1, 1, *block(threads), 0, None, pointers, None)

    def release(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            self.call("cuMemFree_v2", buffer)

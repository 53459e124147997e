"""RISC-V: the C of the other runtimes, cross-compiled into a program that qemu runs on this machine.

A call goes to that program over pipes (caten.runtime.kernel_server). `-c`, `-S` and `--emit=a` make
objects, assembly and archives for a board of your own.
"""
from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from caten.core.program import Machine
from caten.render.code import Spelling
from caten.render.cstyle import CStyle
from caten.runtime import cpu, kernel_server, toolchain
from caten.runtime.c_runtime import Compiled
from caten.runtime.call import callables
from caten.runtime.manifest import manifest_c
from caten.runtime.protocol import Choice, CompileRecord, Flag, Option, Text, Unavailable
from caten.runtime.toolchain import Compiler

# How each family of compilers is told the target, and to use the vector extension. The embedded clang brings a C
# library, and builds it once for each -mcpu; so that this is the same one with and without vectors, they are switched
# on behind its back.
TARGET = {"zig": ["-target", "riscv64-linux-musl"], "clang": ["--target=riscv64-linux-gnu"]}
VECTOR = {"zig": ["-Xclang", "-target-feature", "-Xclang", "+v"]}
FIRST_BUILD = 600.0                          # seconds that the first one may take: the C library is built then
EMULATORS = ("qemu-riscv64", "qemu-riscv64-static")


class Riscv(Compiled):
    """64-bit RISC-V with floating point (rv64gc), and optionally with 128-bit vectors."""

    api_version, name = 1, "riscv"
    description = "C for RISC-V, cross-compiled by clang and run by qemu; the first build of all takes about a minute"
    suffixes: ClassVar[Mapping[str, str]] = toolchain.SUFFIXES | {"so": ".elf"}
    # nothing in the program uses its manifest, which stays all the same
    link = ("-static", "-Wl,-u,ct_manifest", *kernel_server.FLAGS)
    fused = promotes_unrolled_arrays = True
    # musl's gives numbers below 1
    ops: ClassVar[Mapping[str, Spelling]] = {fn: s for fn, s in CStyle.ops.items() if fn != "acosh"}
    config: ClassVar[Mapping[str, Option]] = {
        "VECTOR": Flag(False, "use the vector extension"),
        "OPT": Choice(3, "the C compiler's optimisation level", of=(0, 1, 2, 3)),
        "CC": Text(None, "a C compiler for the target"),
        "MATH": Choice("precise",
                       "functions on vectors: within the error of the operator's row, or in fewer operations",
                       of=("precise", "fast")),
    }

    def machine(self) -> Machine:
        return cpu.MACHINES["riscv64"].replace(vector_bytes=self.vector_bytes)

    @property
    def vector_bytes(self) -> int:
        return 16 if self.settings["VECTOR"] else 1

    def available(self) -> None:
        self.compiler()
        self.emulator()

    def compiler(self) -> Compiler:
        return toolchain.cross(self.settings["CC"], ("zig", "clang"), self.host, self.links, "RISC-V")

    def links(self, compiler: Compiler) -> bool:
        """Does it make programs for the target? The embedded one does."""
        return compiler.family == "zig" or toolchain.builds(compiler, self.host, [*TARGET[compiler.family], "-static"])

    def emulator(self) -> str:
        found = [path for name in EMULATORS if (path := shutil.which(name, path=self.host.path))]
        if not found:
            raise Unavailable("qemu, which runs programs for RISC-V, is not here", "apt install qemu-user")
        return found[0]

    def flags(self, compiler: Compiler) -> list[str]:
        vector = VECTOR.get(compiler.family, ["-march=rv64gcv"]) if self.settings["VECTOR"] else []
        own = [w for w in super().flags(compiler) if w not in ("-O2", "-fPIC")]
        # the schedule says what is
        scheduled = ["-fno-vectorize", "-fno-slp-vectorize"] if compiler.family != "gcc" else ["-fno-tree-vectorize"]
        return [*TARGET.get(compiler.family, []), f"-O{self.settings['OPT']}", *scheduled, *vector, *own]

    def trailer(self, manifest: Mapping[str, Any]) -> str:
        return manifest_c(manifest) + kernel_server.program(manifest)

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        if kind == "so":
            toolchain.builds(self.compiler(), self.host, [*TARGET.get(self.compiler().family, []), "-static"],
                             FIRST_BUILD)
        return super().compile(source, out, kind)

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        vectors = {"+v", "-march=rv64gcv"} & set(manifest["flags"])
        model = "rv64,v=true,vext_spec=v1.0" if vectors else "rv64,v=false"
        return callables(kernel_server.serve([self.emulator(), "-cpu", model, str(artifact)], artifact, manifest))

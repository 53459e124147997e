"""The reference runtime: C with GNU vector types and OpenMP, by the newest clang that is here, or else gcc.

What is here is how the C compiler is chosen and what it is told; the rest is that of every runtime for C.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from caten.core.program import Machine
from caten.core.scalars import OPERATORS
from caten.errors import CatenError
from caten.runtime import cpu, toolchain
from caten.runtime.c_runtime import Compiled
from caten.runtime.protocol import Choice, Flag, Option, Text, Unavailable
from caten.runtime.toolchain import Compiler

# What SLEEF has in single (suffix f) and double (d), with the error bound in tenths of an ulp that is part of its
# names.
SLEEF_BOUNDS = {"hypot": "u05", "erfc": "u15"}
SLEEF = ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
         "atanh", "exp2", "expm1",
         "log2", "log10", "log1p", "pow", "cbrt", "hypot", "erf", "erfc", "lgamma")


class Clang(Compiled):
    """The reference runtime."""

    api_version, name = 1, "clang"
    description = "C with SIMD and OpenMP, by clang (or gcc where there is no clang)"
    compilers = ("clang", "zig", "gcc")          # families, in the order of preference
    config: ClassVar[Mapping[str, Option]] = {
        "OMP": Flag(False, "run parallel loops on several threads, with OpenMP"),
        "MARCH": Text("native", "the CPU to compile for, as -march"),
        "OPT": Choice(3, "the C compiler's optimisation level", of=(0, 1, 2, 3)),
        "CC": Text(None, "the C compiler"),
        "SIMD_LEN": Choice(None, "float32 lanes of a vector (1: none)", of=(1, 2, 4, 8, 16, 32, 64)),
        "MATH": Choice("precise",
                       "functions on vectors: within the error of the operator's row, or in fewer operations",
                       of=("precise", "fast")),
        "SLEEF": Flag(False, "take vector math functions from the SLEEF library"),
    }

    def machine(self) -> Machine:
        machine = cpu.machine_of(self.settings["MARCH"]).replace(threads=self.has_threads)
        lanes = self.settings["SIMD_LEN"]
        return machine if lanes is None else machine.replace(vector_bytes=4 << (lanes.bit_length() - 1))

    def compiler(self) -> Compiler:
        return self._chosen

    @cached_property
    def _chosen(self) -> Compiler:
        """The first of `compilers` that is here; with OMP=1 the first that passes the OpenMP probe. Looking through
        $PATH takes a millisecond."""
        fits = (lambda c: toolchain.has_openmp(c, self.host)) if self.settings["OMP"] else None
        chosen = toolchain.choose(self.settings["CC"], self.compilers, self.host, fits)
        if self.settings["SLEEF"] and not toolchain.has_library(chosen, self.host, "sleef"):
            raise Unavailable("SLEEF=1 needs the SLEEF library, and -lsleef cannot be linked",
                              "apt install libsleef-dev, or leave SLEEF out")
        return chosen

    def flags(self, compiler: Compiler) -> list[str]:
        """What the C compiler is told, whatever it makes."""
        omp = toolchain.openmp_flags(compiler)[:1] if self.settings["OMP"] else []
        return [f"-O{self.settings['OPT']}", *toolchain.EXACT, "-fPIC", "-fvisibility=hidden",
                *compiler.march(self.settings["MARCH"]),
                *compiler.quiet, "-g" if self.host.debug else "-g0", *omp, *self.host.cflags]

    def libraries(self, compiler: Compiler) -> list[str]:
        """What a library is linked with."""
        omp = toolchain.openmp_flags(compiler)[1:] if self.settings["OMP"] else []
        return [*omp, *(["-lsleef"] if self.settings["SLEEF"] else []), *self.host.ldflags, "-lm"]

    @property
    def vector_functions(self) -> Mapping[tuple[str, str, int], str]:
        """(operator, type, lanes) -> the function of a vector library."""
        if not self.settings["SLEEF"]:
            return {}
        widths = [("f32", "f", n) for n in (4, 8, 16)] + [("f64", "d", n) for n in (2, 4, 8)]
        return {(fn, dtype, n): f"Sleef_{OPERATORS[fn].libm}{letter}{n}_{SLEEF_BOUNDS.get(fn, 'u10')}" for fn in SLEEF
                for dtype, letter, n in widths
                if n * (4 if letter == "f" else 8) <= max(16, self.machine().vector_bytes)}

    @property
    def fused(self) -> bool:
        return self.machine().has_fma

    @property
    def vector_bytes(self) -> int:
        return cpu.machine_of(self.settings["MARCH"]).vector_bytes

    @property
    def checks_cpu(self) -> bool:
        return cpu.needs_check(self.settings["MARCH"]) or any(word.startswith("-m") for word in self.host.cflags)

    @property
    def promotes_unrolled_arrays(self) -> bool:
        try:
            return self.compiler().family != "gcc"
        except CatenError:                                       # rendered for another machine
            return True

    @property
    def auto_vectorizes(self) -> bool:
        return self.promotes_unrolled_arrays

    @property
    def confuses_lanes(self) -> bool:
        return not self.promotes_unrolled_arrays

    def identity(self) -> str:
        return f"{super().identity()}\n{cpu.fingerprint(self.settings['MARCH'])}"

"""C by gcc, with its sanitizers as an option: `--config SANITIZE=undefined` makes a library that reports undefined
behaviour."""
from __future__ import annotations

from caten.runtime.discover import base
from caten.runtime.protocol import Choice
from caten.runtime.toolchain import Compiler

Clang = base("clang")


class Gcc(Clang):
    """Clang's tables and methods with another compiler and one more option."""

    name = "gcc"
    description = "C with SIMD and OpenMP, by gcc"
    compilers = ("gcc",)
    config = Clang.config | {
        "SANITIZE": Choice("none", "check generated code while it runs (a library with `address` needs libasan "
                                   "preloaded)",
                           of=("none", "address", "undefined", "address+undefined")),
    }

    def flags(self, compiler: Compiler) -> list[str]:
        kinds = self.settings["SANITIZE"]
        chosen = [] if kinds == "none" else [f"-fsanitize={kinds.replace('+', ',')}", "-fno-sanitize-recover=undefined"]
        return [*super().flags(compiler), *chosen]

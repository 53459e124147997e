"""Runtimes that render C and compile it: everything but the choice of compiler, machine and flags."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..bindings.cpython import direct_c
from ..errors import CatenError, Diagnostic, ToolError
from ..render.cstyle import CStyle
from . import object_files, toolchain
from .call import callables
from .library import check_whole, open_library
from .linked_libraries import library_identities
from .manifest import manifest_c, operators
from .protocol import CompileRecord, Runtime
from .toolchain import Compiler


class Compiled(CStyle, Runtime):
    """C by a C compiler. A runtime names it (`compiler`) and the machine (`machine`). It may change the flags, the
    libraries to link with, and how an artifact is loaded."""

    settings: dict[str, Any]
    suffixes = toolchain.SUFFIXES
    calls_c = True
    in_parts = True
    link: ClassVar[Sequence[str]] = ("-shared",)           # what makes the library that is loaded

    @abstractmethod
    def compiler(self) -> Compiler:
        """The one to use; `Unavailable` where there is none."""

    def flags(self, compiler: Compiler) -> list[str]:
        """The flags of every compilation."""
        return [*toolchain.EXACT, "-O2", "-fPIC", "-fvisibility=hidden", *compiler.quiet, "-g" if self.host.debug
                else "-g0", *self.host.cflags]

    def libraries(self, compiler: Compiler) -> list[str]:
        """What a library is linked with."""
        return [*self.host.ldflags, "-lm"]

    def trailer(self, manifest: Mapping[str, Any]) -> str:
        return manifest_c(manifest) + direct_c(operators(manifest))

    def available(self) -> None:
        self.compiler()

    def commands(self, source: Path, out: Path, kind: str) -> list[list[str]]:
        compiler = self.compiler()
        return toolchain.commands(compiler, self.flags(compiler), self.libraries(compiler), str(source), str(out), kind,
                                  self.link, parts=self.host.parts)

    def compile(self, source: str, out: Path, kind: str) -> CompileRecord:
        compiler = self.compiler()
        flags, libraries = self.flags(compiler), self.libraries(compiler)
        if kind == "so" and object_files.serve(self.host, self.link):
            record = object_files.compile_missing(compiler, flags, libraries, source, out, self.host, self.link,
                                                  self.identity())
        else:
            record = toolchain.compile_c(compiler, flags, libraries, source, out, kind, self.host, self.link)
        if kind == "so":
            try:
                self.check_library(out)
            except CatenError as problem:
                out.unlink(missing_ok=True)
                said = problem.diagnostics[0].message.replace(f"{out} ", "it ")
                raise ToolError(Diagnostic("E625", f"{compiler.name} reported success and wrote no library: {said}",
                                           hint="is this really a C compiler?")) from None
        return record

    def check_library(self, library: Path) -> None:
        """Raises CatenError where a file cannot be the library that was to be made."""
        check_whole(library)

    def identity(self) -> str:
        compiler = self.compiler()
        words = [*compiler.words, *self.flags(compiler), *self.link, *self.libraries(compiler)]
        return "\n".join([self.name, compiler.identity(), *words, *library_identities(words, compiler.file)])

    def load(self, artifact: Path, manifest: Mapping[str, Any]) -> Any:
        return callables(open_library(artifact, manifest))

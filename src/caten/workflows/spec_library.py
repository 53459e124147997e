"""The library of some specs, compiled on first use."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path

from .. import compiler, driver, loading
from ..core.program import Program
from ..driver import ignore
from ..errors import Diagnostic, UsageError
from ..frontend.op import OpProgram
from ..frontend.spec_files import SpecText
from ..kernels import known_build
from ..options import Options
from ..passes import level_of

# Product -> the artifact kind of the runtime.
ARTIFACTS = {"so": "so", "a": "a", "obj": "o", "asm": "s"}


class SpecLibrary:
    """The library of some specs, or of texts of earlier stages.

    `programs`: theirs, at the level of the texts; `made` is called once for each artifact."""

    def __init__(self, programs: Sequence[Program], texts: Sequence[SpecText], options: Options,
                 warn: compiler.Warn = ignore, made: Callable[[compiler.Built], None] = lambda built: None):
        self.programs, self.texts, self.options = programs, texts, options
        self.warn = driver.once(warn)
        self._made = made
        self._library: compiler.Built | None = None
        self._known: set[Path] = set()         # artifacts that `made` has been called for

    def of(self, names: Collection[str]) -> SpecLibrary:
        """The library of some of the programs."""
        chosen = [program for program in self.programs if program.name in names]
        return self if len(chosen) == len(self.programs) else SpecLibrary(chosen, self.texts, self.options, self.warn,
                                                                          self._made)

    @cached_property
    def compilation(self) -> compiler.Compilation:
        """The compilation of the programs."""
        return compiler.Compilation(self.programs, self.options, loading.digest(self.texts), self.warn)

    def built(self, product: str) -> compiler.Built:
        """The artifact for a product, compiled or from the cache. UsageError E914 if the runtime cannot make it."""
        return self._told(self.compilation.artifact(self.kind(product)))

    def loadable(self) -> compiler.Built:
        """The shared library, to be called. A library in the cache is not rendered again."""
        self.kind("so")
        if self._library is None:
            self._library = self._told(known_build.built(self.compilation))
        return self._library

    def kind(self, product: str) -> str:
        """The runtime's artifact kind for a product. UsageError E914 if the runtime cannot make it."""
        runtime = self.compilation.runtime
        kind = ARTIFACTS[product]
        if kind not in runtime.suffixes:
            makes = [p for p, k in ARTIFACTS.items() if k in runtime.suffixes]
            raise UsageError(Diagnostic("E914", f"runtime {runtime.name} makes no {product}",
                                        hint=f"it makes {', '.join(makes)}"))
        return kind

    def check_as_written(self, verb: str) -> None:
        """UsageError E934 if a program comes from the text of a later stage: without the operator as written there is
        no reference for its results. `verb`: the intended action, for the hint."""
        for program in self.programs:
            if not isinstance(program, OpProgram):
                given = f"{program.name} is given as a text of the level '{level_of(program)}'"
                raise UsageError(Diagnostic("E934", f"{given}, which lacks the operator as it was written",
                                            hint=f"{verb} the spec, or the text of caten parse"))

    def _told(self, built: compiler.Built) -> compiler.Built:
        if built.artifact not in self._known:
            self._known.add(built.artifact)
            self._made(built)
        return built

"""Making the products of one command line: each kind from what it needs, nothing twice."""
from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from .. import attach, build, driver, loading
from ..core.program import Opt, Program
from ..core.text import show
from ..errors import Diagnostic, UsageError
from ..frontend.spec import SpecText
from ..kernels import compiling
from ..render.example import as_reference, example
from ..render.header import header
from ..render.wrapper import wrapper
from ..runtime.manifest import to_json
from ..runtime.protocol import Runtime
from ..runtime.toolchain import SONAME
from .inputs import load
from .options import Request
from .products import NATIVE, OF_C, Makes

# Product -> the kind of artifact that the runtime makes.
ARTIFACTS = {"so": "so", "a": "a", "obj": "o", "asm": "s"}


class Production:
    """The stages of one command line, each run when something needs it."""

    def __init__(self, request: Request, texts: Sequence[SpecText]):
        self.request = request
        self.texts = texts
        self.name = "library"                # what the files are called; the plan says
        self._built: dict[str, build.Built] = {}
        self._due: list[driver.Check] | None = []     # verifications of what was rendered, not run yet; None: one has failed, all is verified at once
        self._warn = driver.once(request.warn)

    @cached_property
    def programs(self) -> list[Program]:
        """As loaded, at the level that the inputs are on."""
        return load(self.request, self.texts)

    @cached_property
    def _runtime(self) -> Runtime:
        return attach.runtime_for(self.programs, self.request.options)

    @cached_property
    def makes(self) -> Makes:
        """What the runtime makes, as far as names of files depend on it."""
        runtime = self._runtime
        return Makes(runtime.name, runtime.suffixes.get("so", ".so"), "c" in runtime.suffixes)

    @cached_property
    def _draft(self) -> build.Rendered:
        """Rendered, and verified where nothing is due."""
        return build.render_programs(self.programs, self.request.options, loading.digest(self.texts), self._warn, self._due)

    @property
    def rendered(self) -> build.Rendered:
        """Rendered and verified."""
        try:
            draft = self._draft
            build.settle(self._due)
        except build.Refused:
            draft = self._begun_again()
        return draft

    def _begun_again(self) -> build.Rendered:
        self.__dict__.pop("_draft", None)
        self._due = None
        return self._draft

    def at(self, level: str) -> str:
        """The text of a level."""
        return "".join([show(driver.advance(p, level, self.request.options, self._warn)) + "\n" for p in self.programs])

    def built(self, product: str) -> build.Built:
        """The artifact of a product, compiled or from the cache."""
        if product not in self._built:
            try:
                made = build.compile_rendered(self._draft, self.request.options, self._warn, self._kind(product), self._due)
            except build.Refused:
                made = build.compile_rendered(self._begun_again(), self.request.options, self._warn, self._kind(product))
            self._keep(product, made)
        return self._built[product]

    def loadable(self) -> build.Built:
        """The library for a command that calls it, which needs no text: one that was made before is not rendered again."""
        self._kind("so")
        if "so" not in self._built:
            self._keep("so", compiling.built(self.programs, self.request.options, loading.digest(self.texts), self._warn))
        return self._built["so"]

    def _keep(self, product: str, made: build.Built) -> None:
        self._built[product] = made
        if self.request.verbose:
            _say(made.record.commands, "from the cache; it was made with" if made.from_cache else "compiled with")

    def example(self) -> str:
        """A program that calls the library and checks itself, under the name that the library will have."""
        if not self.rendered.ops:
            raise UsageError(Diagnostic("E915", "an example compares with the spec as written, and the input is a later stage's text",
                                        hint="start from the spec"))
        written = [as_reference(p.without(Opt).adding(Opt(0))) for p in self.rendered.ops]
        loops = [driver.advance(p, "loop", self.request.options) for p in written]
        return example(self.rendered.manifest, driver.render(loops, self.request.options), self.name, self._needed())

    def _needed(self) -> list[str]:
        """The paths of libraries that the library is linked with by path: their folders are not the loader's."""
        words = [word for command in self.commands("so", "library.so") for word in command]
        return [word for word in words if word.startswith("/") and word.endswith((".so", ".dylib"))]

    def commands(self, product: str, out: str) -> list[list[str]]:
        """What the compiler would be called with."""
        return self.rendered.runtime.commands(Path(out).with_suffix(".c"), Path(out), self._kind(product))

    def _kind(self, product: str) -> str:
        runtime = self._runtime
        kind = ARTIFACTS[product]
        if kind not in runtime.suffixes:
            makes = [p for p, k in ARTIFACTS.items() if k in runtime.suffixes]
            raise UsageError(Diagnostic("E914", f"runtime {runtime.name} makes no {product}", hint=f"it makes {', '.join(makes)}"))
        return kind


def _say(commands: Sequence[Sequence[str]], what: str) -> None:
    for command in commands:
        words = [w for w in command if not w.endswith(SONAME)]
        print(f"caten: {what}: {shlex.join(words)}", file=sys.stderr)


TEXTS: dict[str, Callable[[Production], str]] = {
    "spec": lambda p: p.at("op"),
    "ir": lambda p: p.at("tensor"),
    "schedule": lambda p: p.at("loop"),
    "c": lambda p: p.rendered.source,
    "header": lambda p: header(p.rendered.programs, p.rendered.manifest),
    "manifest": lambda p: to_json(p.rendered.manifest),
    "example": lambda p: p.example(),
    "python": lambda p: wrapper(p.rendered.manifest, f"{p.name}.so"),
}


def content(production: Production, product: str) -> bytes:
    """The bytes of a product."""
    if product in OF_C and not production.makes.c:
        raise UsageError(Diagnostic("E914", f"runtime {production.makes.runtime} makes no C, so there is no {product} for it"))
    if product in NATIVE and production.makes.library != ".so":
        raise UsageError(Diagnostic("E914", f"runtime {production.makes.runtime} makes no library of this machine, so there is no {product} for it",
                                    hint="caten.load(…) calls what it makes"))
    if product in TEXTS:
        return TEXTS[product](production).encode()
    return production.built(product).artifact.read_bytes()

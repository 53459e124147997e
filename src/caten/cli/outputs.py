"""Write the outputs of one build: each stage runs at most once, whatever is written from it."""
from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import checking, compiler, driver
from ..bindings.c_example import as_reference, example
from ..bindings.c_header import header
from ..bindings.c_table import table
from ..bindings.python_wrapper import wrapper
from ..core.program import Opt, Program
from ..core.text import show
from ..errors import Diagnostic, UsageError
from ..frontend import operator_library, spec
from ..frontend.spec_files import SpecText
from ..graphs.dot import dot
from ..graphs.source_lines import lines_of
from ..graphs.value_graph import graph_of
from ..graphs.value_page import page
from ..loop.statements import LoopProgram
from ..render import compiled_parts
from ..runtime import tuning_records
from ..runtime.manifest import to_json
from ..runtime.toolchain import SONAME, under_name
from ..tensor.fusion_report import explained
from ..tensor.values import TensorProgram
from ..testing.sizes_and_scalars import match_settings
from ..workflows.spec_library import ARTIFACTS, SpecLibrary
from .app import COMMANDS
from .atomic_files import STDOUT, write
from .command_cache import Remembered
from .depfile import depfile
from .inputs import sources
from .output_kinds import NATIVE, OF_C, Makes, Plan, plan, stem_of
from .printing import answer
from .progress import building
from .shared_options import Request


class Production:
    """The stages of one command line, each run on first use."""

    def __init__(self, request: Request, texts: Sequence[SpecText]):
        self.request = request
        self.name = "library"                  # the stem of the files, set from the plan
        self.library = library(request, texts)

    @property
    def programs(self) -> Sequence[Program]:
        """The programs at the level of the inputs."""
        return self.library.programs

    @cached_property
    def makes(self) -> Makes:
        """The properties of the runtime that affect file names."""
        runtime = self.library.compilation.runtime
        return Makes(runtime.name, runtime.suffixes.get("so", ".so"), "c" in runtime.suffixes)

    @property
    def rendered(self) -> compiler.Rendered:
        """The rendered and verified programs."""
        return self.library.compilation.rendered

    def at(self, level: str) -> str:
        """The text of all programs at a level."""
        programs = [driver.advance(p, level, self.request.options, self.library.warn) for p in self.programs]
        return "".join([f"{show(p)}\n" for p in programs])

    def values(self) -> list[TensorProgram]:
        """The programs at the tensor level. UsageError E915 for the text of a later level."""
        for p in self.programs:
            if isinstance(p, LoopProgram):
                raise UsageError(Diagnostic("E915", f"{p.name} is given as loops, in which no values are to be seen",
                                            hint="start from the spec, or from the text of caten ir"))
        made = [driver.advance(p, "tensor", self.request.options, self.library.warn) for p in self.programs]
        return [p for p in made if isinstance(p, TensorProgram)]

    def page(self) -> str:
        """The page of values, kernels and source."""
        values = self.values()
        loops = [p for v in values if isinstance(p := driver.advance(v, "loop", self.request.options), LoopProgram)]
        runtime = self.library.compilation.runtime
        return page(", ".join([p.name for p in values]), [graph_of(p) for p in values],
                    [list(explained(p)) for p in values], lines_of(values, loops, lambda made: runtime.render(*made)))

    def built(self, product: str) -> compiler.Built:
        """The artifact for a product, compiled or from the cache."""
        return self.library.built(product)

    def example(self) -> str:
        """A C program that calls the library under its final name and checks the results, against the operators as
        written, or the values of a text as they stand there. UsageError E915 for the text of a later level."""
        for p in self.programs:
            if isinstance(p, LoopProgram):
                raise UsageError(Diagnostic("E915", "an example compares with the spec as written, "
                                                    "and the input is the text of a later stage",
                                            hint="start from the spec, or from the text of caten ir"))
        written = [as_reference(p.without(Opt).adding(Opt(0))) for p in self.rendered.ops or self.programs]
        loops = [driver.advance(p, "loop", self.request.options) for p in written]
        return example(self.rendered.manifest, driver.render(loops, self.request.options), self.name, self._needed())

    def _needed(self) -> list[str]:
        """Libraries that the link command names by path; the loader does not search their folders."""
        words = [word for command in self.commands("so", "library.so") for word in command]
        return [word for word in words if word.startswith("/") and word.endswith((".so", ".dylib"))]

    def commands(self, product: str, out: str) -> list[list[str]]:
        """The compiler commands for a product."""
        runtime = self.rendered.runtime.hosted(parts=compiled_parts.count(self.rendered.source))
        return runtime.commands(Path(out).with_suffix(".c"), Path(out), self.library.kind(product))


def library(request: Request, texts: Sequence[SpecText], warn: compiler.Warn | None = None) -> SpecLibrary:
    """The library of a command line. With -v, the commands that make an artifact are printed, once."""
    def say(made: compiler.Built) -> None:
        _say(made.record.commands, "from the cache; it was made with" if made.from_cache else "compiled with")
    return SpecLibrary(checking.loaded(texts, request.options, compiled=True), texts, request.options,
                       warn or request.warn, say if request.verbose else lambda made: None)


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
    "table": lambda p: table(p.rendered.manifest, p.name, operator_library.generic_name),
    "example": lambda p: p.example(),
    "dot": lambda p: dot([graph_of(v) for v in p.values()]),
    "html": lambda p: p.page(),
    "python": lambda p: wrapper(p.rendered.manifest, f"{p.name}.so"),
}


def content(production: Production, product: str) -> bytes:
    """The bytes of a product. UsageError E914 if the runtime cannot make it."""
    if product in OF_C and not production.makes.c:
        raise UsageError(Diagnostic("E914",
                                    f"runtime {production.makes.runtime} makes no C, so there is no {product} for it"))
    if product in NATIVE and production.makes.library != ".so":
        raise UsageError(Diagnostic("E914", f"runtime {production.makes.runtime} makes no library of this machine, "
                                            f"so there is no {product} for it",
                                    hint="caten.load(…) runs it from Python"))
    if product in TEXTS:
        return TEXTS[product](production).encode()
    return production.built(product).artifact.read_bytes()


def make(request: Request, known: Remembered, run_test: Callable[[Production, Plan, Any], int]) -> int:
    """Write the outputs of a command line and store them in the command cache; the exit code. `run_test` runs
    --test."""
    if request.prints:
        return answer(request)
    texts = sources(request, tuple(COMMANDS))
    production = Production(request, texts)
    names = [p.name for p in production.programs]
    todo = plan(request.output, request.emits, stem_of(request.inputs, names, request.output),
                save_temps=request.save_temps,
                makes=production.makes)
    production.name = Path(todo.stem).name
    if request.test is not None:
        production.library.check_as_written("test")
    settings = None if request.test is None else match_settings(request.test, production.programs)
    if settings is not None and STDOUT in [path for _, path in todo.files]:
        raise UsageError(Diagnostic("E903", "both a product and the report of --test would go to stdout",
                                    hint="name a file with -o"))
    if request.dry_run:
        return _dry_run(production, todo)
    with building(quiet=request.reporter.format != "text"):
        made = {path: (_product(production, kind, path), 0o755 if kind == "so" else 0o644)
                for kind, path in todo.files if kind != "depfile"}
    for path, (data, mode) in made.items():
        write(path, data, mode)
    _write_depfile(request, production, todo, texts)
    if known.name is not None and not request.reporter.kept:
        known.keep(made, [*_dependencies(request, production, texts), *_collections(request, texts)])
    if settings is None:
        return 0
    return run_test(production, todo, settings)


def _product(production: Production, kind: str, path: str) -> bytes:
    """The bytes of a product; a shared library gets the file name as its soname."""
    made = content(production, kind)
    return under_name(made, Path(path).name) if kind == "so" else made


def _dry_run(production: Production, todo: Plan) -> int:
    """-###: print the commands, quoted, on stderr. Run and write nothing."""
    for kind, path in todo.files:
        if kind in ARTIFACTS:
            for line in production.commands(kind, path):
                print(" " + shlex.join(line), file=sys.stderr)
    return 0


def _write_depfile(request: Request, production: Production, todo: Plan, texts: Sequence[SpecText]) -> None:
    """-MD or --emit=depfile: the products depend on specs, included specs, the schedule and the runtime file."""
    path = todo.path("depfile") or (None if request.depfile is None else request.depfile.file or f"{todo.stem}.d")
    if path is None:
        return
    wanted = request.depfile
    products = [p for kind, p in todo.files if kind != "depfile" and p != STDOUT]
    targets = wanted.targets if wanted and wanted.targets else products[:1]
    write(path, depfile(targets or [f"{todo.stem}.so"], _dependencies(request, production, texts),
                        phony=wanted is not None and wanted.phony))


def _dependencies(request: Request, production: Production, texts: Sequence[SpecText]) -> list[str]:
    files = [name for name in request.inputs if name != STDOUT and not name.lstrip().startswith("(")]
    for text in texts:
        if text.lang == "toml" or text.text.lstrip().startswith("(composite"):
            files += [_short(path) for path in spec.dependencies(text, request.options)]
    if request.options.schedule is not None and request.options.schedule_file != STDOUT:
        files.append(request.options.schedule_file)
    runtime = production.rendered.runtime
    files += [path for path in _collections(request, texts) if Path(path).is_file()]
    return files if runtime.file is None else [*files, _short(runtime.file)]


def _collections(request: Request, texts: Sequence[SpecText]) -> list[str]:
    """At -O3, the record files beside the specs, whether or not they exist."""
    return [str(tuning_records.beside(text.name)) for text in texts
            if text.lang == "toml"] if request.options.opt >= 3 else []


def _short(path: Path) -> str:
    """The path of a file, relative if it is below the current directory."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)

"""From programs to a library: render, add the manifest, compile through the cache."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from . import build_progress, driver
from .attach import runtime_for
from .core.program import Program, Target
from .driver import Check, ignore, once
from .errors import CatenError, Diagnostic, ToolError
from .frontend.op import OpProgram
from .frontend.spec_files import SpecText
from .frozen import frozen
from .loading import digest, loaded
from .loop.statements import LoopProgram
from .options import Options
from .render import compiled_parts
from .runtime import library_cache
from .runtime.kept_objects import folder_of
from .runtime.protocol import CompileRecord, Runtime
from .runtime.toolchain import unwritable

T = TypeVar("T")
Warn = Callable[[Diagnostic], None]
MOST_BYTES_OF_PLANS = 64 << 20
RECORD = "record.json"                  # in a cache entry: how the artifact was made


@frozen
class Built:
    """What a build made. `ops` are the programs as written (empty where the build began at a later level), `programs`
    what became of them (empty where the library was known before anything was scheduled), `source` the text as
    rendered, `artifact` the library in the cache (or a temporary folder) with the manifest inside, `record` how it was
    compiled. `reuses`: it may have kernels that were compiled for other libraries."""

    ops: tuple[OpProgram, ...]
    programs: tuple[LoopProgram, ...]
    source: str
    manifest: dict[str, Any]
    artifact: Path
    record: CompileRecord
    runtime: Runtime
    from_cache: bool
    reuses: bool = False


@frozen
class Rendered:
    """A build up to the source text: what the host compiler is given is `source` and then `trailer`."""

    ops: tuple[OpProgram, ...]
    programs: tuple[LoopProgram, ...]
    source: str
    trailer: str
    manifest: dict[str, Any]
    runtime: Runtime


class Refused(Exception):
    """The verifier refused a program after rendering. The next attempt verifies each pass at once."""


class Compilation:
    """Programs on their way to one library: the source text and an artifact of each kind, made when first used, each
    once.

    The verifier checks the loops while the host compiler runs. If it refuses one, rendering starts again and every pass
    is verified. `ops`: the programs as written, where `programs` are what became of them. `reuses`: a library may have
    kernels that were compiled for others, so that its bytes depend on what is in the cache."""

    def __init__(self, programs: Sequence[Program], options: Options, spec_sha256: str = "", warn: Warn = ignore,
                 ops: Sequence[OpProgram] = (), reuses: bool = False):
        self.programs, self.options, self.spec_sha256 = programs, options, spec_sha256
        self.reuses = reuses
        self.warnings: list[Diagnostic] = []
        self._tell = once(warn)
        self.ops = tuple(ops) or written(programs)
        self._due: list[Check] | None = []            # verifications still to run; None: each runs with its pass
        self._artifacts: dict[str, Built] = {}

    def warn(self, warning: Diagnostic) -> None:
        """Record a warning, and pass it on the first time."""
        self.warnings.append(warning)
        self._tell(warning)

    @cached_property
    def runtime(self) -> Runtime:
        """The runtime that the programs are for."""
        return runtime_for(self.programs, self.options)

    @cached_property
    def _draft(self) -> Rendered:
        made = render_programs(self.programs, self.options, self.spec_sha256, self.warn, self._due)
        return replace(made, ops=self.ops)

    @property
    def rendered(self) -> Rendered:
        """The source text and the manifest, verified."""
        def verify(draft: Rendered) -> Rendered:
            settle(self._due)
            return draft
        return self._with_draft(verify)

    def artifact(self, kind: str = "so") -> Built:
        """An artifact (`so`, `o`, `s`, `a`), compiled or from the cache. ToolError if the host compiler fails."""
        if kind not in self._artifacts:
            self._artifacts[kind] = self._with_draft(
                lambda draft: compile_rendered(draft, self.options, self.warn, kind, self._due, self.reuses))
        return self._artifacts[kind]

    def _with_draft(self, use: Callable[[Rendered], T]) -> T:
        try:
            return use(self._draft)
        except Refused:
            self.__dict__.pop("_draft", None)
            self._due = None
            return use(self._draft)


def prepare(sources: Sequence[SpecText], options: Options, warn: Warn = ignore) -> Rendered:
    """Specs, or texts of earlier stages, to the source text of one library."""
    return Compilation(loaded(sources, options), options, digest(sources), warn).rendered


def build(sources: Sequence[SpecText], options: Options, warn: Warn = ignore) -> Built:
    """Specs, or texts of earlier stages, to a library."""
    return Compilation(loaded(sources, options), options, digest(sources), warn).artifact()


def render_programs(programs: Sequence[Program], options: Options, spec_sha256: str = "",
                    warn: Warn = ignore, due: list[Check] | None = None) -> Rendered:
    """Programs at any level, rendered as one library with its manifest. With `due` the verifications of the loops are
    added there, for `compile_rendered` to run."""
    ops = written(programs)
    from .runtime.program_manifest import manifest, provenance
    loops: list[LoopProgram] = []
    problems: list[Diagnostic] = []
    kept = folder_of(open_cache(options).directory, library_cache.PLANS, MOST_BYTES_OF_PLANS)
    for n, p in enumerate(programs):
        build_progress.tell(n, len(programs), f"scheduling {p.name}")
        try:
            with build_progress.heard(None) if len(programs) > 1 else nullcontext():
                loop = driver.advance(p, "loop", options, warn, due, kept=kept)
        except CatenError as problem:
            if problem.exit_code != 1:
                raise
            problems += problem.diagnostics
            continue
        assert isinstance(loop, LoopProgram)
        loops.append(loop)
    if problems:
        raise CatenError(*problems)
    runtime = runtime_for(loops, options)
    if options.strict or options.verify:
        from .render import layout_replay
        for loop in loops:
            assert not (wrong := list(layout_replay.faults(loop))), wrong
    try:
        source = driver.render(loops, options)
        described = manifest(loops, runtime, provenance(runtime, loops[0].first(Target), spec_sha256), ops)
        trailer = compiled_parts.trailing(source, runtime.trailer(described))
    except Exception:
        settle(due)                 # of a program that is refused it is of no interest what else it meets
        raise
    return Rendered(ops, tuple(loops), source, trailer, described, runtime)


def written(programs: Sequence[Program]) -> tuple[OpProgram, ...]:
    """The programs as they were written; none where one of them begins at a later level."""
    ops = tuple([p for p in programs if isinstance(p, OpProgram)])
    return ops if len(ops) == len(programs) else ()


def open_cache(options: Options, warn: Warn = ignore) -> library_cache.Cache:
    """The cache that the options ask for."""
    return library_cache.Cache(library_cache.default_directory(options.cache_dir) if options.use_cache else None, warn)


def compile_rendered(rendered: Rendered, options: Options, warn: Warn = ignore, kind: str = "so",
                     due: list[Check] | None = None, reuses: bool = False) -> Built:
    """Compile what was rendered to one kind of artifact (`so o s a …`), unless the cache has it; with `reuses` a
    library takes kernels from object files in the cache. What a compiler refuses is kept and named. The verifications
    that are due run meanwhile, and `due` is empty then; Refused where one fails."""
    due = [] if due is None else due
    store = open_cache(options, warn)
    text = rendered.source + rendered.trailer
    parts = compiled_parts.count(text)
    reuses = reuses and parts > 1
    runtime = rendered.runtime.hosted(cache=store.directory, meanwhile=partial(settle, due), parts=parts, reuses=reuses)
    name = library_cache.key(f"{kind}, reusing" if reuses else kind, text, runtime.identity(),
                             rendered.manifest["runtime_sha256"])
    file = "library" + runtime.suffixes[kind]
    fresh = False

    def make(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        build_progress.tell(0, 0, "compiling")
        with driver.timed("compile", options):
            record = runtime.compile(text, folder / file, kind)
        (folder / RECORD).write_text(json.dumps(asdict(record)))

    try:
        entry = store.fetch(name, make)
        settle(due)                       # nothing was compiled, or not by a process
    except ToolError as problem:
        settle(due)                       # what a compiler says of a refused program is of no interest
        raise _with_kept_source(problem, store, name, text, runtime, kind) from None
    except OSError as problem:
        raise unwritable(problem) from None
    return Built(rendered.ops, rendered.programs, rendered.source, rendered.manifest, entry / file, record_in(entry),
                 runtime, not fresh, reuses)


def record_in(entry: Path) -> CompileRecord:
    """How the artifact in an entry of the cache was made."""
    facts = json.loads((entry / RECORD).read_text())
    commands = tuple(tuple(c) for c in facts["commands"])
    return CompileRecord(facts["compiler"], facts["version"], commands, tuple(facts["flags"]),
                         tuple(facts["libraries"]))


def settle(due: list[Check] | None) -> None:
    """Run the verifications that are due. Refused where one fails."""
    try:
        while due:
            due[0]()
            del due[0]
    except CatenError as refusal:
        raise Refused from refusal


def _with_kept_source(problem: ToolError, store: library_cache.Cache, name: str, text: str, runtime: Runtime,
                      kind: str) -> ToolError:
    """The compiler's message, with the folder of its kept input; none is kept if the compiler does not run."""
    if problem.diagnostics[0].code in ("E610", "E626"):
        return problem
    try:
        kept = store.keep_failed(name, {"source.c": text})
    except OSError:                       # no room for it either
        return problem
    commands = runtime.commands(kept / "source.c", kept / ("library" + runtime.suffixes[kind]), kind)
    first, *rest = problem.diagnostics
    notes = (*first.notes, (f"the source is kept in {kept / 'source.c'}", None),
             *[(" ".join(c), None) for c in commands])
    return ToolError(replace(first, notes=notes), *rest)

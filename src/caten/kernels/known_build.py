"""Operators to their library. A kernel that was built before is not scheduled, rendered or compiled again."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import compiler
from ..attach import runtime_for
from ..collector import CollectingRarely
from ..core.program import Program
from ..core.text import show
from ..errors import Diagnostic
from ..options import Options
from ..render.c_identifiers import exports
from ..runtime.call import Operator, Operators, callables, library_of
from ..runtime.library_cache import key as hashed
from ..runtime.manifest import Manifest
from ..tensor.collapsed_axes import collapsed
from . import known_kernels
from .collapsed_library import with_axes
from .kernel_key import Key, finds_by_symbol, key
from .known_kernels import LOADED, Found, Kept
from .rebuild_check import compare
from .renamed_library import Own, under_manifest, under_names

# A warning that is given once: what was damaged is made again.
DAMAGED = "E651"


def loaded(programs: Sequence[Program], options: Options, spec_sha256: str, warn: compiler.Warn) -> Any:
    """The loaded operators of programs. A library with the same kernel under other names serves too, and so does one
    that was made for another number of axes in the place of `~`."""
    with CollectingRarely():
        runtime = runtime_for(programs, options)
        collapses = finds_by_symbol(runtime) and not options.strided
        kernels = [collapsed(p) if collapses else (p, {}) for p in programs]
        library = _loaded(compiler.Compilation([p for p, _ in kernels], options, spec_sha256, warn, reuses=True))
        return with_axes(library, programs, [sizes for _, sizes in kernels])


def _loaded(compilation: compiler.Compilation) -> Any:
    wanted = Wanted(compilation)
    found = wanted.found()
    if found is not None and not compilation.options.verify:
        return wanted.under_own_names(found)
    made = wanted.built(found)
    library = made.runtime.load(made.artifact, made.manifest)
    if isinstance(library, Operator | Operators):
        library.says(made.source)
    else:
        library.source = made.source                        # an object of a plug-in's own
    if wanted.kept is not None:
        wanted.remember(Found(wanted.kept, made.artifact), library)
    return library


def built(compilation: compiler.Compilation) -> compiler.Built:
    """The library of a compilation. A known one serves only if it was made of the very same text, names included."""
    wanted = Wanted(compilation)
    found = wanted.found(exactly=True)
    if found is None or compilation.options.verify:
        return wanted.built(found)
    return compiler.Built(compilation.ops, (), found.kept.source, wanted.manifest_of(found), found.artifact,
                          compiler.record_in(found.artifact.parent), compilation.runtime, True)


class Wanted:
    """A library that is wanted, and the key of its kernel. Without a key it is built as if no kernel were known."""

    def __init__(self, compilation: compiler.Compilation):
        self.compilation, self.programs, self.options = compilation, compilation.programs, compilation.options
        self.runtime = compilation.runtime
        self.key: Key | None = key(self.programs, self.options, self.runtime)
        self.store = compiler.open_cache(self.options, self._hear_of_damage)
        self.kept: Kept | None = None                       # what was left for other processes

    def found(self, exactly: bool = False) -> Found | None:
        """The kernel of the key. `exactly`: made of the same text, names, places and all."""
        if self.key is None:
            return None
        exports([p.name for p in self.programs], [p.place() for p in self.programs])     # which a build refuses, too
        found = LOADED.get(self.store.directory, self.key.name) or known_kernels.find(self.store, self.key,
                                                                                      self.compilation.warn)
        if found is None or not exactly or (found.kept.spelled == self.key.spelled and not found.kept.reuses):
            return found
        return known_kernels.find(self.store, _exact(self.key), self.compilation.warn)

    def _hear_of_damage(self, warning: Diagnostic) -> None:
        """That there is no cache is said by the build that takes so long for it."""
        if warning.code == DAMAGED:
            self.compilation.warn(warning)

    def built(self, known: Found | None) -> compiler.Built:
        """Build the library, and keep it unless there were warnings: the next build is to give them again. With
        --verify it is only compared with the known one."""
        made = self.compilation.artifact()
        warnings = [warning for warning in self.compilation.warnings if warning.code != DAMAGED]
        if self.key is None or warnings or made.artifact.parent.parent != self.store.directory:
            return made
        if self.options.verify:
            if known is not None:
                compare(known.kept, self.programs, self.options)
            return made
        self.kept = Kept(made.artifact.parent.name, made.artifact.name, made.manifest, made.source,
                         tuple([show(p) for p in self.programs]),
                         self.key.names, self.key.spelled, made.reuses)
        known_now = known_kernels.keep(self.store, self.key, self.kept)
        if known_now.spelled != self.key.spelled or (known_now.reuses and not self.kept.reuses):
            known_kernels.keep(self.store, _exact(self.key), self.kept)
        return made

    def manifest_of(self, found: Found) -> Manifest:
        """The manifest of a found kernel, with the hash of this spec."""
        return found.kept.manifest | {"spec_sha256": self.compilation.spec_sha256}

    def under_own_names(self, found: Found) -> Any:
        """What calls a kernel that is known, under the names of these programs."""
        assert self.key is not None
        known, own, manifest = found.kept, None, self.manifest_of(found)
        if self.key.spelled != known.spelled:
            manifest = under_names(manifest, self.programs, known.names, self.key.names)
            own = Own(self.programs, self.options, self.compilation.spec_sha256, manifest)
        if found.library is not None:
            loaded: Any = callables(under_manifest(found.library, manifest))
        else:
            loaded = self.runtime.load(found.artifact, manifest)
            self.remember(found, loaded)
        loaded.says(known.source, own)
        return loaded

    def remember(self, found: Found, loaded: Any) -> None:
        """Remember a library that this process has loaded."""
        if self.key is not None and finds_by_symbol(self.runtime):
            LOADED.put(self.store.directory, self.key.name, replace(found, library=library_of(loaded)))


def _exact(key: Key) -> Key:
    """The key of a kernel that is only found under the same names."""
    return replace(key, name=hashed(key.name, key.spelled))

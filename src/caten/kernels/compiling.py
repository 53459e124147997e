"""Operators to their library, by way of the kernels that are known: where one was built before, nothing is scheduled, rendered or compiled."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import attach, build, driver, loading
from ..collector import CollectingRarely
from ..core.program import Program
from ..core.text import show
from ..errors import Diagnostic
from ..frontend.spec import SpecText
from ..options import Options
from ..render.names import exports
from ..runtime.cache import key as hashed
from ..runtime.call import Callable, Operators, callables, library_of
from ..runtime.manifest import Manifest
from . import kept
from .comparing import compare
from .kept import LOADED, Found, Kept
from .key import Key, finds_by_symbol, key
from .renaming import Own, under_manifest, under_names

DAMAGED = "E651"                                            # a warning that is given once: what was damaged is made again


def compiled(sources: Sequence[SpecText], options: Options, warn: build.Warn = driver.ignore) -> Any:
    """What calls the operators of specs. A library that was made under other names will do."""
    with CollectingRarely():
        wanted = Wanted(loading.loaded(sources, options), options, loading.digest(sources), warn)
        found = wanted.found()
        if found is not None and not options.verify:
            return wanted.under_own_names(found)
        made = wanted.built(found)
    loaded = made.runtime.load(made.artifact, made.manifest)
    if isinstance(loaded, Callable | Operators):
        loaded.says(made.source)
    else:
        loaded.source = made.source                         # what a runtime of someone else's gives
    if wanted.kept is not None:
        wanted.remember(Found(wanted.kept, made.artifact), loaded)
    return loaded


def built(programs: Sequence[Program], options: Options, spec_sha256: str, warn: build.Warn = driver.ignore) -> build.Built:
    """The library of operators for what runs it and speaks of it in its own words: one that was made of the very same text."""
    wanted = Wanted(programs, options, spec_sha256, warn)
    found = wanted.found(exactly=True)
    if found is None or options.verify:
        return wanted.built(found)
    return build.Built(wanted.ops, (), found.kept.source, wanted.manifest_of(found), found.artifact, build.record_in(found.artifact.parent),
                       wanted.runtime, True)


class Wanted:
    """Operators that are to be compiled, and the key of their kernel; without a key they are built as if nothing were known."""

    def __init__(self, programs: Sequence[Program], options: Options, spec_sha256: str, warn: build.Warn):
        self.programs, self.options, self.spec_sha256, self.warn = programs, options, spec_sha256, warn
        self.ops = build.written(programs)
        self.runtime = attach.runtime_for(programs, options)
        self.key: Key | None = key(programs, options, self.runtime)
        self.store = build.open_cache(options, self._hear_of_damage)
        self.kept: Kept | None = None                       # what was left for other processes

    def found(self, exactly: bool = False) -> Found | None:
        """The kernel of the key. `exactly`: made of the same text, names, places and all."""
        if self.key is None:
            return None
        exports([p.name for p in self.programs], [p.place() for p in self.programs])     # which a build refuses, too
        found = LOADED.get(self.store.directory, self.key.name) or kept.find(self.store, self.key, self.warn)
        if found is None or not exactly or found.kept.spelled == self.key.spelled:
            return found
        return kept.find(self.store, _exact(self.key), self.warn)

    def _hear_of_damage(self, warning: Diagnostic) -> None:
        """That there is no cache is said by the build that takes so long for it."""
        if warning.code == DAMAGED:
            self.warn(warning)

    def built(self, known: Found | None) -> build.Built:
        """Built, and kept unless there was something to warn of, which the next build is to say again. With --verify it is only compared with what is
        known."""
        told: list[Diagnostic] = []

        def hear(warning: Diagnostic) -> None:
            told.extend([warning] if warning.code != DAMAGED else [])
            self.warn(warning)
        made = build.build_loaded(self.programs, self.options, self.spec_sha256, hear)
        if self.key is None or told or made.artifact.parent.parent != self.store.directory:
            return made
        if self.options.verify:
            if known is not None:
                compare(known.kept, self.programs, self.options)
            return made
        self.kept = Kept(made.artifact.parent.name, made.artifact.name, made.manifest, made.source, tuple([show(p) for p in self.programs]),
                         self.key.names, self.key.spelled)
        if kept.keep(self.store, self.key, self.kept).spelled != self.key.spelled:
            kept.keep(self.store, _exact(self.key), self.kept)
        return made

    def manifest_of(self, found: Found) -> Manifest:
        """The manifest of a kernel that was made of the same text, or of one that differs from it in what is no part of the operators."""
        return found.kept.manifest | {"spec_sha256": self.spec_sha256}

    def under_own_names(self, found: Found) -> Any:
        """What calls a kernel that is known, under the names of these programs."""
        assert self.key is not None
        known, own, manifest = found.kept, None, self.manifest_of(found)
        if self.key.spelled != known.spelled:
            manifest = under_names(manifest, self.programs, known.names, self.key.names)
            own = Own(self.programs, self.options, self.spec_sha256, manifest)
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

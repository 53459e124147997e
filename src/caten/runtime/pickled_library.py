"""A pickled library: its path, its bytes for a process without that file, and its manifest."""
from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ..errors import CatenError, Diagnostic, error
from ..frozen import frozen
from ..options import environment
from . import discover
from .library import Library, sha256
from .library_cache import Cache, default_directory
from .manifest import Manifest

_opened: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()      # what a process has loaded already
_lock = threading.Lock()


@frozen
class PickledLibrary:
    """`path`: absolute; `content`: the bytes of the file; `manifest`: with the names for calls."""

    path: str
    content: bytes
    manifest: Manifest

    def loaded(self) -> Any:
        """The operators of the library, loaded by its runtime: from its path where that file is still the same, else
        from a copy in this process's cache. CatenError E602 where the runtime is not installed, E66x and E717 where the
        library cannot be loaded here."""
        digest = hashlib.sha256(self.content).hexdigest()
        name = digest, json.dumps(self.manifest, sort_keys=True)
        with _lock:
            if (found := _opened.get(name)) is None:
                runtime = discover.find(self.manifest["runtime"], environment()["runtime_path"])
                found = _opened[name] = runtime.load(self._file(digest), self.manifest)
            return found

    def _file(self, digest: str) -> Path:
        path = Path(self.path)
        try:
            if sha256(path) == digest:
                return path
        except OSError:
            pass
        store = Cache(default_directory(environment()["cache_dir"]), _unheard)
        return store.fetch(digest, lambda folder: _write(folder / path.name, self.content)) / path.name


def pickled(library: Library) -> PickledLibrary:
    """What is pickled of a loaded library. CatenError E661 where its file is gone."""
    try:
        return PickledLibrary(os.path.abspath(library.path), library.path.read_bytes(), dict(library.manifest))
    except OSError as problem:
        raise error("E661", f"cannot pickle the operators of {library.path}: the file cannot be read: "
                            f"{problem.strerror}",
                    hint="compile the spec again") from None


def restored(library: PickledLibrary, name: str, says: tuple[str, Any]) -> Any:
    """The operator of a pickled library that has this name, or all of them where it is empty. `says`: its source, and
    the text under its own names where those differ from the library's."""
    try:
        found = library.loaded()
    except CatenError as problem:
        raise problem.shortened() from None
    return found.copied(name, *says)


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _unheard(warning: Diagnostic) -> None:
    """A cache that cannot be used costs time alone, and nobody here can say it to the user."""

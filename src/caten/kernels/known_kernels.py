"""Known kernels: those that this process has loaded, and entries of the cache for other processes."""
from __future__ import annotations

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import documents
from ..errors import Diagnostic
from ..frozen import frozen
from ..runtime.library import Library
from ..runtime.library_cache import KERNELS, Cache
from ..runtime.manifest import Manifest
from .kernel_key import Key

FILE = "kernel.json"                       # in an entry of the folder
# Libraries that a process remembers; those that are in use stay loaded anyway.
MOST_LOADED = 256
MOST_BYTES = 64 << 20                      # of the folder
_WORDS = {"type": "array", "items": {"type": "string"}}
SCHEMA: dict[str, Any] = {
    "type": "object", "required": ["entry", "file", "manifest", "source", "spelled", "names", "texts"],
    "properties": {"entry": {"type": "string"}, "file": {"type": "string"}, "manifest": {"type": "object"},
                   "source": {"type": "string"},
                   "spelled": {"type": "string"}, "names": {"type": "array", "items": _WORDS}, "texts": _WORDS,
                   "reuses": {"type": "boolean"}}}


@frozen
class Kept:
    """A kernel as it was built: the cache's entry and the file in it that holds the library, its manifest and source,
    the operators as texts of the op level, and of its key the names and the hash of all words. `reuses`: it may have
    object files of other libraries."""

    entry: str
    file: str
    manifest: Manifest
    source: str
    texts: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    spelled: str
    reuses: bool = False


@frozen
class Found:
    """A kernel that is known, and where its library is; `library`: loaded, where this process has it."""

    kept: Kept
    artifact: Path
    library: Library | None = None


class Loaded:
    """The loaded libraries, by cache folder and key; the least recently used go first. Thread-safe."""

    def __init__(self, most: int = MOST_LOADED):
        self._most = most
        self._found: OrderedDict[tuple[Path | None, str], Found] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, folder: Path | None, name: str) -> Found | None:
        with self._lock:
            found = self._found.get((folder, name))
            if found is not None:
                self._found.move_to_end((folder, name))
            return found

    def put(self, folder: Path | None, name: str, found: Found) -> None:
        with self._lock:
            self._found[folder, name] = found
            self._found.move_to_end((folder, name))
            while len(self._found) > self._most:
                self._found.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them, as a new process."""
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        return len(self._found)


LOADED = Loaded()


def find(store: Cache, key: Key, warn: Callable[[Diagnostic], None]) -> Found | None:
    """The kernel of a key, as a process before this one left it; None too where its library is gone from the cache."""
    folder = _folder(store, warn) if key.keeps else None
    entry = folder.find(key.name) if folder is not None else None
    if folder is None or entry is None or (kept := _read(entry)) is None:
        return None
    library = store.find(kept.entry)
    if library is None or not (library / kept.file).is_file():
        folder.forget(key.name)
        return None
    return Found(kept, library / kept.file)


def keep(store: Cache, key: Key, kept: Kept) -> Kept:
    """Leave a kernel for other processes; the one that is there now, which another process may have left."""
    folder = _folder(store, lambda _: None) if key.keeps else None
    if folder is not None:
        with contextlib.suppress(OSError):                 # the kernel is built all the same
            return _read(folder.fetch(key.name, lambda work: _write(work / FILE, kept))) or kept
    return kept


def _read(entry: Path) -> Kept | None:
    try:
        held = documents.read(entry / FILE, SCHEMA)
    # Another process has just removed it; it is larger than what is read.
    except (OSError, ValueError):
        return None
    return Kept(**held | {"texts": tuple(held["texts"]), "names": tuple([tuple(n) for n in held["names"]])})


def _write(file: Path, kept: Kept) -> None:
    file.write_text(json.dumps(asdict(kept)), "utf-8")


def _folder(store: Cache, warn: Callable[[Diagnostic], None]) -> Cache | None:
    return None if store.directory is None else Cache(store.directory / KERNELS, warn, MOST_BYTES)

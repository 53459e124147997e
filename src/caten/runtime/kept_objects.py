"""Python objects in the cache, for other processes: what takes longer to make than to read."""
from __future__ import annotations

import pickle
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from . import own_code
from .library_cache import Cache, key

FILE = "object.pickle"                      # in an entry of the folder


class KeptObjects:
    """A folder of objects, each found by what determines it beside caten's own code."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._cache = Cache(folder, lambda warning: None, most_bytes)

    def find(self, *what: str) -> Any:
        """The object; None where there is none."""
        entry = self._cache.find(self._name(what))
        if entry is not None:
            # The folder is trusted as far as that of libraries is. Another process may have just removed the entry;
            # whatever else keeps it from being read, it is made again.
            with suppress(Exception):
                return pickle.loads((entry / FILE).read_bytes())
        return None

    def keep(self, made: object, *what: str) -> None:
        """Keep an object, if there is room."""
        with suppress(OSError):
            self._cache.fetch(self._name(what), partial(_write, made))

    def _name(self, what: tuple[str, ...]) -> str:
        return key("object", *what, own_code.identity())


def folder_of(directory: Path | None, name: str, most_bytes: int) -> KeptObjects | None:
    """The objects in a folder of a cache; None without a cache, and if caten was changed since it was imported."""
    return KeptObjects(directory / name, most_bytes) if directory is not None and own_code.is_current() else None


def _write(made: object, work: Path) -> None:
    (work / FILE).write_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))

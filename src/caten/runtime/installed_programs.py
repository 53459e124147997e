"""Which programs are installed. A search of $PATH takes milliseconds, so a process keeps the result."""
from __future__ import annotations

import os
import shutil
from functools import lru_cache


def installed(names: tuple[str, ...], path: str | None) -> tuple[str, ...]:
    """The files with these names on a path (None: $PATH); searched again after a folder has changed."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return _found(names, path, (os.getcwd(), *folders), tuple([_changed(folder) for folder in folders]))


@lru_cache(8)
def _found(names: tuple[str, ...], path: str | None, _folders: tuple[str, ...], _when: tuple[int, ...]) -> tuple[str,
                                                                                                                 ...]:
    return tuple([found for name in names if (found := shutil.which(name, path=path)) is not None])


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0

"""What caten's own code is, for everything in the cache that would be another one with other code."""
from __future__ import annotations

import os
import sys
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from . import discover
from .library_cache import file_identity

PACKAGE = Path(__file__).resolve().parents[1]
_imported = time.time()


@cache
def identity() -> str:
    """Python, islpy, and the files of caten by name, size and modification time."""
    solver = find_spec("islpy")
    return "\n".join([sys.version, file_identity(solver.origin) if solver and solver.origin else "",
                      *[f"{p} {s} {t}" for p, s, t in _files()]])


def is_current() -> bool:
    """Is caten's code as this process imported it?"""
    return _changed() < _imported


@cache
def _changed() -> float:
    """The latest modification time of caten's code. This process may have imported an earlier state."""
    return max([changed for _, _, changed in _files()]) / 1e9


@cache
def _files() -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    folders = [str(PACKAGE), str(discover.builtin_folder())]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders += [entry.path] if entry.name not in ("__pycache__", "explanations") else []
                else:
                    stat = entry.stat()
                    found.append((entry.path, stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(found))

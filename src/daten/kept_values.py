"""Operators of the library, and graphs of them, as values that the cache keeps for other processes: they are the same
for as long as caten is, and to read and raise the specs of a small network takes longer than all else in a process
whose kernels are there."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from caten.attach import target_of
from caten.runtime.kept_objects import KeptObjects, folder_of
from caten.runtime.library_cache import VALUES, default_directory, file_identity

from .settings import forgotten_by_use, options

T = TypeVar("T")
MOST_BYTES = 32 << 20                       # of the folder


def kept(what: tuple[str, ...], make: Callable[[], T]) -> T:
    """What `make` makes, or what another process made of it; `what` determines it, with caten and the options."""
    folder = _folder()
    if folder is None:
        return make()
    found: T | None = folder.find(*what, *_circumstances())
    if found is not None:
        return found
    made = make()
    folder.keep(made, *what, *_circumstances())
    return made


@cache
def _folder() -> KeptObjects | None:
    """Where they are; None where the options or changes of caten since it was imported forbid it."""
    if not options().use_cache or options().include_dirs:
        return None
    return folder_of(default_directory(options().cache_dir), VALUES, MOST_BYTES)


@cache
def _circumstances() -> tuple[str, ...]:
    own = sorted(Path(__file__).parent.glob("*.py"))         # which have the classes of what is kept, and make graphs
    return *map(file_identity, own), repr(target_of(options())), repr(options())


forgotten_by_use(_folder.cache_clear)
forgotten_by_use(_circumstances.cache_clear)

"""Operators of the library as values, kept in the cache for other processes: they are the same for as long as caten
is, and to read and raise the specs of a small network takes longer than all else in a process whose kernels are
there."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from caten.attach import target_of
from caten.kernels.kernel_key import caten, is_current
from caten.runtime.library_cache import VALUES, Cache, default_directory, file_identity, key

from .settings import forgotten_by_use, options

T = TypeVar("T")
FILE = "values.pickle"                      # in an entry of the folder
MOST_BYTES = 32 << 20                       # of the folder


def kept(what: tuple[str, ...], make: Callable[[], T]) -> T:
    """What `make` makes, or what another process made of it; `what` determines it, with caten and the options."""
    folder = _folder()
    if folder is None:
        return make()
    name = key("values", *what, *_circumstances())
    entry = folder.find(name)
    if entry is not None:
        # The folder is trusted as far as that of libraries is, and what is damaged is not found.
        with suppress(OSError):                            # another process has just removed it
            found: T = pickle.loads((entry / FILE).read_bytes())
            return found
    made = make()
    with suppress(OSError):
        folder.fetch(name, partial(_write, made))
    return made


def _write(made: object, work: Path) -> None:
    (work / FILE).write_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))


@cache
def _folder() -> Cache | None:
    """Where they are; None where the options or changes of caten since it was imported forbid it."""
    if not options().use_cache or options().include_dirs or not is_current():
        return None
    return Cache(default_directory(options().cache_dir) / VALUES, lambda warning: None, MOST_BYTES)


@cache
def _circumstances() -> tuple[str, ...]:
    own = Path(__file__).with_name("templates.py")         # which has classes of what is kept
    return caten(), file_identity(own), repr(target_of(options())), repr(options())


forgotten_by_use(_folder.cache_clear)
forgotten_by_use(_circumstances.cache_clear)

"""The clang inside the ziglang wheel: where it is, which version, and where it keeps what it builds for itself.

It comes without a compiled library of its own, builds one when it first links with it for a target (seconds; a minute
where that is a whole C library), and ends with an error where it has no place to keep that. So it is always given one:
a folder in caten's cache, or a temporary folder. A shared library for this machine is linked without it, if it can
be."""
from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import notices
from .library_cache import COMPILER, obstacle
from .protocol import Host

# The clang inside each version of the wheel.
LLVM = {"0.13": 18, "0.14": 19, "0.15": 20, "0.16": 21, "0.17": 22}
OWN_LIBRARY, LOCAL = "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"
# Bytes that the library of a target may take; a disk with less is not begun on.
LEAST_FREE = 128 << 20
# Linking without the functions that it has for compilers (128-bit arithmetic, complex products, half floats): few
# libraries call one, and it would compile them all first. That one is missing is an error then.
WITHOUT_HELPERS = ["-rtlib=none", "-Wl,-z,defs"]
SLOW = 1.0                                         # seconds; linking takes less unless it builds its own library first
FIRST_USE = ("the embedded clang builds its C library, once for each target: this takes 5 to 20 s (RISC-V: a minute), "
             "and later compilations less than a second")
_folders: dict[Path | None, Path] = {}              # $TMPDIR -> the temporary folder of this process there


def executable() -> Path | None:
    """The program in the wheel; None where the wheel is not installed."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / ("zig.exe" if sys.platform == "win32" else "zig")
        if file.is_file():
            return file
    return None


def llvm_version(file: Path) -> int:
    """The LLVM version of the wheel, from its metadata folder's name: importlib.metadata is slow to import."""
    found = [folder.name.split("-")[1] for folder in sorted(file.parents[1].glob("ziglang-*.dist-info"))]
    return LLVM.get(".".join(found[0].split(".")[:2]), max(LLVM.values())) if found else 0


def surroundings(host: Host, work: Path) -> dict[str, str]:
    """The variables that tell it its folders. What belongs to one compilation goes into the folder `work`, and with it.
    A folder that the user named for its library stays. OSError where there is no place at all."""
    own = {} if os.environ.get(OWN_LIBRARY) else {OWN_LIBRARY: str(_kept(host.cache) or _temporary(host.temp))}
    return own | {LOCAL: str(work / "zig")}


def links_without_helpers(words: Sequence[str]) -> bool:
    """Is it worth trying to link without its own library: a shared library for this machine?"""
    return sys.platform == "linux" and "-shared" in words and "-target" not in words


@contextmanager
def announced_first_use() -> Iterator[None]:
    """Around linking: a notice where it is so slow that it must be building its own library."""
    timer = threading.Timer(SLOW, lambda: notices.tell(FIRST_USE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kept(cache: Path | None) -> Path | None:
    """The folder in caten's cache; None where there is no cache, or nothing can be written to it."""
    if cache is None or obstacle(cache) is not None:
        return None
    folder = cache / COMPILER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if obstacle(folder) is not None or (not any(folder.iterdir()) and shutil.disk_usage(folder).free < LEAST_FREE):
            return None
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 16))
    except OSError:
        return None
    return folder


def _temporary(temp: Path | None) -> Path:
    """A folder for as long as this process runs."""
    if temp not in _folders or not _folders[temp].is_dir():
        folder, owner = Path(tempfile.mkdtemp(prefix="caten-zig-", dir=temp)), os.getpid()

        def remove() -> None:
            if os.getpid() == owner:                     # a forked process has it from its parent
                shutil.rmtree(folder, ignore_errors=True)
        atexit.register(remove)
        _folders[temp] = folder
    return _folders[temp]

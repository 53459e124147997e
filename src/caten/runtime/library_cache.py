"""The cache of compiled libraries: a folder of entries, each named by the hash of everything that it was made from.

An entry is a folder that is filled under a temporary name and renamed, so it is there as a whole or not at all, whoever
is killed when. It carries the hashes of its files, which are compared before use. Nothing is ever locked: two processes
that make the same entry at once both succeed, and the first one's is kept. A cache that cannot be used costs time,
never the result: `warn` hears of it."""
from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .. import documents
from ..errors import Diagnostic
from ..frozen import frozen

FORMAT = 1                                 # version of the folder's layout, part of every key
HASHES = "sha256.json"                     # in an entry: file name -> hash
COMPILER = "compiler"                      # the folder of what a compiler builds for itself
PROBES = "probes"                          # the folder of what compilers were found to do
# The folder of entries that say which library an operator has, by its structure.
KERNELS = "kernels"
VALUES = "values"                          # the folder of operators of the library as values
PLANS = "plans"                            # the folder of loop nests that were planned
OBJECTS = "objects"                        # the folder of kernels as object files
GREATEST_BYTES = 1 << 30                   # of all entries together
# An entry that was used so recently is not evicted: its user may be about to load it.
SPARED_SECONDS = 60
ABANDONED_SECONDS = 3600                   # a temporary folder this old belongs to a process that was killed
LEAST_FREE = 1 << 20                       # a disk with less free space counts as full
MAKE_ROOM = "make room, or name another folder with CATEN_CACHE_DIR"
SWEPT = "swept"                            # the file that is touched when entries are evicted
SWEPT_SECONDS = 600                        # to look at all entries takes long where there are many: not more often …
SWEPT_SHARE = 64                           # … unless a process adds this share of the bound by itself
MOST_FAILED = 20                           # kept sources of failed compilations

Warn = Callable[[Diagnostic], None]
_ADDED: dict[Path, int] = {}               # bytes that this process added to a folder since it was swept


@frozen
class Stats:
    """What is in a cache."""

    directory: Path
    entries: int
    bytes: int
    failed: int


def key(*parts: str | bytes) -> str:
    """The name of an entry: a hash of source, flags, compiler, runtime, CPU, all that its content depends on."""
    digest = hashlib.sha256(f"caten {FORMAT}".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"|{len(data)}|".encode() + data)
    return digest.hexdigest()


def file_identity(path: Path | str) -> str:
    """What stands for the content of a tool without reading it: real path, size, time of the last change."""
    real = os.path.realpath(path)
    found = os.stat(real)
    return f"{real} {found.st_size} {found.st_mtime_ns}"


def default_directory(chosen: str | None = None) -> Path:
    """The folder of the cache: the chosen one, else where this platform keeps a user's caches, or below the temporary
    folder for a user without a home, as one whom the system does not know by name has none."""
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path
    try:
        return user_cache_path("caten", appauthor=False)
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"caten-{os.getuid()}"


def obstacle(directory: Path) -> str | None:
    """Why a folder may not hold code to execute; None if it may. Creates a missing folder."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = os.lstat(directory)
    except OSError as problem:
        return f"it cannot be made: {problem.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write to it"
    return None


class Cache:
    """Entries below one folder; `None` as the folder is no cache at all, as --no-cache wants it."""

    def __init__(self, directory: Path | None, warn: Warn, greatest_bytes: int = GREATEST_BYTES):
        self.directory, self._warn, self._greatest = directory, warn, greatest_bytes
        if directory is not None and (reason := obstacle(directory)) is not None:
            self._trouble(f"the cache folder {directory} is not used: {reason}",
                          "name a private folder with CATEN_CACHE_DIR")

    def fetch(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder of the entry `name`, whose files are whole; `make` fills a new folder where there is none. What
        `make` raises is passed on.

        Without a usable cache the folder lives as long as this process."""
        if (found := self.find(name)) is not None:
            return found
        work = self._temporary()
        try:
            make(work)
        except BaseException as problem:
            shutil.rmtree(work, ignore_errors=True)
            if self.directory is None or not _is_full(self.directory, problem):
                raise
            self._trouble(f"the cache folder {self.directory} is not used: no space is left", MAKE_ROOM)
            make(work := self._temporary())
        return self._keep(work, name)

    def find(self, name: str) -> Path | None:
        """The folder of an entry whose files carry their hashes; None, and the entry removed, where it is damaged."""
        if self.directory is None:
            return None
        entry = self.directory / name
        # Another process may make it between the two questions.
        for _ in range(2):
            if _is_whole(entry):
                with contextlib.suppress(OSError):
                    # The least recently used entry goes first.
                    os.utime(entry)
                return entry
            if not entry.exists():
                return None
        self._warn(Diagnostic("E651", f"the cache entry {entry} is damaged and is made again", severity="warning"))
        self._remove(entry)
        return None

    def forget(self, name: str) -> None:
        """Remove an entry, if it is there."""
        if self.directory is not None:
            self._remove(self.directory / name)

    def keep_failed(self, name: str, files: Mapping[str, str]) -> Path:
        """Keep the source (and whatever else explains it) of a compilation that failed; the folder that holds it."""
        target = None if self.directory is None else self.directory / "failed" / name[:16]
        try:
            if target is None:
                raise OSError
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(target, files)
            kept = sorted(target.parent.iterdir(), key=_used)
            for old in kept[:-MOST_FAILED]:
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            target = Path(tempfile.mkdtemp(prefix="caten-failed-"))
            _write(target, files)
        return target

    def stats(self) -> Stats:
        """What there is."""
        def files(folder: str) -> list[Path]:
            known = self.directory is not None and (self.directory / folder).is_dir()
            return list((self.directory / folder).iterdir()) if self.directory is not None and known else []
        entries = list(self._entries())
        size = sum([_bytes(e) for e in (*entries, *files(KERNELS), *files(PLANS))])
        return Stats(self.directory or Path(), len(entries), size, len(files("failed")))

    def clean(self) -> Stats:
        """Remove everything; what was there."""
        before = self.stats()
        if self.directory is not None:
            for child in list(self.directory.iterdir()):
                if child.name in ("failed", COMPILER, PROBES, KERNELS, OBJECTS, PLANS, VALUES,
                                  SWEPT) or _is_entry(child.name) or child.name.startswith("tmp-"):
                    self._remove(child)
        return before

    # ---- inside

    def _trouble(self, message: str, hint: str) -> None:
        self._warn(Diagnostic("E650", message, hint=hint, severity="warning"))
        self.directory = None

    def _temporary(self) -> Path:
        if self.directory is not None:
            try:
                return Path(tempfile.mkdtemp(prefix="tmp-", dir=self.directory))
            except OSError as problem:
                self._trouble(f"the cache folder {self.directory} is not used: {problem.strerror}", MAKE_ROOM)
        folder = Path(tempfile.mkdtemp(prefix="caten-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _keep(self, work: Path, name: str) -> Path:
        """Turn a filled folder into the entry `name`."""
        if self.directory is None or work.parent != self.directory:
            return work
        entry = self.directory / name
        try:
            _write(work, {HASHES: json.dumps({p.name: _hash(p) for p in sorted(work.iterdir())})})
            try:
                os.rename(work, entry)
            except OSError:                                                  # another process was faster
                if (theirs := self.find(name)) is not None:
                    shutil.rmtree(work, ignore_errors=True)
                    return theirs
                os.rename(work, entry)                                       # theirs was damaged, and is gone now
        except OSError as problem:
            self._trouble(f"cannot write to the cache folder {self.directory}: {problem.strerror}", MAKE_ROOM)
            atexit.register(shutil.rmtree, work, ignore_errors=True)
            return work
        _ADDED[self.directory] = _ADDED.get(self.directory, 0) + _bytes(entry)
        if self._is_to_be_swept():
            self._evict(entry)
        return entry

    def _is_to_be_swept(self) -> bool:
        """Is it time to look at all entries? The file of the last time is touched."""
        assert self.directory is not None
        stamp = self.directory / SWEPT
        few = _ADDED[self.directory] <= self._greatest / SWEPT_SHARE
        if few and time.time() - _used(stamp) < SWEPT_SECONDS:
            return False
        _ADDED[self.directory] = 0
        with contextlib.suppress(OSError):
            stamp.touch()
        return True

    def _evict(self, newest: Path) -> None:
        """Remove the least recently used entries beyond the bound, and files of killed processes."""
        if self.directory is None:
            return
        now = time.time()
        with contextlib.suppress(OSError):
            for child in self.directory.glob("tmp-*"):
                if now - _used(child) > ABANDONED_SECONDS:
                    self._remove(child)
            entries = sorted(self._entries(), key=_used)
            total = sum([_bytes(e) for e in entries])
            for entry in entries:
                if total <= self._greatest:
                    break
                if entry != newest and now - _used(entry) > SPARED_SECONDS:
                    total -= _bytes(entry)
                    self._remove(entry)

    def _entries(self) -> Iterator[Path]:
        if self.directory is not None and self.directory.is_dir():
            yield from sorted([p for p in self.directory.iterdir() if _is_entry(p.name)])

    def _remove(self, entry: Path) -> None:
        """Take a folder away at once, then delete it, so that nobody meets half of it."""
        grave = None
        try:
            grave = Path(tempfile.mkdtemp(prefix="tmp-", dir=entry.parent))
            os.rename(entry, grave / "entry")
        # Another process was faster, or there is no space for a folder.
        except OSError:
            shutil.rmtree(entry, ignore_errors=True)
        if grave is not None:
            shutil.rmtree(grave, ignore_errors=True)


def _is_whole(entry: Path) -> bool:
    """Does an entry hold exactly the files that it should, with their hashes?"""
    try:
        expected = documents.read(entry / HASHES, {"type": "object"})
        names = sorted([p.name for p in entry.iterdir() if p.name != HASHES])
        return sorted(expected) == names and all(_hash(entry / file) == expected[file] for file in expected)
    except (OSError, ValueError):
        return False


def _is_full(directory: Path, problem: BaseException) -> bool:
    """Did something fail because the disk is full? (A compiler that meets a full disk only says that it failed.)"""
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return True
    try:
        return isinstance(problem, Exception) and shutil.disk_usage(directory).free < LEAST_FREE
    except OSError:
        return False


def _is_entry(name: str) -> bool:
    return len(name) == 64 and all(c in "0123456789abcdef" for c in name)


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _bytes(entry: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for path in entry.iterdir():
            with contextlib.suppress(OSError):
                total += path.lstat().st_size
    return total

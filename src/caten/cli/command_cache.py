"""Cache of whole builds: an equal command line on equal files gets its products without running a stage.

The key covers everything that a build can depend on: the options, the content of its inputs, this installation of
caten, the runtime file, the processor's features, the folders where a compiler or a library can be added or replaced,
the libraries of -l, and at -O3 the records of caten tune. The products are in the cache with the libraries, protected
by hashes too. This module imports no stage, because that takes longer than a build from the cache.
"""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import documents
from ..options import Options
from ..runtime import library_cache
from ..runtime.linked_libraries import library_identities, system_folders
from .atomic_files import STDOUT
from .shared_options import Request

LISTING = "products.json"
SCHEMA: dict[str, Any] = {
    "type": "object", "required": ["products", "dependencies"],
    "properties": {
        "products": {"type": "array", "items": {
            "type": "object", "required": ["file", "path", "mode"],
            "properties": {"file": {"type": "string", "pattern": "^[0-9]+$"}, "path": {"type": "string"},
                           "mode": {"type": "integer"}}}},
        "dependencies": {"type": "object", "additionalProperties": {"type": "string"}}}}
PACKAGE = Path(__file__).resolve().parent.parent


class Remembered:
    """One command line, with the products of its last run if they are in the cache."""

    def __init__(self, request: Request):
        self.request = request
        folder = library_cache.default_directory(request.options.cache_dir) if request.options.use_cache else None
        self.store = library_cache.Cache(folder, lambda warning: None)
        self.name = self._name() if self.applies() else None

    def applies(self) -> bool:
        """Is it a plain build of files, without stdin, --test, --print, -v, -### and --debug?"""
        r = self.request
        plain = r.test is None and r.depfile is None and r.options.debug == 0 and not (r.verbose or r.dry_run
                                                                                       or r.prints)
        return plain and r.options.use_cache and bool(r.inputs) and all(name != STDOUT and os.path.isfile(name)
                                                                        for name in r.inputs)

    def find(self) -> dict[str, tuple[bytes, int]] | None:
        """Path -> (content, mode) of every product; None if the build is not in the cache."""
        if self.name is None or (entry := self.store.find(self.name)) is None:
            return None
        try:
            listing = documents.read(entry / LISTING, SCHEMA)
        except documents.Malformed:
            listing = None
        if listing is None or any(_hash(path) != expected for path, expected in listing["dependencies"].items()):
            self.store.forget(self.name)
            return None
        return {row["path"]: ((entry / row["file"]).read_bytes(), row["mode"]) for row in listing["products"]}

    def keep(self, products: Mapping[str, tuple[bytes, int]], dependencies: Iterable[str]) -> None:
        """Store the products of these files, unless one of them went to stdout."""
        if self.name is None or self.store.directory is None or any(path == STDOUT for path in products):
            return

        def make(folder: Path) -> None:
            listing = []
            for n, (path, (content, mode)) in enumerate(products.items()):
                (folder / str(n)).write_bytes(content)
                listing.append({"file": str(n), "path": path, "mode": mode})
            (folder / LISTING).write_text(json.dumps({"products": listing,
                                                      "dependencies": {path: _hash(path) for path in dependencies}}))
        # a full disk only means that the next run builds again
        with contextlib.suppress(OSError):
            self.store.fetch(self.name, make)

    def _name(self) -> str:
        asked = {f.name: getattr(self.request, f.name) for f in dataclasses.fields(self.request)
                 if f.name not in ("options", "reporter")}
        options = {f.name: getattr(self.request.options, f.name) for f in dataclasses.fields(self.request.options)
                   if f.name != "given"}
        contents = [Path(name).read_bytes() for name in self.request.inputs]
        surroundings = _surroundings(self.request.options)
        return library_cache.key("command line", repr(asked), repr(options), os.getcwd(), surroundings,
                                 *self._records(),
                         *[f"{len(c)}" for c in contents], *contents)

    def _records(self) -> list[str]:
        """The tuning records in the cache, at -O3. Record files beside specs are among the dependencies."""
        if self.request.options.opt < 3 or self.store.directory is None:
            return []
        return [f"{path.name} {_hash(str(path))}" for path in sorted((self.store.directory / "records").glob("*.json"))]


def _hash(path: str) -> str:
    """The hash of a file's content; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _surroundings(options: Options) -> str:
    """Everything outside the command line and the inputs that a build depends on."""
    named = [word for text in (options.cc, *[value for key, value in options.config if key.upper() == "CC"]) if text
             for word in text.split()]
    compilers = [shutil.which(word) or word for word in named]
    installed = [p for p in sys.path if p.endswith("-packages")]               # where pip installs compilers
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *installed, *options.runtime_path, *system_folders()]
    files = [p for folder in (PACKAGE, PACKAGE / "_runtimes", PACKAGE.parent.parent / "runtimes")
             for p in sorted(folder.rglob("*.py"))]
    stamps = [f"{p} {_stamp(p)}"
              for p in [*map(Path, dict.fromkeys(folders)), *files, *map(Path, (options.runtime, *compilers))]]
    return "\n".join([sys.version, *stamps, *library_identities(options.ldflags), _processor()])


def _stamp(path: Path) -> str:
    """Size and modification time: for a folder they change when an entry is added, removed or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_size} {found.st_mtime_ns}"


def _processor() -> str:
    """Model name and features of the first processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            first = text.read().split("\n\n", 1)[0].splitlines()
    except OSError:
        return ""
    return "\n".join([line for line in first if line.startswith(("model name", "flags", "Features"))])

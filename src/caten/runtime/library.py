"""Load a compiled library: check the file and its hash, read its manifest, bind its functions.

A truncated shared library kills the process that loads it, so the file is checked first.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import documents
from ..bindings.cpython import C_TYPES, attach_symbol
from ..errors import Diagnostic, ToolError, error
from ..frozen import frozen
from ..render.c_identifiers import PYTHON
from ..render.cpu_check import UNSUPPORTED_CPU
from .c_functions import CLibrary
from .manifest import Manifest, checked, known_version, operators
from .toolchain import openmp_library

# Path -> the identity of the file that this process has loaded under that path.
_opened: dict[str, tuple[int, ...]] = {}
# The OpenMP libraries whose threads end before a fork, by the address of the function that ends them.
_pausing: dict[int, CLibrary] = {}
_lock = threading.Lock()
_needed: list[Any] = []                           # the OpenMP libraries that were opened for others
OMP_PAUSE_SOFT = 1
OPENMP = ("libiomp5", "libomp", "libgomp")
OPENMP_HINT = ("install the OpenMP library: pip install cmeel-libomp (libomp) or intel-openmp (libiomp5), apt install "
               "libgomp1; or put it beside "
               "the file, or name its folder in LD_LIBRARY_PATH")


@frozen
class Entry:
    """The functions of one operator: `call` takes the C arguments, `check(n)` gives the text of failed check n;
    `direct`: the address of what Python may call itself (`direct`), if there is such a thing."""

    call: Callable[..., int]
    check: Callable[[int], str]
    direct: Any = None


@frozen
class Library:
    """A loaded library: its manifest, and by operator name its functions. `ffi` makes the pointers that they take;
    `attach` takes what their direct functions need of Python."""

    path: Path
    manifest: Manifest
    ffi: Any
    entries: Mapping[str, Entry]
    attach: Any = None


def sha256(path: Path) -> str:
    """The hash of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_whole(path: Path) -> None:
    """Raises E660 where the file is not a shared library or is truncated (checked for ELF alone)."""
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF":
                if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):       # Mach-O
                    return
                raise error("E660", f"{path} is not a shared library")
            if len(head) < 64 or head[4] != 2 or head[5] != 1:
                raise error("E660", f"{path} is not a 64-bit little-endian library, or ends within its header")
            segments, sections = struct.unpack_from("<QQ", head, 32)
            each, count, section_each, section_count = struct.unpack_from("<HHHH", head, 54)
            end = max(segments + each * count, sections + section_each * section_count)
            file.seek(segments)
            table = file.read(each * count)
    except OSError as problem:
        raise error("E661", f"cannot read {path}: {problem.strerror}") from None
    for at in range(0, len(table) - 55, each or 56):
        kind, = struct.unpack_from("<I", table, at)
        offset, = struct.unpack_from("<Q", table, at + 8)
        length, = struct.unpack_from("<Q", table, at + 32)
        end = max(end, offset + length if kind != 0x6474E551 else 0)             # PT_GNU_STACK has no content
    if len(table) < each * count or end > size:
        raise error("E660", f"{path} is incomplete: it should have {end} bytes and has {size}", hint="compile it again")


def open_library(path: Path, manifest: Mapping[str, Any] | None = None, expected_sha256: str | None = None) -> Library:
    """Load a library, with its own manifest unless one is given. `expected_sha256`: its hash, checked."""
    path = Path(os.path.abspath(path))
    check_whole(path)
    if expected_sha256 is not None and sha256(path) != expected_sha256:
        raise error("E662", f"{path} is not the file that was compiled: its hash differs", hint="compile it again")
    _check_sanitizer(path)
    made = _dlopen(path)
    if manifest is None:
        try:
            manifest = documents.parse(made.text("ct_manifest"), {"type": "object"})
        except AttributeError:
            raise error("E663", f"{path} holds no manifest",
                        hint="only libraries that caten compiled can be loaded") from None
        except ValueError as problem:
            raise error("E663", f"the manifest in {path} cannot be read: {problem}",
                        hint="compile the spec again") from None
        checked(manifest, path)
    known_version(manifest, path)
    _end_threads_before_forks(made)
    ops = operators(manifest)
    if any(word.startswith("ct_c") for op in ops for word in c_arguments(op)):
        made.with_structs()
    entries = {op["op"]: _entry(made, op, path) for op in ops}
    attach = _if_there(made, attach_symbol(ops), "void", ["void **"])
    library = Library(path, dict(manifest), made.ffi, entries, attach)
    _check_processor(library, _said(made, ops[0])(UNSUPPORTED_CPU))
    return library


def _check_sanitizer(path: Path) -> None:
    """E664 for a library with the address sanitizer in a process without: the sanitizer would end the process."""
    with contextlib.suppress(OSError):                       # that it cannot be read is said where it is opened
        if b"__asan_init" not in path.read_bytes() or "asan" in Path("/proc/self/maps").read_text("utf-8", "replace"):
            return
        raise error("E664", f"cannot load {path}: it was made with the address sanitizer, which must be in the "
                            f"process from its start",
                    hint='start it with LD_PRELOAD="$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0')


def _check_processor(library: Library, lacking: str) -> None:
    """E717 if this processor lacks a feature; `lacking` is the library's text for that."""
    if lacking:
        raise ToolError(Diagnostic("E717", f"cannot use {library.path} here: {lacking}",
                                   hint="compile it again on this machine, or with -march=x86-64 for all of its kind",
                                   notes=((f"it was compiled for {library.manifest['target']}", None),)))


def c_arguments(op: Mapping[str, Any]) -> list[str]:
    """The types of the arguments of an operator's function, with untyped pointers."""
    multiplied = {name for group in op.get("any_axes", {}).values() for name in group[1:]}      # by the caller
    return ["void *" if a["kind"] == "tensor" else C_TYPES[a["dtype"]]
            for a in op["arguments"] if a["name"] not in multiplied]


def _said(library: CLibrary, op: Mapping[str, Any]) -> Callable[[int], str]:
    """What the library says of a check; nothing where it does not know it."""
    check = library.function(op["symbols"]["check"], "const char *", ["int32_t"])
    return lambda row: library.ffi.string(found).decode() if (found := check(row)) else ""


def _entry(library: CLibrary, op: Mapping[str, Any], path: Path) -> Entry:
    name = op["symbols"]["call"]
    try:
        call, said = library.function(name, "int32_t", c_arguments(op)), _said(library, op)
    except AttributeError as missing:
        raise error("E663", f"{path} does not have what its manifest says: {missing}",
                    hint="compile it again") from None
    texts = {row["row"]: row["text"] for row in op["checks"]}

    def text(row: int) -> str:
        return str(texts[row]) if row in texts else said(row) or f"check {row}"
    return Entry(call, text, _if_there(library, name + PYTHON, "void"))


def _if_there(library: CLibrary, name: str, result: str, arguments: Sequence[str] = ()) -> Any:
    try:
        return library.function(name, result, arguments)
    except AttributeError:
        return None


def _end_threads_before_forks(library: CLibrary) -> None:
    """GNU OpenMP keeps a thread pool between parallel loops. A fork does not copy its threads, and the child would
    deadlock; so the pool ends before a fork, and the next loop starts it again."""
    pause = _if_there(library, "omp_pause_resource_all", "int", ["int"])
    if pause is None:                                 # a library without OpenMP
        return
    ffi = library.ffi
    address = int(ffi.cast("intptr_t", pause))
    with _lock:
        if address not in _pausing and hasattr(os, "register_at_fork"):
            _pausing[address] = library               # which stays loaded
            os.register_at_fork(before=lambda: pause(OMP_PAUSE_SOFT))


def _dlopen(path: Path) -> CLibrary:
    """dlopen, under another name for a replaced file: dlopen returns the loaded library for a known path."""
    with _lock:
        try:
            stat = path.stat()
            identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if _opened.setdefault(str(path), identity) == identity:
                return opened(path)
            folder = tempfile.mkdtemp(prefix="caten-")
            try:
                return opened(shutil.copy2(path, folder))
            finally:
                with contextlib.suppress(OSError):
                    shutil.rmtree(folder)
        except OSError as problem:
            openmp = any(name in str(problem) for name in OPENMP)
            raise error("E664", f"cannot load {path}: {problem}", hint=OPENMP_HINT if openmp else
                        "a library that it needs may be missing; the manifest's `libraries` lists them") from None


def opened(path: Path | str) -> CLibrary:
    """dlopen, and where the OpenMP library of the embedded clang is missing, once more after opening that of the Python
    wheel: a library has no rpath to it, and the dynamic loader accepts one that is already loaded."""
    try:
        return CLibrary(path)
    except OSError as problem:
        found = openmp_library(str(problem))
        if found is None:
            raise
        _needed.append(CLibrary(found))
        return CLibrary(path)

"""The kernels of a large library as object files in the cache: a library that differs in one kernel compiles that one,
and links the others."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from .. import cores
from ..render.compiled_parts import Kernel, divided, kernels_in, only
from . import own_code, toolchain
from .library_cache import OBJECTS, Cache, key
from .protocol import CompileRecord, Host
from .toolchain import Compiler

FILE = "library.o"                           # in the entry of each kernel in it
MOST_BYTES = 256 << 20                       # of the folder
# A function of a linked object file that no entry point needs is left out.
APART, SMALL = "-ffunction-sections", "-Wl,--gc-sections"


def serve(host: Host, link: Sequence[str]) -> bool:
    """May object files be kept? The linker flags are those of ELF, and -g refers to lines of one file."""
    return (host.reuses and host.cache is not None and host.parts > 1 and not host.debug
            and sys.platform == "linux" and "-shared" in link)


def compile_missing(compiler: Compiler, flags: Sequence[str], libraries: Sequence[str], text: str, out: Path,
                    host: Host, link: Sequence[str], identity: str) -> CompileRecord:
    """Compile a file in parts to a shared library, but take the kernels of which the cache has object files from there.
    `identity`: of the compiler and its flags. Raises as `toolchain.compile_c`."""
    assert host.cache is not None
    cache = Cache(host.cache / OBJECTS, lambda warning: None, MOST_BYTES)
    kernels = list({k.key: k for k in kernels_in(text)}.values())
    names = {k.key: key("kernel", k.key, identity, own_code.identity()) for k in kernels}
    known = {k.key: content for k in kernels if (content := _content(cache.find(names[k.key]))) is not None}
    bundles = _bundles([k for k in kernels if k.key not in known])
    with toolchain.temporary(host) as folder:
        made = []
        for n, content in enumerate(dict.fromkeys(known.values())):
            made.append(f"known{n}.o")
            (folder / made[-1]).write_bytes(content)
        units = [only(text, (), True), *[only(text, bundle, False) for bundle in bundles]]
        steps = []
        for n, unit in enumerate(units):
            source, file = f"library{n}.c", f"library{n}.o"
            (folder / source).write_text(unit, "utf-8")
            steps.append([*compiler.words, *flags, APART, "-c", source, "-o", file])
            made.append(file)
        shared = f"-Wl,-soname,{toolchain.SONAME}"
        linked = [*compiler.words, *toolchain.linking_flags(compiler, flags), *link, SMALL, shared, *made, "-o",
                  "library.so", *libraries]
        version = toolchain.run_steps(compiler, [*steps, linked], host, folder, len(steps))
        for path in [folder / f"library{n}.o" for n in range(len(units))] + [folder / "library.so"]:
            if not path.is_file() or path.stat().st_size == 0:
                raise toolchain.wrote_nothing(compiler)
        for n, bundle in enumerate(bundles):
            for k in bundle:
                with suppress(OSError):                        # no room for it
                    cache.fetch(names[k.key], partial(_copy, folder / f"library{n + 1}.o"))
        toolchain.store(folder / "library.so", out)
    return toolchain.record_of(compiler, version, [*steps, linked], flags, libraries)


def _content(entry: Path | None) -> bytes | None:
    """An object file of the cache; None where another process has just removed it, too."""
    if entry is not None:
        with suppress(OSError):
            return (entry / FILE).read_bytes()
    return None


def _bundles(kernels: Sequence[Kernel]) -> list[list[Kernel]]:
    """Kernels that are compiled together, in one bundle for each core at most: to start a compiler, which reads all
    helper functions, takes as long as a small kernel."""
    return divided(kernels, lambda kernel: len(kernel.text), cores.available())


def _copy(file: Path, work: Path) -> None:
    (work / FILE).write_bytes(file.read_bytes())

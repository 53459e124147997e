"""`caten doctor`: show what is installed, what is missing, and what to install."""
from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ...echo import escape
from ...errors import CatenError
from ...options import environment
from ...runtime import cpu, discover
from ...runtime.library_cache import Cache, default_directory, obstacle
from ...runtime.plugin_checks import why_unavailable
from ...runtime.protocol import Host
from ...runtime.toolchain import Compiler, candidates, choose, complaint, has_openmp, temporary, version
from ...version import __version__
from ..atomic_files import STDOUT, write
from .cache import size

PACKAGES = ("numpy", "ml_dtypes", "islpy", "cffi", "click", "rich", "tomli", "platformdirs", "ziglang", "cmeel-libomp")
OPTIONAL = {"ziglang": "an embedded clang: pip install 'caten[toolchain]'",
            "cmeel-libomp": "OpenMP for the embedded clang: pip install 'caten[openmp]'"}
KINDS = ("clang", "zig", "gcc")

EXAMPLES = """\b
Examples:
  caten doctor
  CC=clang-19 caten doctor"""


@click.command("doctor", epilog=EXAMPLES)
def command() -> int:
    """Show the compilers, OpenMP, the runtimes, the cache and the packages, and what to install. The exit code is 3 if
    there is no usable compiler."""
    found = environment()
    cache = default_directory(found["cache_dir"])
    host = Host(cc=found["cc"], cflags=found["cflags"], ldflags=found["ldflags"],
                temp=Path(found["temp_dir"]) if found["temp_dir"] else None,
                cache=cache if obstacle(cache) is None else None)
    compilers = candidates(KINDS, host)
    advice: list[str] = []
    usable = True
    lines = [f"caten {__version__}, Python {platform.python_version()}, {sys.platform} {platform.machine()}, "
             f"CPU {cpu.resolve('native')}",
             "", "compilers"]
    lines += [f"  {c.name:12}{' '.join(c.words)}, {_state(c, host)}" for c in compilers] or ["  none"]
    try:
        chosen = choose(None, KINDS, host)
        lines.append(f"  used        {' '.join(chosen.words)}" + (" (from $CC)" if host.cc else ""))
        lines += _openmp(chosen, compilers, host, advice)
    except CatenError as problem:
        usable = False
        lines.append(f"  used        none: {problem.diagnostics[0].message}")
        advice += [problem.diagnostics[0].hint or ""]
    lines += ["", "runtimes", *_runtimes(found["runtime_path"], host, advice)]
    lines += ["", "cache", *_cache(cache)]
    lines += ["", "packages", *_packages(advice)]
    lines += ["", "to install", *[f"  {a}" for a in advice if a]] if any(advice) else ["", "nothing is missing"]
    write(STDOUT, "".join([escape(line).rstrip() + "\n" for line in lines]))
    return 0 if usable else 3


def _state(compiler: Compiler, host: Host) -> str:
    """The version of a compiler, or the reason why it does not run."""
    try:
        with temporary(host) as folder:
            found = version(compiler, environment=compiler.surroundings(host, folder))
        said = complaint(compiler, host)
    except CatenError as problem:
        return f"does not run: {problem.diagnostics[0].message}"
    return found if said is None else f"does not run: {said}"


def _openmp(chosen: Compiler, compilers: list[Compiler], host: Host, advice: list[str]) -> Iterator[str]:
    """The compiler that OMP=1 uses."""
    tried = [chosen, *([] if host.cc else [c for c in compilers if c != chosen])]
    works = next((c for c in tried if has_openmp(c, host)), None)
    yield "  OpenMP      " + ("none: --config OMP=1 will not work" if works is None
                              else f"works with {' '.join(works.words)}")
    if works is None:
        advice.append("OpenMP: apt install libomp-dev (clang) or gcc, or pip install 'caten[openmp]'")


def _runtimes(path: tuple[str, ...], host: Host, advice: list[str]) -> Iterator[str]:
    """The state of each runtime, and what the unavailable ones lack."""
    for listed in discover.listing(path):
        if listed.runtime is None:
            yield f"  {listed.name:12}broken: {listed.problem}"
            continue
        missing = why_unavailable(listed.runtime.configure((), host))
        if missing is None:
            yield f"  {listed.name:12}ready"
        else:
            yield f"  {listed.name:12}{'broken' if missing.code == 'E605' else 'unavailable'}: {missing.message}"
            advice.append(f"runtime {listed.name}: {missing.hint}" if missing.hint else "")


def _cache(folder: Path) -> Iterator[str]:
    reason = obstacle(folder)
    yield f"  {folder}" + (f": not used, {reason}" if reason else "")
    if reason is None:
        stats = Cache(folder, lambda _: None).stats()
        yield f"  {stats.entries} libraries, {size(stats.bytes)}; {stats.failed} kept failures"


def _packages(advice: list[str]) -> Iterator[str]:
    for name in PACKAGES:
        try:
            yield f"  {name:14}{importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"  {name:14}not installed" + (", optional" if name in OPTIONAL else "")
            advice.append(OPTIONAL.get(name, f"pip install {name}"))

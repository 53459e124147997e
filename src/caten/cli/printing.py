"""The facts about this installation that `--print=` prints, one per line."""
from __future__ import annotations

from collections.abc import Callable

from .. import attach
from ..core.dtypes import DTYPES, SPELLINGS
from ..core.scalars import OPERATORS, STRUCTURAL
from ..errors import Diagnostic, UsageError
from ..options import Options
from ..runtime import cpu, discover, toolchain
from ..runtime.c_runtime import Compiled
from ..runtime.library_cache import default_directory
from ..runtime.toolchain import candidates, named
from ..version import __version__
from .atomic_files import STDOUT, write
from .shared_options import Request


def answer(request: Request) -> int:
    """Print the requested facts."""
    write(STDOUT, "".join([line + "\n" for what in request.prints for line in PRINTERS[what](request.options)]))
    return 0


def runtimes(options: Options) -> list[str]:
    """The names of the runtimes."""
    return [listed.name for listed in discover.listing(options.runtime_path)]


def ops(_: Options) -> list[str]:
    """Operators: spelling in a body, `*` for principal operators, meaning."""
    rows = [f"{row.spelling:10} {'*' if row.principal else ' '} {row.meaning}" for row in OPERATORS.values()]
    return [*rows, *[f"{name:10} * {meaning}" for name, meaning in STRUCTURAL.items()]]


def dtypes(_: Options) -> list[str]:
    """Element types: name, bits, and the spellings in a spec."""
    spelled = {name: [s for s, target in SPELLINGS.items() if target == name] for name in DTYPES}
    return [f"{name:6} {dtype.bits:3} {' '.join(spelled[name])}" for name, dtype in DTYPES.items() if spelled[name]]


def config(options: Options) -> list[str]:
    """The keys of the runtime's --config: default, allowed values, help."""
    runtime = discover.find(options.runtime, options.runtime_path)
    def default(value: object) -> object:
        return "" if value is None else int(value) if isinstance(value, bool) else value
    return [f"{key}={default(option.default)}"
            f"  ({option.describe()}) {option.help}".rstrip() for key, option in runtime.config.items()]


def compilers(options: Options) -> list[str]:
    """The host compilers, in the order in which caten tries them."""
    host = attach.runtime_of(options).host
    chosen = dict(options.config).get("CC") or host.cc
    if chosen:
        return [named(chosen, "$CC", host).file]
    return [" ".join(c.words) for c in candidates(("clang", "zig", "gcc"), host)]


def target(options: Options) -> list[str]:
    """The target triple of the runtime's C compiler, as from its -dumpmachine: x86_64-unknown-linux-gnu."""
    runtime = attach.runtime_of(options)
    if not isinstance(runtime, Compiled):
        raise UsageError(Diagnostic("E900", f"runtime {runtime.name} has no C compiler, so it has no target triple",
                                    hint="choose a runtime that has one: --runtime clang"))
    compiler = runtime.compiler()
    return [toolchain.target_triple(compiler, runtime.flags(compiler), runtime.host)]


PRINTERS: dict[str, Callable[[Options], list[str]]] = {
    "runtimes": runtimes,
    "ops": ops,
    "dtypes": dtypes,
    "config": config,
    "cache-dir": lambda options: [str(default_directory(options.cache_dir))],
    "cc": compilers,
    "cpu": lambda options: [cpu.resolve(dict(options.config).get("MARCH", "native"))],
    "target": target,
    "version": lambda options: [__version__],
}

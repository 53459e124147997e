"""caten from Python: compile a spec or load a library, and call it with arrays."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import build, documents
from .errors import CatenError, Diagnostic, UsageError, error
from .frontend.spec import SpecText, decode, read_file
from .options import Options, environment
from .runtime import discover
from .runtime.call import Callable, Operators, callables
from .runtime.library import open_library
from .runtime.manifest import checked

__all__ = ["CatenError", "CatenWarning", "compile", "load"]

STRING = "<string>"
FOREIGN = (".elf", ".wasm")                # libraries that lie beside their manifest instead of holding it


class CatenWarning(UserWarning):
    """Something that costs time but not the result, such as a cache that cannot be used."""


def compile(spec: str | Path | Sequence[str | Path], runtime: str = "clang", config: Mapping[str, Any] | None = None, opt: int = 2,
            sizes: Mapping[str, int] | None = None, *, strided: Sequence[str] = (), bounds_check: bool = True, only: Sequence[str] = (),
            schedule: str | None = None, include_dirs: Sequence[str | Path] = (), cache: bool = True, verify: bool = False) -> Any:
    """A spec, compiled: what calls its operator, or for several operators an object with one attribute for each.

    `spec`: a file, a text (it has several lines, or starts with a parenthesis), or a list of these for one library of all. `runtime`: a
    name or a runtime file; `config`: its options, as --config. `opt`: 0 the nest as written, 1 simplified, 2 scheduled for the machine, 3 with the
    schedules that `caten tune` recorded. `sizes`: sizes that are fixed at compile time, as -D; calls must agree. `strided`: arrays that pass
    strides, as -fstrided. `schedule`: the text of a schedule to replay. `cache=False` compiles anew. `verify` checks the program after every pass.

    Raises CatenError with everything that is wrong with the spec; its subclass ToolError where the host compiler is missing or fails.
    """
    if opt not in (0, 1, 2, 3):
        raise UsageError(Diagnostic("E668", f"opt is 0, 1, 2 or 3, not {opt!r}"))
    options = Options(
        runtime=os.fspath(runtime), config=tuple([(k, _word(v)) for k, v in (config or {}).items()]), opt=opt, binds=_binds(sizes or {}),
        strided=tuple(strided), unchecked=not bounds_check, only=tuple(only), schedule=schedule,
        include_dirs=tuple([os.fspath(d) for d in include_dirs]), use_cache=cache, verify=verify, **environment())
    sources = [read(s) for s in ([spec] if isinstance(spec, str | Path) else spec)]
    built = build.build(sources, options, warn)
    found = built.runtime.load(built.artifact, built.manifest)
    for operator in found.values() if isinstance(found, Operators) else [found]:
        operator.source = built.source
    return found


def load(path: str | Path) -> Callable | Operators:
    """What calls a library that was compiled before: its operator, or for several an object with one attribute for each.

    A program for another machine (.elf, .wasm) needs its manifest, the .json file, beside it.

    Raises CatenError E66x where the file is missing, torn, or no library of caten's. `.source` is the text of the .c file beside it, if there is
    one."""
    path = Path(path)
    if path.suffix in FOREIGN:
        return _foreign(path, path.with_suffix(".json"))
    library, beside = open_library(path), path.with_suffix(".c")
    return callables(library, beside.read_text("utf-8", "replace") if beside.is_file() else "")


def _foreign(path: Path, described: Path) -> Callable | Operators:
    """A library that is no shared one: the runtime that its manifest names loads it."""
    try:
        manifest = documents.read(described, {"type": "object"})
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise error("E663", f"{described} is not the manifest of {path}: {why}", hint="compile the spec again") from None
    checked(manifest, described)
    found: Callable | Operators = discover.find(manifest["runtime"], environment()["runtime_path"]).load(path, manifest)
    return found


def read(spec: str | Path) -> SpecText:
    """A spec from its file, or from its text."""
    if isinstance(spec, str) and ("\n" in spec or spec.lstrip().startswith("(")):
        return decode(STRING, spec.encode("utf-8", "surrogatepass"))
    return read_file(spec)


def warn(diagnostic: Diagnostic) -> None:
    """A warning, at the line of the user's call."""
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    own, level = os.path.dirname(__file__), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename).startswith(own):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{diagnostic.code}: {diagnostic.message}{hint}", CatenWarning, stacklevel=level + 1)


def _word(value: Any) -> str:
    """A value of `config` as --config spells it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _binds(sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    for name, value in sizes.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise UsageError(Diagnostic("E668", f"sizes: {name} must be an integer from 0 on, not {value!r}"))
    return tuple([(name, value.__index__()) for name, value in sizes.items()])

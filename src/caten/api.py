"""caten from Python: compile a spec or load a library, and call it with arrays."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import documents, parameters
from .errors import CatenError, Diagnostic, error
from .frontend.spec import SpecText, decode, read_file
from .kernels import compiling
from .options import Options, environment
from .runtime import discover
from .runtime.call import Callable, Operators, callables
from .runtime.compiled import Compiled
from .runtime.foreign import check_manifest
from .runtime.library import open_library
from .runtime.manifest import checked

__all__ = ["CatenError", "CatenWarning", "compile", "load"]

STRING = "<string>"
ARRAYS, OPERATORS = 'a list of names of arrays, ["A"]', 'a list of names of operators, ["Gemm"]'
FOREIGN = (".elf", ".wasm")                # libraries that lie beside their manifest instead of holding it


class CatenWarning(UserWarning):
    """Something that costs time but not the result, such as a cache that cannot be used."""


def compile(spec: str | Path | Sequence[str | Path], runtime: str = "clang", config: Mapping[str, Any] | None = None, opt: int = 2,
            sizes: Mapping[str, int] | None = None, *, strided: Sequence[str] = (), bounds_check: bool = True, reassociate: bool = True,
            only: Sequence[str] = (), schedule: str | None = None, include_dirs: Sequence[str | Path] = (), cache: bool = True,
            verify: bool = False) -> Any:
    """A spec, compiled: what calls its operator, or for several operators an object with one attribute for each.

    `spec`: a file (a str or Path), a text (a str that has several lines, or starts with a parenthesis), or a list of these for one library of all.
    `runtime`: a name or a runtime file; `config`: its options by key, as --config, each a text, an integer or a bool. `opt`: 0 the nest as written,
    1 simplified, 2 scheduled for the machine, 3 with the schedules that `caten tune` recorded. `sizes`: sizes by name, integers from 0 to 2^40, that
    are fixed at compile time, as -D; calls must agree. `strided`: a list of the arrays that pass strides, as -fstrided. `bounds_check=False` leaves
    the checks at the call out. `reassociate=False` keeps float sums in the order in which they are written, as -fno-reassociate. `only`: a list of
    the operators that are wanted. `schedule`: the text of a schedule to replay. `include_dirs`: a list of folders where included and called specs are
    looked for, as -I. `cache=False` compiles anew. `verify=True` checks the program after every pass.

    Raises CatenError with everything that is wrong with the spec; its subclass UsageError where an option is not what it must be (E668 names it), and
    ToolError where the host compiler is missing or fails.
    """
    specs = parameters.specs("compile: spec", spec)
    options = Options(
        runtime=parameters.path("compile: runtime", runtime, "the name of a runtime or its file"),
        config=parameters.config("compile: config", config), opt=parameters.level("compile: opt", opt),
        binds=parameters.sizes("compile: sizes", sizes), strided=parameters.listed("compile: strided", strided, parameters.text, ARRAYS),
        unchecked=not parameters.flag("compile: bounds_check", bounds_check),
        in_order=not parameters.flag("compile: reassociate", reassociate),
        only=parameters.listed("compile: only", only, parameters.text, OPERATORS),
        schedule=None if schedule is None else parameters.text("compile: schedule", schedule),
        include_dirs=parameters.listed("compile: include_dirs", include_dirs, parameters.path, "a list of folders"),
        use_cache=parameters.flag("compile: cache", cache), verify=parameters.flag("compile: verify", verify), **environment())
    return compiling.compiled([read(s) for s in specs], options, warn)


def load(path: str | Path) -> Callable | Operators:
    """What calls a library that was compiled before: its operator, or for several an object with one attribute for each.

    A program for another machine (gemm.elf, gemm.wasm) needs its manifest beside it, gemm.elf.json.

    `path`: a str or Path. Raises CatenError E66x where the file is missing, torn, or no library of caten's. `.source` is the text of the .c file
    beside it, if there is one."""
    path = Path(parameters.path("load: path", path, "the file of a library"))
    if path.suffix in FOREIGN:
        return _foreign(path, path.with_name(path.name + ".json"))
    library, beside = open_library(path), path.with_suffix(".c")
    return callables(library, beside.read_text("utf-8", "replace") if beside.is_file() else "")


def _foreign(path: Path, described: Path) -> Callable | Operators:
    """A library that is no shared one: the runtime that its manifest names loads it."""
    if not path.is_file():
        raise error("E661", f"cannot read {path}: {'it is no file' if path.exists() else 'there is no such file'}")
    try:
        manifest = documents.read(described, {"type": "object"})
    except OSError as problem:
        raise error("E663", f"{path} needs its manifest, and {described} cannot be read: {problem.strerror}",
                    hint="the manifest goes where the library goes") from None
    except ValueError as problem:
        raise error("E663", f"{described} is not the manifest of {path}: {problem}", hint="compile the spec again") from None
    checked(manifest, described)
    runtime = discover.find(manifest["runtime"], environment()["runtime_path"])
    if isinstance(runtime, Compiled):
        runtime.check_library(path)
        check_manifest(path, manifest)
    found: Callable | Operators = runtime.load(path, manifest)
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

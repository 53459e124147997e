"""The Python interface of caten: compile a spec or load a library, and call it with arrays."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, SupportsIndex, cast, overload

from . import argument_checks, checking, documents, loading
from .calls.call_signature import Argument
from .checking import Checked, proved
from .collector import CollectingRarely
from .errors import CatenError, Diagnostic, NothingMatched, OutOfMemory, ToolError, UsageError, combined, error
from .frontend.composite import Composite, named
from .frontend.generic_signature import tensors
from .frontend.spec_files import SpecText, decode
from .kernels import known_build
from .options import Options, environment
from .runtime import discover
from .runtime.c_runtime import Compiled
from .runtime.call import Operator, Operators, callables
from .runtime.copied_calls import check_manifest
from .runtime.library import open_library
from .runtime.manifest import checked

__all__ = ["Argument", "CatenError", "CatenWarning", "Checked", "NothingMatched", "Operator", "Operators",
           "OutOfMemory", "ToolError", "UsageError", "check", "compile", "load", "load_library"]

STRING = "<string>"
FOLDERS, ARRAYS = "a list of folders", 'a list of names of arrays, ["A"]'
OPERATORS = 'a list of names of operators, ["Gemm"]'
FOREIGN = (".elf", ".wasm")                # libraries that lie beside their manifest instead of holding it


# Parameter -> the field of Options, and the function of the parameter's name and value that gives it.
FIELDS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "runtime": ("runtime", lambda name, value: argument_checks.path(name, value, "the name of a runtime or its file")),
    "config": ("config", argument_checks.config),
    "opt": ("opt", argument_checks.level),
    "sizes": ("binds", argument_checks.sizes),
    "strided": ("strided", lambda name, value: argument_checks.listed(name, value, argument_checks.text, ARRAYS)),
    "bounds_check": ("unchecked", lambda name, value: not argument_checks.flag(name, value)),
    "reassociate": ("in_order", lambda name, value: not argument_checks.flag(name, value)),
    "rewrite": ("no_rewrite", lambda name, value: not argument_checks.flag(name, value)),
    "only": ("only", lambda name, value: argument_checks.listed(name, value, argument_checks.text, OPERATORS)),
    "schedule": ("schedule", lambda name, value: None if value is None else argument_checks.text(name, value)),
    "include_dirs": ("include_dirs", lambda name, value: argument_checks.listed(name, value, argument_checks.path,
                                                                                FOLDERS)),
    "seed": ("seed", lambda name, value: argument_checks.count(name, value, 0)),
    "cache": ("use_cache", argument_checks.flag),
    "verify": ("verify", argument_checks.flag),
}


class CatenWarning(UserWarning):
    """A warning that does not affect results, such as a cache that cannot be used."""


Spec = str | Path


class Specs(Protocol):
    """A list or tuple of specs. A str is not one: its `__contains__` takes only a str."""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: SupportsIndex, /) -> Spec: ...
    def __iter__(self) -> Iterator[Spec]: ...


@overload
def compile(spec: Spec, runtime: str = ..., config: Mapping[str, Any] | None = ..., opt: int = ...,
            sizes: Mapping[str, int] | None = ..., *, strided: Sequence[str] = ..., bounds_check: bool = ...,
            reassociate: bool = ..., rewrite: bool = ..., only: Sequence[str] = ..., schedule: str | None = ...,
            include_dirs: Sequence[Spec] = ..., cache: bool = ..., verify: bool = ...) -> Operator: ...


@overload
def compile(spec: Specs, runtime: str = ..., config: Mapping[str, Any] | None = ..., opt: int = ...,
            sizes: Mapping[str, int] | None = ..., *, strided: Sequence[str] = ..., bounds_check: bool = ...,
            reassociate: bool = ..., rewrite: bool = ..., only: Sequence[str] = ..., schedule: str | None = ...,
            include_dirs: Sequence[Spec] = ..., cache: bool = ..., verify: bool = ...) -> Operators: ...


def compile(spec: Spec | Specs, runtime: str = "clang", config: Mapping[str, Any] | None = None, opt: int = 2,
            sizes: Mapping[str, int] | None = None, *, strided: Sequence[str] = (), bounds_check: bool = True,
            reassociate: bool = True, rewrite: bool = True, only: Sequence[str] = (), schedule: str | None = None,
            include_dirs: Sequence[Spec] = (), cache: bool = True, verify: bool = False) -> Operator | Operators:
    """Compile a spec to an operator, or a list of specs to a library with an attribute for each operator.

    Returns an `Operators` for a list of specs and for a spec with several operators, else an `Operator`; for a single
    spec the annotation says `Operator`. A spec with type variables, `~` or attributes becomes a `GenericOperator`,
    which is compiled for the types, ranks and attributes of its calls.

    `spec`: a file (a str or Path), the text of a spec (a str of several lines, or one that starts with a parenthesis),
    or a list of these.
    `runtime`: the name of a runtime or a runtime file. `config`: options of the runtime by key, as --config: texts,
    integers or bools.
    `opt`: 0 loops as written, 1 simplified, 2 scheduled for the machine, 3 with schedules from `caten tune`.
    `sizes`: sizes by name, from 0 to 2^40, that are fixed at compile time, as -D; calls with other sizes fail (E705).
    `strided`: the names of the arrays whose strides a call passes, as -fstrided. `bounds_check=False` omits the
    run-time checks, as -fno-bounds-check: an access may then be out of bounds.
    `reassociate=False` keeps floating-point sums and products in the order of the spec, as -fno-reassociate.
    `rewrite=False` applies no rules of [rewrite], as -fno-rewrite.
    `only`: the names of the operators to compile. `schedule`: the text of a schedule, (schedule STEP…), to apply
    instead of the compiler's own.
    `include_dirs`: folders to search for included and called specs, as -I. `cache=False` neither reads nor writes the
    cache. `verify=True` verifies the program after every pass and every schedule step.

    Raises CatenError with all errors in the spec. Its subclasses, which `caten` exports, too, are UsageError (E668) for
    a wrong option value, and ToolError if the host compiler is missing or fails.
    """
    try:
        specs = argument_checks.specs("compile: spec", spec)
        options = options_of("compile", runtime=runtime, config=config, opt=opt, sizes=sizes, strided=strided,
                             bounds_check=bounds_check, reassociate=reassociate, rewrite=rewrite, only=only,
                             schedule=schedule, include_dirs=include_dirs, cache=cache, verify=verify)
        texts = [read(s) for s in specs]
        generic = generic_composite(texts, options)
        if generic is not None:
            from .functions.generic_operator import GenericOperator  # it imports numpy
            return cast(Operator, GenericOperator(generic, texts[0], options, compiled))
        made = compiled(texts, options)
        return Operators.of(made) if isinstance(spec, list | tuple) and isinstance(made, Operator) else made
    except CatenError as problem:
        raise problem.shortened() from None


def generic_composite(texts: Sequence[SpecText], options: Options) -> Composite | None:
    """The operator of a spec whose signature leaves types, ranks or attributes open; None if there is none. E675 if
    there are other operators."""
    if not any("attributes" in text.text or any(t.is_generic for t in tensors([text.text])) for text in texts):
        return None
    from .frontend.spec import composites_of  # a graph of known operators needs no reader of specs
    found = [c for text in texts for c in composites_of(text, options)[0]
             if not options.only or named(c.name, options.only)]
    generic = [c for c in found if c.generic or c.attributes]
    if generic and len(found) > 1:
        raise error("E675", f"{generic[0].name} is generic, and one of {len(found)} operators",
                    hint=f'compile it alone: only=["{generic[0].name}"]')
    return generic[0] if generic else None


def compiled(texts: Sequence[SpecText], options: Options) -> Operator | Operators:
    """The operators of specs, compiled and loaded."""
    with CollectingRarely():
        programs = checking.loaded(texts, options, compiled=True)
    made: Operator | Operators = known_build.loaded(programs, options, loading.digest(texts), warn)
    return made


def check(spec: Spec | Specs, runtime: str = "clang", config: Mapping[str, Any] | None = None, opt: int = 2, *,
          include_dirs: Sequence[Spec] = ()) -> tuple[Checked, ...]:
    """Check a spec, or a list of specs, without compiling it, as `caten check`: parse it, infer shapes, prove that its
    accesses are in bounds, and schedule it. Its rules of [rewrite] are compiled and tried.

    The parameters are those of `compile`. Returns one `Checked` for each operator. Raises CatenError with all errors in
    the spec, UsageError (E668) for a wrong option value."""
    try:
        texts = [read(s) for s in argument_checks.specs("check: spec", spec)]
        options = options_of("check", runtime=runtime, config=config, opt=opt, include_dirs=include_dirs)
        found, problems = [], []
        for program in checking.loaded(texts, options):
            try:
                found.append(proved(program, options, warn))
            except CatenError as problem:
                problems.append(problem)
        if problems:
            raise combined(problems)
        return tuple(found)
    except CatenError as problem:
        raise problem.shortened() from None


def load(path: str | Path) -> Operator:
    """Load a compiled library. Returns an `Operator` for a library with one operator, else an `Operators`. The
    annotation says only `Operator`: use `load_library` for code that a type checker reads.

    `path`: a str or Path. A program for another machine (gemm.elf, gemm.wasm) needs its manifest, gemm.elf.json, in the
    same folder. The attribute `source` is the text of the .c file with the name of the library, if there is one.

    Raises CatenError E66x if the file is missing, incomplete, or was not made by caten, and ToolError E717 if it was
    compiled for another processor."""
    try:
        return cast("Operator", _loaded("load: path", path))       # not so for a library of several operators
    except CatenError as problem:
        raise problem.shortened() from None


def load_library(path: str | Path) -> Operators:
    """Load a compiled library, as `load` does, but return an `Operators` even if there is only one operator."""
    try:
        found = _loaded("load_library: path", path)
    except CatenError as problem:
        raise problem.shortened() from None
    return Operators.of(found) if isinstance(found, Operator) else found


def _loaded(name: str, path: str | Path) -> Operator | Operators:
    path = Path(argument_checks.path(name, path, "the file of a library"))
    if path.suffix in FOREIGN:
        return _foreign(path, path.with_name(path.name + ".json"))
    library, beside = open_library(path), path.with_suffix(".c")
    return callables(library, beside.read_text("utf-8", "replace") if beside.is_file() else "")


def _foreign(path: Path, described: Path) -> Operator | Operators:
    """A library that is not a shared library: the runtime that its manifest names loads it."""
    if not path.is_file():
        raise error("E661", f"cannot read {path}: {'it is no file' if path.exists() else 'there is no such file'}")
    try:
        manifest = documents.read(described, {"type": "object"})
    except OSError as problem:
        raise error("E663", f"{path} needs its manifest, and {described} cannot be read: {problem.strerror}",
                    hint="the manifest goes where the library goes") from None
    except ValueError as problem:
        raise error("E663", f"{described} is not the manifest of {path}: {problem}",
                    hint="compile the spec again") from None
    checked(manifest, described)
    runtime = discover.find(manifest["runtime"], environment()["runtime_path"])
    if isinstance(runtime, Compiled):
        runtime.check_library(path)
        check_manifest(path, manifest)
    found: Operator | Operators = runtime.load(path, manifest)
    return found


def options_of(function: str, **given: object) -> Options:
    """The options of a call. UsageError E668 for a wrong value; the message names the parameter."""
    fields = {}
    for parameter, value in given.items():
        field, reader = FIELDS[parameter]
        fields[field] = reader(f"{function}: {parameter}", value)
    return Options(**fields, **environment())


def read(spec: str | Path) -> SpecText:
    """A spec from its file, or from its text. CatenError if the file cannot be read."""
    if isinstance(spec, str) and is_text(spec):
        return decode(STRING, spec.encode("utf-8", "surrogatepass"))
    from .frontend.spec import read_spec
    return read_spec(spec)


def is_text(spec: str | Path) -> bool:
    """True for the text of a spec, False for the name of its file."""
    return isinstance(spec, str) and ("\n" in spec or spec.lstrip().startswith("("))


def warn(diagnostic: Diagnostic) -> None:
    """Show a CatenWarning at the line of the user's call."""
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    own, outermost, level = os.path.dirname(__file__), 0, 0
    frame: FrameType | None = sys._getframe(0)
    while frame is not None:                       # functools is between our own frames
        level += 1
        if os.path.dirname(frame.f_code.co_filename).startswith(own):
            outermost = level
        frame = frame.f_back
    warnings.warn(f"{diagnostic.code}: {diagnostic.message}{hint}", CatenWarning, stacklevel=outermost + 1)

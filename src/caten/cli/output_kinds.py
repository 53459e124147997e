"""The outputs of a build: kinds, suffixes, and the plan of files that follows from -o and --emit."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from ..errors import CatenError, Diagnostic, UsageError, did_you_mean
from ..frontend.operator_library import PREFIX
from ..frozen import frozen
from .atomic_files import STDOUT


@frozen
class Kind:
    """One kind of output."""

    name: str
    suffix: str
    text: bool = True
    about: str = ""


KINDS: dict[str, Kind] = {k.name: k for k in (
    Kind("spec", ".spec.lisp", about="the validated, expanded spec"),
    Kind("ir", ".ir.lisp", about="the tensor level"),
    Kind("schedule", ".schedule.lisp", about="the scheduled loop level"),
    Kind("c", ".c", about="the generated source"),
    Kind("asm", ".s", about="assembly"),
    Kind("obj", ".o", text=False, about="an object file"),
    Kind("so", ".so", text=False, about="a shared library"),
    Kind("a", ".a", text=False, about="a static library"),
    Kind("header", ".h", about="the header"),
    Kind("manifest", ".json", about="the manifest"),
    Kind("table", "_table.h", about="a table that finds operators by name and types, for C"),
    Kind("python", "_numpy.py", about="a numpy wrapper"),
    Kind("example", "_main.c", about="a program that calls the library and checks itself"),
    Kind("dot", ".dot", about="the values and kernels, for Graphviz"),
    Kind("html", ".html", about="a page of values, kernels and source"),
    Kind("depfile", ".d", about="what the output depends on, for make"),
)}
LIBRARIES = ("so", "a")
COMPANIONS = ("header", "manifest")                # written with a library
OF_C = ("header", "table", "example", "python")             # need a C interface
NATIVE = ("example", "python")                     # load the library on this machine
_BY_SUFFIX = {".c": "c", ".h": "header", ".s": "asm", ".o": "obj", ".so": "so", ".a": "a", ".json": "manifest",
              ".py": "python", ".dot": "dot", ".html": "html", ".d": "depfile"}
_SONAME = re.compile(r"\.so(\.\d+)+\Z")            # libfoo.so.1.2


@frozen
class Emit:
    """One item of --emit (or -E -S -c): a kind, and its path if given."""

    kind: str
    path: str | None = None


@frozen
class Plan:
    """The files to write, in order: (kind, path) with `-` for stdout; and the stem for the names of further files."""

    files: tuple[tuple[str, str], ...]
    stem: str

    def path(self, kind: str) -> str | None:
        return next((path for k, path in self.files if k == kind), None)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple([kind for kind, _ in self.files])


def read_emit(text: str) -> list[Emit]:
    """Parse `c,asm=x.s`."""
    wishes = []
    for item in text.split(","):
        kind, equals, path = item.strip().partition("=")
        if kind not in KINDS:
            raise _unknown_kind(kind)
        if equals and not path:
            raise UsageError(Diagnostic("E903", f"--emit={item}: the path is empty",
                                        hint=f"--emit={kind} chooses a name; --emit={kind}=- is stdout"))
        wishes.append(Emit(kind, path or None))
    return wishes


def _unknown_kind(kind: str) -> CatenError:
    return UsageError(Diagnostic("E903", f"--emit: there is no output kind '{kind}'",
                                 hint=did_you_mean(kind, tuple(KINDS)),
                                 notes=(("the kinds are " + ", ".join(KINDS), None),)))


def kind_of(path: str) -> str:
    """The output kind for the suffix of a path. UsageError E903 for an unknown suffix."""
    if _SONAME.search(path):
        return "so"
    suffix = PurePath(path).suffix.lower()
    if suffix not in _BY_SUFFIX:
        what = f"the suffix '{suffix}'" if suffix else "a name without suffix"
        raise UsageError(Diagnostic("E903", f"-o {path}: {what} does not select an output kind",
                                    hint=f"use one of {' '.join(_BY_SUFFIX)}, "
                                         f"or name the kind with --emit=KIND={path}"))
    return _BY_SUFFIX[suffix]


@frozen
class Makes:
    """The properties of a runtime that affect file names: its name, the suffix of its library, and whether the library
    has a C interface."""

    runtime: str = "clang"
    library: str = ".so"
    c: bool = True

    def suffix(self, kind: str) -> str:
        """The suffix for a kind. A library suffix that means another kind gets the runtime's name in front: a library
        in JSON is not a manifest."""
        if kind != "so":
            return KINDS[kind].suffix
        known = self.library in _BY_SUFFIX and self.library != ".so"
        return f".{self.runtime}{self.library}" if known else self.library

    def beside(self, library: str) -> str:
        """The stem for the header and the manifest of a library, distinct for libraries of different runtimes:
        `gemm.elf.json` belongs to `gemm.elf`."""
        if self.library == ".so" or library.endswith((".so", ".a")):
            return _without_suffix(library)
        return library.removesuffix(".json") + ".manifest" if library.endswith(".json") else library


def plan(output: str | None, emits: Sequence[Emit], stem: str, *, save_temps: bool = False,
         makes: Makes | None = None) -> Plan:
    """The files to write. -o names the only product, or adds a product by its suffix. The other files are named after
    -o, else after a library path in --emit, else after the spec, in the current directory.

    A library comes with its header and manifest. The default product is a shared library.
    """
    makes = makes or Makes()
    wishes = list(dict.fromkeys(emits))
    open_wishes = [w for w in wishes if w.path is None]
    if output == "":
        raise UsageError(Diagnostic("E903", "-o: the name is empty"))
    if output is not None and len(wishes) == 1 and open_wishes:
        wishes = [Emit(wishes[0].kind, output)]
    elif output == STDOUT:
        raise UsageError(Diagnostic("E903", "-o - does not select what to print",
                                    hint="add one of -E, -S, --emit=c, or use caten render FILE"))
    elif output is not None:
        kind = "so" if PurePath(output).suffix == makes.library and makes.library not in _BY_SUFFIX else kind_of(output)
        if kind == "so" and PurePath(output).suffix != makes.library and makes.library != ".so":
            raise UsageError(Diagnostic("E914", f"-o {output}: runtime {makes.runtime} makes no .so",
                                        hint=f"--emit=so={_without_suffix(output)}{makes.library}"))
        wishes = [w for w in wishes if w != Emit(kind)] + [Emit(kind, output)]
    elif not wishes:
        wishes = [Emit("so")]
    # a wrapper alone loads the library with the default name
    if output not in (None, STDOUT) and [w.kind for w in wishes] != ["python"]:
        stem = _without_suffix(output)
    elif output is None and makes.c:
        stem = next((_without_suffix(w.path) for w in wishes if w.kind in LIBRARIES and w.path is not None), stem)
    files: dict[tuple[str, str], None] = {}
    library = next((wish.path or stem + makes.suffix("so") for wish in wishes if wish.kind == "so"), "")
    for wish in wishes:
        printed = wish.kind == "spec" and output is None and len(wishes) == 1 and not save_temps
        default = STDOUT if printed else stem + makes.suffix(wish.kind)
        if wish.kind in COMPANIONS and library and makes.library != ".so":
            default = makes.beside(library) + KINDS[wish.kind].suffix
        path = wish.path or default
        files[wish.kind, path] = None
        if wish.kind in LIBRARIES and path != STDOUT:
            beside = stem if wish.path is None and makes.library == ".so" else makes.beside(path)
            for companion in COMPANIONS:
                if companion not in [w.kind for w in wishes] and (makes.c or companion not in OF_C):
                    name = beside + KINDS[companion].suffix
                    files[companion, name if name != path else stem + KINDS[companion].suffix] = None
    if save_temps:
        for kind in ("spec", "ir", "schedule", *(("c", "asm") if makes.c else ())):
            if kind not in [k for k, _ in files]:
                files[kind, stem + KINDS[kind].suffix] = None
    return Plan(_checked(tuple(files), stem), stem)


def _checked(files: tuple[tuple[str, str], ...], stem: str) -> tuple[tuple[str, str], ...]:
    """Check a plan: no binary and at most one product on stdout, no file twice, no wrapper that Python cannot import.
    UsageError E903."""
    seen: dict[str, str] = {}
    for kind, path in files:
        if path == STDOUT and not KINDS[kind].text:
            raise UsageError(Diagnostic("E903", f"{KINDS[kind].about} is not text and cannot go to stdout",
                                        hint="name a file with -o"))
        if path in seen:
            what = "stdout" if path == STDOUT else path
            raise UsageError(Diagnostic("E903", f"both {seen[path]} and {kind} would go to {what}",
                                        hint="give them different paths with --emit=KIND=PATH"))
        if kind == "python" and PurePath(path).with_suffix("").name == PurePath(stem).name:
            raise UsageError(Diagnostic("E903",
                                        f"import {PurePath(stem).name} finds {PurePath(stem).name}.so before {path}",
                                        hint="give the wrapper another name: "
                                             f"--emit=python={stem}{KINDS['python'].suffix}"))
        seen[path] = kind
    return files


def _without_suffix(path: str) -> str:
    """`out/libops.so.1` -> `out/libops`."""
    pure = PurePath(_SONAME.sub("", path))
    return str(pure.with_suffix("")) if pure.suffix else str(pure)


def stem_of(inputs: Sequence[str], names: Sequence[str], output: str | None) -> str:
    """The stem of output names without -o: the name of the only spec file, or of the composite on stdin."""
    if output is None and len(inputs) > 1:
        raise UsageError(Diagnostic("E903", f"{len(inputs)} specs make one library, which needs a name",
                                    hint="add -o libops.so"))
    if len(inputs) == 1 and inputs[0] != STDOUT and not inputs[0].startswith("("):
        return PurePath(inputs[0].removeprefix(PREFIX)).name.split(".")[0] or "out"
    return names[0].lower() if names else "out"

"""Finding a runtime by path, on CATEN_RUNTIME_PATH, in caten, or as a plugin. Only the named one is loaded."""
from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import CatenError, Diagnostic, Place, UsageError, did_you_mean
from ..frozen import frozen
from . import plugin_checks
from .protocol import API_VERSION, Runtime

if TYPE_CHECKING:
    import importlib.metadata

GROUP = "caten.runtimes"


@frozen
class Listed:
    """A runtime that can be named: where it is, and the runtime itself or what is wrong with it."""

    name: str
    origin: str
    runtime: Runtime | None
    problem: str | None


def find(name: str, path: Sequence[str] = ()) -> Runtime:
    """The runtime of a name, or of a file that is given by its path. `path`: the folders of CATEN_RUNTIME_PATH.
    UsageError E602 (unknown), E603 (broken), E604 (another version of the protocol)."""
    if name.endswith(".py") or "/" in name or "\\" in name:
        if not os.path.isfile(name):              # unlike Path.is_file, it says no to a name that is too long
            raise UsageError(Diagnostic("E602", f"there is no runtime file {name}",
                                        hint="a name without .py means a runtime that is installed"))
        return _instance(_load(Path(name)), name)
    places = _files(path)
    if name not in places:
        places |= _plugins(places)
    if name not in places:
        known = list(places)
        hint = did_you_mean(name, known)
        raise UsageError(Diagnostic("E602", f"there is no runtime called '{name}'", hint=hint
                                    or "name one of these, or a runtime file: my.py",
                                    notes=((f"the runtimes are {', '.join(known) or 'none'}", None),)))
    _, load = places[name]
    return _instance(load(), name)


def listing(path: Sequence[str] = ()) -> list[Listed]:
    """Every runtime, each loaded by itself: a broken one is listed as broken and harms no other."""
    found = []
    files = _files(path)
    for name, (origin, _) in {**files, **_plugins(files)}.items():
        try:
            found.append(Listed(name, origin, find(name, path), None))
        except CatenError as problem:
            said = problem.diagnostics[0]
            found.append(Listed(name, origin, None,
                                said.message + (f" (line {said.place.line})" if said.place else "")))
    return found


def base(name: str) -> type[Runtime]:
    """The class of a runtime that comes with caten, to derive another one from: `class Mine(base("clang"))`."""
    return type(find(name))


def builtin_folder() -> Path:
    """Where the runtimes that come with caten are: inside the installed package, or beside `src` in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_runtimes"
    return inside if inside.is_dir() else package.parents[1] / "runtimes"


Places = dict[str, tuple[str, Callable[[], type[Runtime]]]]              # name -> where it is and how to load it


def _files(path: Sequence[str]) -> Places:
    """The runtime files; the first folder that has a name wins."""
    places: Places = {}
    for folder in [*map(Path, path), builtin_folder()]:
        if str(folder) in ("", ".") or not folder.is_dir():      # nothing is loaded from the current directory unasked
            continue
        for file in sorted(folder.glob("*.py")):
            if not file.name.startswith("_"):
                places.setdefault(file.stem, (str(file), partial(_load, file)))
    return places


def _plugins(files: Places) -> Places:
    """The runtimes of other packages, without names that files have. Slow: only called when needed."""
    import importlib.metadata
    places: Places = {}
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda e: e.name):
        if entry.name not in files:
            places.setdefault(entry.name, (entry.value, partial(_from_plugin, entry)))
    return places


_LOADING = threading.RLock()                    # a file that derives from another loads that one meanwhile


def _load(file: Path) -> type[Runtime]:
    try:
        stat = file.stat()
    except OSError as problem:
        raise UsageError(Diagnostic("E603", f"the runtime file {file} cannot be read: {problem.strerror}")) from None
    with _LOADING:
        return _load_file(str(file.resolve()), stat.st_mtime_ns)


@cache
def _load_file(file: str, changed: int) -> type[Runtime]:
    """The runtime class that a file defines. A module of the same file is loaded once (again when it changed)."""
    name = f"caten_runtime_{Path(file).stem}_{hashlib.sha256(f'{file} {changed}'.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if name in sys.modules:                     # what is loaded is remembered, so it is being loaded
        raise UsageError(Diagnostic("E603", f"the runtime {file} derives from itself"))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        return _class_in(module, Path(file))
    except BaseException as problem:            # a plugin may fail in any way; the message says how
        del sys.modules[name]
        if isinstance(problem, CatenError) or not isinstance(problem, (Exception, SystemExit)):
            raise
        raise _broken(file, problem) from None


def _from_plugin(entry: importlib.metadata.EntryPoint) -> type[Runtime]:
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as problem:        # as above
        raise _broken(entry.value, problem) from None
    if isinstance(loaded, ModuleType):
        return _class_in(loaded, Path(loaded.__file__ or entry.value))
    if not (inspect.isclass(loaded) and issubclass(loaded, Runtime)):
        raise UsageError(Diagnostic("E603", f"the plugin {entry.value} is no runtime",
                                    hint="the entry point must name a subclass of Runtime"))
    return loaded


def _broken(origin: str, problem: BaseException) -> UsageError:
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename == origin]
    line, column = frames[-1].lineno if frames else None, (frames[-1].colno or 0) + 1 if frames else 1
    if isinstance(problem, SyntaxError) and problem.lineno:
        line, column, problem = problem.lineno, problem.offset or 1, SyntaxError(problem.msg)
    place = Place(origin, line, column) if line else None
    return UsageError(Diagnostic("E603", f"the runtime {origin} is broken: {type(problem).__name__}: {problem}", place))


def _class_in(module: ModuleType, file: Path) -> type[Runtime]:
    """The one runtime that a module defines itself (what it imports does not count)."""
    classes = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Runtime)
               and c.__module__ == module.__name__ and c.name]
    named = [c for c in classes if c.name == file.stem] or classes
    if not named:
        raise UsageError(Diagnostic("E603", f"the runtime file {file} defines no runtime",
                                    hint="it needs a class that derives from caten.runtime.protocol.Runtime and has a "
                                         "name"))
    named[-1].file = file
    return named[-1]


def _instance(cls: type[Runtime], name: str) -> Runtime:
    if cls.api_version != API_VERSION:
        raise UsageError(Diagnostic("E604", f"the runtime '{name}' is written for version {cls.api_version!r} of the "
                                            f"runtime protocol",
                                    hint=f"this caten has version {API_VERSION}"))
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise UsageError(Diagnostic("E603", f"the runtime '{name}' lacks {', '.join(missing)}",
                                    hint="every runtime must have these methods"))
    try:
        plugin_checks.check_results(cls)
        runtime = cls()
        fault = plugin_checks.tables_fault(runtime)
    except Exception as problem:        # as above
        raise _broken(name, problem) from None
    if fault is not None:
        raise UsageError(Diagnostic("E603", f"the runtime '{name}' is broken: {fault[0]}", hint=fault[1]))
    return runtime

"""A runtime file is someone else's: what its tables hold, what its methods give, and whose fault an exception is."""
from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from ..core.dtypes import DTYPES
from ..core.program import Machine
from ..core.scalars import OPERATORS
from ..errors import CatenError, Diagnostic, ToolError, did_you_mean
from ..loop.statements import MARKS
from .protocol import CompileRecord, Option, Runtime

NAME, KEY = re.compile(r"[A-Za-z0-9_.+-]+"), re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WIDEST = 1 << 12                                                       # bytes of a vector register


def tables_fault(runtime: Runtime) -> tuple[str, str | None] | None:
    """The faults of a runtime's tables, with hints. Unknown words would otherwise be ignored silently."""
    return next(_faults(runtime), None)


def _faults(runtime: Runtime) -> Iterator[tuple[str, str | None]]:
    plain: dict[str, type] = {"name": str, "description": str, "denormals": bool, "allocates": bool, "settings": dict}
    tables: dict[str, tuple[str, Collection[str] | None]] = {
        "types": ("element type", DTYPES), "ops": ("operator", OPERATORS), "marks": ("loop mark", MARKS),
                                                             "suffixes": ("kind of product", None),
        "config": ("option", None), "skips": ("pattern", None)}
    for member, kind in plain.items():
        if not isinstance(value := getattr(runtime, member), kind):
            yield f"`{member}` is {_kind(value)}, and must be {_kind(kind())}", None
    if not NAME.fullmatch(runtime.name):
        yield f"`name` is {runtime.name!r}", "a name has letters, digits, and _ . + -"
    for member, (noun, known) in tables.items():
        table = getattr(runtime, member)
        if not isinstance(table, Mapping):
            yield f"`{member}` is {_kind(table)}, and must be a dict", None
            continue
        for word in table:
            if not isinstance(word, str) or (known is not None and word not in known):
                yield f"`{member}` has {word!r}, which is no {noun}", did_you_mean(str(word), list(known or ()))
        of = {"config": Option, "types": str, "suffixes": str, "skips": str}.get(member, object)
        for word, value in table.items():
            if not isinstance(value, of):
                hint = "use Flag, Text, Choice or Int" if member == "config" else None
                yield f"`{member}` has {_kind(value)} for {word!r}", hint
    yield from _option_faults(runtime.config)


def _option_faults(config: Mapping[str, Option]) -> Iterator[tuple[str, str | None]]:
    seen: dict[str, str] = {}
    for key in config:
        if not KEY.fullmatch(key):
            yield f"`config` has {key!r}, which --config cannot name", "a key has letters, digits and _"
        if (other := seen.setdefault(key.upper(), key)) != key:
            yield f"`config` has {other!r} and {key!r}, which are one key to --config", None


RESULTS: dict[str, type] = {"configure": Runtime, "machine": Machine, "render": str, "trailer": str, "identity": str,
                            "compile": CompileRecord}


def check_results(cls: type[Runtime]) -> None:
    """Wrap the methods of a runtime class, once: a result against the protocol is ToolError E605."""
    for method, kind in RESULTS.items():
        function = getattr(cls, method)
        if not hasattr(function, "checks_result"):
            setattr(cls, method, _checking(function, method, kind))


def _checking(function: Callable[..., Any], method: str, kind: type) -> Callable[..., Any]:
    @wraps(function)
    def call(runtime: Runtime, *args: Any, **options: Any) -> Any:
        result = function(runtime, *args, **options)
        needed = type(runtime) if kind is Runtime else kind
        if not isinstance(result, needed):
            raise _failed(runtime.name, f"`{method}` gave {_kind(result)}, and must give {needed.__name__}")
        if isinstance(result, Machine):
            _check_machine(runtime, result)
        return result
    vars(call)["checks_result"] = True
    return call


def _check_machine(runtime: Runtime, machine: Machine) -> None:
    """Every size of a machine is a positive integer, and its vectors have a power of two of bytes."""
    counts = [("vector_bytes", machine.vector_bytes), ("registers", machine.registers)]
    counts += [("cache_bytes", size) for size in machine.cache_bytes] + [("groups", size) for size in machine.groups]
    for name, count in counts:
        if type(count) is not int or not 1 <= count < 1 << 62:
            raise _failed(runtime.name, f"`machine` says {name}={count!r}", "it is a whole number, at least 1")
    if machine.vector_bytes & (machine.vector_bytes - 1) or machine.vector_bytes > WIDEST:
        raise _failed(runtime.name, f"`machine` says vector_bytes={machine.vector_bytes}",
                      f"a power of two up to {WIDEST}; 1 where there are no vectors")


def why_unavailable(runtime: Runtime) -> Diagnostic | None:
    """What `available` says is missing, or how it failed; None where kernels can be compiled and run."""
    try:
        runtime.available()
    except CatenError as problem:
        said = problem.diagnostics[0]
        return Diagnostic(said.code, str(said.message or "it does not say why it cannot be used"), hint=None
                          if said.hint is None else str(said.hint))
    except (Exception, SystemExit) as problem:                # a runtime's own Python may fail in any way
        return _failed(runtime.name, f"`available` raised {type(problem).__name__}: {problem}").diagnostics[0]
    return None


def blamed(problem: BaseException, own: Path) -> ToolError | None:
    """An exception as a fault of the runtime file it passed through, or None. `own`: the folder of our runtimes."""
    frames = [(f, line) for f, line in traceback.walk_tb(problem.__traceback__)
              if Path(f.f_code.co_filename).parent != own and _defines_a_runtime(f.f_globals)]
    if not frames:
        return None
    frame, line = frames[-1]
    return _failed(f"{frame.f_code.co_filename}",
                   f"line {line}, in {frame.f_code.co_name}: {type(problem).__name__}: {problem}")


def _defines_a_runtime(module: Mapping[str, Any]) -> bool:
    name = str(module.get("__name__"))
    return not name.startswith("caten.") and any(
        inspect.isclass(c) and issubclass(c, Runtime) and c.__module__ == name for c in list(module.values()))


def _failed(runtime: str, what: str, hint: str | None = None) -> ToolError:
    return ToolError(Diagnostic("E605", f"the runtime {runtime} is at fault: {what}", hint=hint))


def _kind(value: object) -> str:
    noun = type(value).__name__
    return "None" if value is None else f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

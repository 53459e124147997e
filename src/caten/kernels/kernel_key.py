"""The cache key of a kernel: a hash of everything that determines the compiled code, known once the spec is read.

It covers the structure of the operators, the runtime with its options and compiler, the options that change code, and
caten itself. It covers names only if something else refers to them: a given schedule, the lines of -g, C compiler flags
(which may define macros), or a runtime that uses more than the symbols of a library; and those of programs of values.
"""
from __future__ import annotations

import hashlib
import sys
from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

from .. import driver
from ..core.program import Fusion, Lines, Program, Schedule
from ..frontend.op import OpProgram
from ..frontend.structure import Structure, spelling, structure
from ..frozen import frozen
from ..options import Options
from ..runtime import cpu, discover, own_code, tuning_records
from ..runtime.c_runtime import Compiled
from ..runtime.library_cache import file_identity
from ..runtime.library_cache import key as hashed
from ..runtime.protocol import Runtime
from ..tensor.values import TensorProgram

# Options that do not change what is compiled, and those that are in the programs.
NO_PART = frozenset(("only", "include_dirs", "schedule_file", "verify", "seed", "debug", "use_cache", "cache_dir",
                     "given", "temp_dir"))
IN_PROGRAMS = frozenset(("binds", "strided", "schedule", "instances", "case_instances"))


@frozen
class Key:
    """`name`: the hash. `spelled`: a hash of the operators with all names, places and words. `names`: of each operator
    its name, then those that its structure numbers. `keeps`: may it be found by other processes?"""

    name: str
    spelled: str
    names: tuple[tuple[str, ...], ...]
    keeps: bool


def key(programs: Sequence[Program], options: Options, runtime: Runtime) -> Key | None:
    """The key of a library; None for programs of a later level than values, with --debug, and without a cache."""
    ops = [p for p in programs if isinstance(p, OpProgram | TensorProgram)]
    if len(ops) < len(programs) or options.debug or not options.use_cache:
        return None
    found = [structure(op) if isinstance(op, OpProgram) else Structure(spelling(op), ()) for op in ops]
    spelled = hashed(*[spelling(op) for op in ops])
    others = _others_files(type(runtime))
    named = bool(others or options.cflags) or not finds_by_symbol(runtime) or any(
        op.first(Schedule) or op.first(Fusion) or op.first(Lines) for op in ops)
    parts = [*[s.tokens for s in found], *([spelled] if named else []), runtime.name,
             runtime.identity(), *others, *_options(options), *_tuned(ops, options), own_code.identity()]
    return Key(hashed("structure", *parts), spelled,
               tuple([(op.name, *s.names) for op, s in zip(ops, found, strict=True)]),
               not others and own_code.is_current())


def finds_by_symbol(runtime: Runtime) -> bool:
    """Does the runtime load a library by its manifest's symbols alone, so that it may be called under other names?"""
    return isinstance(runtime, Compiled) and type(runtime).load is Compiled.load


def _options(options: Options) -> list[str]:
    return [f"{f.name}={getattr(options, f.name)!r}" for f in fields(options) if f.name not in NO_PART | IN_PROGRAMS]


def _tuned(ops: Sequence[Program], options: Options) -> Iterator[str]:
    """The records of `caten tune` that -O3 may use, by the state of their files, and the CPU."""
    if options.opt < 3:
        return
    yield cpu.model()
    for op in ops:
        folder, beside = driver.record_places(op, options)
        files = sorted((folder / tuning_records.FOLDER).glob("*.json")) if folder is not None else []
        for file in [*files, *([] if beside is None else [beside])]:
            try:
                yield file_identity(file)
            except OSError:
                yield "none"


@cache
def _others_files(kind: type[Runtime]) -> tuple[str, ...]:
    """The hashes of the files of a runtime that does not come with caten; their imports are unknown."""
    modules = dict.fromkeys([c.__module__ for c in kind.__mro__ if c not in (ABC, object)])
    files = [Path(file).resolve() for name in modules if (file := getattr(sys.modules.get(name), "__file__", None))]
    own = (own_code.PACKAGE, discover.builtin_folder().resolve())
    return tuple([hashlib.sha256(f.read_bytes()).hexdigest() for f in files
                  if not any(f.is_relative_to(folder) for folder in own)])

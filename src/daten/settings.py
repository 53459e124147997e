"""The runtime and options with which graphs are compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caten.api import FIELDS, options_of
from caten.attach import runtime_of
from caten.errors import did_you_mean
from caten.options import Options

_FORGOTTEN: list[Callable[[], None]] = []                   # what was made with other options
_CURRENT: list[Options] = []


def options() -> Options:
    """The options of the last call of `use`; before any, the defaults and the environment."""
    if not _CURRENT:
        _CURRENT.append(options_of("compile"))
    return _CURRENT[-1]


def use(runtime: str = "clang", **more: Any) -> None:
    """Compile graphs for this runtime from now on, with options of `caten.compile` such as `config` and `opt`. Every
    graph and every `jit` trace compiled before is dropped, and compiled again when it is needed. TypeError for an
    unknown option, UsageError E668 for a wrong value, E602 for a runtime that there is not, E600 or E601 for a wrong
    option in `config`."""
    for name in more:
        if name not in FIELDS:
            meant = did_you_mean(name, sorted(FIELDS))
            raise TypeError(f"use() has no option '{name}'; " + (
                meant or f"the options are {', '.join(sorted(FIELDS))}"))
    wanted = options_of("compile", runtime=runtime, **more)
    runtime_of(wanted)                                      # it is refused here, not at the next value
    _CURRENT[:] = [wanted]
    for forget in _FORGOTTEN:
        forget()


def forgotten_by_use(forget: Callable[[], None]) -> None:
    """Register a function that `use` calls after it changed the options."""
    _FORGOTTEN.append(forget)

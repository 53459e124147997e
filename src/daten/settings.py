"""The runtime and options with which graphs are compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caten.api import FIELDS, options_of
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
    unknown option, UsageError E668 for a wrong value."""
    for name in more:
        if name not in FIELDS:
            raise TypeError(f"use() has no option '{name}'; the options are {', '.join(sorted(FIELDS))}")
    _CURRENT[:] = [options_of("compile", runtime=runtime, **more)]
    for forget in _FORGOTTEN:
        forget()


def forgotten_by_use(forget: Callable[[], None]) -> None:
    """Register a function that `use` calls after it changed the options."""
    _FORGOTTEN.append(forget)

"""For what machine graphs are compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caten.api import FIELDS, options_of
from caten.options import Options

_FORGOTTEN: list[Callable[[], None]] = []                   # what was made with other options
_CURRENT: list[Options] = []


def options() -> Options:
    """Those of `use`, or the defaults and the environment."""
    if not _CURRENT:
        _CURRENT.append(options_of("compile"))
    return _CURRENT[-1]


def use(runtime: str = "clang", **more: Any) -> None:
    """Compile graphs for a runtime, with options of `caten.compile` such as `config` and `opt`. What is compiled
    already for another one is forgotten. TypeError for an option that there is not."""
    for name in more:
        if name not in FIELDS:
            raise TypeError(f"use() has no option '{name}'; the options are {', '.join(sorted(FIELDS))}")
    _CURRENT[:] = [options_of("compile", runtime=runtime, **more)]
    for forget in _FORGOTTEN:
        forget()


def forgotten_by_use(forget: Callable[[], None]) -> None:
    """To be called when the options change."""
    _FORGOTTEN.append(forget)

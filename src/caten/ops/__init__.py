"""The operators of the library, each compiled for the types and ranks of its calls: `caten.ops.softmax(x, axis=0)`.

Their specs are the TOML files beside this one. `python -m caten ops` lists them.
"""
from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """The operator with this name, with the options of `caten.compile` without arguments."""
    from ..frontend import operator_library as library
    entry = library.find(name)
    if entry is None or name.startswith("_"):
        raise AttributeError(f"the library has no operator {name!r}; dir(caten.ops) lists them")
    from ..api import compile
    made = compile(f"{library.PREFIX}{name}")
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    from ..frontend import operator_library as library
    return [entry.name for entry in library.entries()]

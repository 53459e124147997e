"""Structures of values: tuples, named ones too, lists and dicts of them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of the same form, in which `change` replaces the values of a kind, which may be all: `object`."""
    if isinstance(value, tuple | list | dict):
        return with_parts(value, lambda v: mapped(v, kind, change))
    return change(value) if isinstance(value, kind) else value


def with_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tuple, a list or a dict with other parts; a tuple with names keeps its type."""
    if isinstance(value, dict):
        return {k: change(v) for k, v in value.items()}
    parts = [change(v) for v in value]
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)

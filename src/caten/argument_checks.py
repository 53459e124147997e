"""What the public Python functions take: every parameter is looked at before anything is done with it.

A wrong one is UsageError E668, which names the function, the parameter, what was given and what it takes.
"""
from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .core.size_inference import GREATEST_SIZE
from .echo import escape
from .errors import Diagnostic, UsageError

SHOWN = 60                                # characters of a value in a message

T = TypeVar("T")


def refuse(name: str, value: object, takes: str) -> NoReturn:
    """`caten.compile: opt is '2', a str; it takes 0, 1, 2 or 3`."""
    raise UsageError(Diagnostic("E668", f"caten.{name} is {described(value)}; it takes {takes}"))


def described(value: object) -> str:
    """A value and its type, however long it is and whatever its `repr` does."""
    kind = type(value).__name__
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:                                          # a class of the caller's may fail in any way
        text = ""
    shown = escape(" ".join(text.split()))
    noun = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    return f"{shown[:SHOWN]}{'…' * (len(shown) > SHOWN)}, {noun}" if shown else noun


def text(name: str, value: Any) -> str:
    """A str that is not empty."""
    if not isinstance(value, str) or not value:
        refuse(name, value, "a text")
    return str(value)


def path(name: str, value: Any, takes: str = "a path") -> str:
    """A str or a pathlib.Path, as str. Not bytes, and not the number of an open file."""
    if isinstance(value, os.PathLike):
        value = value.__fspath__()
    if not isinstance(value, str) or not value or "\0" in value:
        refuse(name, value, takes)
    return str(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        refuse(name, value, "True or False")
    return value


def whole(value: Any) -> int | None:
    """The integer that a value is (numpy's are); None where it is none. True is none."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        return None
    try:
        number: int = value.__index__()
    # An array of several elements has the method, and no value.
    except Exception:
        return None
    return number


def level(name: str, value: Any) -> int:
    """A level of optimisation."""
    if (number := whole(value)) is None or not 0 <= number <= 3:
        refuse(name, value, "0, 1, 2 or 3")
    return number


def listed(name: str, value: Any, each: Callable[[str, Any], T], takes: str) -> tuple[T, ...]:
    """A list or tuple of these."""
    if not isinstance(value, list | tuple):
        refuse(name, value, takes)
    return tuple([each(f"{name}[{n}]", item) for n, item in enumerate(value)])


def sizes(name: str, value: Any) -> tuple[tuple[str, int], ...]:
    """Sizes by name."""
    found = []
    for key, size in _items(name, value, 'a dict of sizes by name, {"M": 100}'):
        if (number := whole(size)) is None or not 0 <= number <= GREATEST_SIZE:
            refuse(f"{name}[{key!r}]", size, "an integer from 0 to 2^40")
        found.append((key, number))
    return tuple(found)


def config(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """The options of a runtime by key, as --config spells them."""
    takes = 'a dict of options by key, {"OMP": 1}'
    return tuple([(key, _setting(f"{name}[{key!r}]", v)) for key, v in _items(name, value, takes)])


def _setting(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | os.PathLike):
        return path(name, value, "a text, a number, True or False") if value != "" else ""
    if (number := whole(value)) is None or abs(number) >= 1 << 63:
        refuse(name, value, "a text, a number, True or False")
    return str(number)


def _items(name: str, value: Any, takes: str) -> list[tuple[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key for key in value):
        refuse(name, value, takes)
    return list(value.items())


def specs(name: str, value: Any) -> list[str | Path]:
    """Texts of specs and their files."""
    takes = "the file of a spec, its text, or a list of these"
    if isinstance(value, list | tuple):
        if not value:
            refuse(name, value, takes)
        return [_spec(f"{name}[{n}]", item, "the file of a spec or its text") for n, item in enumerate(value)]
    return [_spec(name, value, takes)]


def _spec(name: str, value: Any, takes: str) -> str | Path:
    if isinstance(value, os.PathLike):
        return Path(path(name, value, takes))
    # '-' would read what the process has as its standard input.
    if not isinstance(value, str) or not value.strip() or value == "-":
        refuse(name, value, takes)
    return str(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer from `least` on."""
    if (number := whole(value)) is None or not least <= number < 1 << 63:
        refuse(name, value, f"an integer from {least} on")
    return number


def seconds(name: str, value: Any) -> float:
    """A time in seconds, above 0 and up to one day."""
    number = _number(value)
    if number is None or not 0 < number <= 86400:
        refuse(name, value, "a time in seconds, above 0 and up to a day")
    return float(number)


def settings(name: str, value: Any) -> tuple[tuple[tuple[str, int | float], ...], ...]:
    """Sizes and scalars by name, or a list of such dicts."""
    takes = 'a dict of sizes and scalars by name, {"M": 100, "a": 2.0}, or a list of these'
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple([_setting_of(f"{name}[{n}]", item, takes) for n, item in enumerate(value)])
    return (_setting_of(name, value, takes),)


def _setting_of(name: str, value: Any, takes: str) -> tuple[tuple[str, int | float], ...]:
    found = []
    for key, item in _items(name, value, takes):
        if (number := _number(item)) is None:
            refuse(f"{name}[{key!r}]", item, "a number")
        found.append((key, number))
    return tuple(found)


def _number(value: Any) -> int | float | None:
    """The integer or float that a value is (numpy's are); None where it is neither."""
    if (number := whole(value)) is not None:
        return number
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else None

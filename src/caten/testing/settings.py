"""Sizes and scalars given as text, `M=100, a=2.0`: read, and matched with what a program declares."""
from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.program import Bind, Program, Scalar
from ..errors import CatenError, Diagnostic, UsageError, did_you_mean
from ..frontend.composite import named

GREATEST_SIZE = 1 << 40

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def read_settings(text: str, option: str) -> tuple[tuple[str, int | float], ...]:
    """`M = 100, a=2.0` -> pairs as written. Blank items are ignored, so an empty text is no settings."""
    return tuple([read_setting(item, option) for item in text.split(",") if item.strip()])


def read_setting(item: str, option: str) -> tuple[str, int | float]:
    """`M = 100` -> the name and the number. `option` names the place in a message."""
    name, equals, value = (part.strip() for part in item.partition("="))
    if not equals or not _NAME.match(name):
        raise UsageError(Diagnostic("E904", f"{option}: '{item.strip()}' is not NAME=NUMBER", hint=f'write {option} "M=100,N=100"'))
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise UsageError(Diagnostic("E904", f"{option}: '{value}', the value of {name}, is not a number"))


def bad_size(option: str, name: str, value: object) -> CatenError:
    """The error for a value that no size can have."""
    return UsageError(Diagnostic("E905", f"{option}: the size {name} cannot be {value}", hint="sizes are integers from 0 to 2^40"))


def checked_size(option: str, name: str, value: int) -> int:
    """The value of a size, from 0 to 2^40."""
    if not 0 <= value <= GREATEST_SIZE:
        raise bad_size(option, name, value)
    return value


def match_settings(given: Sequence[tuple[str, int | float]], programs: Sequence[Program], option: str = "--test") -> dict[str, int | float]:
    """The settings under the names that the programs declare, with what -D fixed added. Every size gets a value, or it is a
    UsageError; scalars without one are drawn."""
    sizes = dict.fromkeys([name for p in programs for name in p.sizes])
    scalars = {s.name: s.type for p in programs for s in p.all(Scalar)}
    known = (*sizes, *scalars)
    values: dict[str, int | float] = {}
    problems: list[Diagnostic] = []
    for name, value in given:
        target = named(name, known)
        if target is None:
            listing = "it has " + (", ".join(known) or "no sizes and no scalars")
            problems.append(Diagnostic("E904", f"{option}: there is no size or scalar '{name}'", hint=did_you_mean(name, known),
                                       notes=((listing, None),)))
        elif target in sizes and not (isinstance(value, int) and 0 <= value <= GREATEST_SIZE):
            problems += bad_size(option, target, value).diagnostics
        elif target in scalars and isinstance(value, float) and not scalars[target].startswith(("f", "c", "bf")):
            problems.append(Diagnostic("E904", f"{option}: {target} is {scalars[target]}, not {value}"))
        else:
            values[target] = value
    for bind in [b for p in programs for b in p.all(Bind)]:
        if values.setdefault(bind.name, bind.value) != bind.value:
            problems.append(Diagnostic("E905", f"{option}: {bind.name} is {values[bind.name]}, but -D{bind.name}={bind.value} fixed it"))
    if missing := [name for name in sizes if name not in values and not problems]:
        shown = {name: values.get(name, 100) for name in sizes}
        hint = f'{option} "{",".join([f"{n}={v}" for n, v in shown.items()])}"' if option.startswith("-") else \
               f"sizes = {{ {', '.join([f'{n} = {v}' for n, v in shown.items()])} }}"
        problems.append(Diagnostic("E906", f"{option}: the size{'s' if len(missing) > 1 else ''} {', '.join(missing)} "
                                           f"{'are' if len(missing) > 1 else 'is'} missing", hint=hint))
    if problems:
        raise UsageError(*problems)
    return values

"""The little languages inside option values: sizes and scalars (`M=100, a=2.0`) and the runtime's options (`OMP=1,MARCH=native`)."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ..core.program import Bind, Program, Scalar
from ..errors import CatenError, Diagnostic, UsageError, did_you_mean

GREATEST_SIZE = 1 << 40

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_ITEM = re.compile(r"""\s*(?P<key>[A-Za-z_][\w-]*)\s*(?:(?P<equals>=)\s*)?
                       (?:"(?P<quoted>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^,"']*))\s*(?:,|\Z)""", re.VERBOSE)


def read_settings(text: str, option: str) -> tuple[tuple[str, int | float], ...]:
    """`M = 100, a=2.0` -> pairs as written. Blank items are ignored, so an empty text is no settings."""
    return tuple([_setting(item, option) for item in text.split(",") if item.strip()])


def read_binds(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The values of -D: `M=100`; a bare name is 1, as in gcc. The last of several for one name counts."""
    binds: dict[str, int] = {}
    for text in texts:
        name, value = _setting(text if "=" in text else f"{text}=1", "-D")
        if not isinstance(value, int):
            raise _bad_size("-D", name, value)
        binds[name] = _checked_size("-D", name, value)
    return tuple(binds.items())


def _setting(item: str, option: str) -> tuple[str, int | float]:
    name, equals, value = (part.strip() for part in item.partition("="))
    if not equals or not _NAME.match(name):
        raise UsageError(Diagnostic("E904", f"{option}: '{item.strip()}' is not NAME=NUMBER", hint=f'write {option} "M=100,N=100"'))
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise UsageError(Diagnostic("E904", f"{option}: '{value}', the value of {name}, is not a number"))


def _bad_size(option: str, name: str, value: object) -> CatenError:
    return UsageError(Diagnostic("E905", f"{option}: the size {name} cannot be {value}", hint="sizes are integers from 0 to 2^40"))


def _checked_size(option: str, name: str, value: int) -> int:
    if not 0 <= value <= GREATEST_SIZE:
        raise _bad_size(option, name, value)
    return value


def fold(name: str) -> str:
    """Names are equal after folding case and `-`/`_`, as in bodies."""
    return name.casefold().replace("-", "_")


def match_settings(given: Sequence[tuple[str, int | float]], programs: Sequence[Program], option: str = "--test") -> dict[str, int | float]:
    """The settings under the names that the programs declare, with what -D fixed added. Every size gets a value, or it is a
    UsageError; scalars without one are drawn."""
    sizes = dict.fromkeys([name for p in programs for name in p.sizes])
    scalars = {s.name: s.type for p in programs for s in p.all(Scalar)}
    known = (*sizes, *scalars)
    values: dict[str, int | float] = {}
    problems: list[Diagnostic] = []
    for name, value in given:
        target = name if name in known else next((k for k in known if fold(k) == fold(name)), None)
        if target is None:
            listing = "it has " + (", ".join(known) or "no sizes and no scalars")
            problems.append(Diagnostic("E904", f"{option}: there is no size or scalar '{name}'", hint=did_you_mean(name, known) or listing,
                                       notes=((listing, None),)))
        elif target in sizes and not (isinstance(value, int) and 0 <= value <= GREATEST_SIZE):
            problems += _bad_size(option, target, value).diagnostics
        elif target in scalars and isinstance(value, float) and not scalars[target].startswith(("f", "c", "bf")):
            problems.append(Diagnostic("E904", f"{option}: {target} is {scalars[target]}, not {value}"))
        else:
            values[target] = value
    for bind in [b for p in programs for b in p.all(Bind)]:
        if values.setdefault(bind.name, bind.value) != bind.value:
            problems.append(Diagnostic("E905", f"{option}: {bind.name} is {values[bind.name]}, but -D{bind.name}={bind.value} fixed it"))
    if missing := [name for name in sizes if name not in values and not problems]:
        example = ",".join([f"{name}={values.get(name, 100)}" for name in sizes])
        problems.append(Diagnostic("E906", f"{option}: the size{'s' if len(missing) > 1 else ''} {', '.join(missing)} "
                                           f"{'are' if len(missing) > 1 else 'is'} missing", hint=f'{option} "{example}"'))
    if problems:
        raise UsageError(*problems)
    return values


def read_config(text: str, known: Callable[[], Sequence[str]]) -> list[tuple[str, str]]:
    """`OMP=1,MARCH="native"` -> pairs. `MARCH"native"` means MARCH=native, also after a shell took the quotes away (`MARCHnative`)."""
    pairs: list[tuple[str, str]] = []
    pos = 0
    while pos < len(text):
        m = _ITEM.match(text, pos)
        if m is None:
            raise UsageError(Diagnostic("E907", f"--config: '{text[pos:].strip()}' is not KEY=VALUE", hint="write --config OMP=1,MARCH=native"))
        key, pos = m["key"], m.end()
        value = next(v for v in (m["quoted"], m["single"], m["plain"]) if v is not None).strip()
        if not m["equals"] and m["plain"] is not None:
            prefix = max([k for k in known() if key.upper().startswith(k.upper())], key=len, default="")
            if value or not prefix or len(prefix) == len(key):
                raise UsageError(Diagnostic("E907", f"--config: {key} has no value", hint=f"write --config {key}=VALUE"))
            key, value = key[:len(prefix)], key[len(prefix):]
        pairs.append((key, value))
    return pairs

"""Parse the values of -D, and of --config (`OMP=1,MARCH=native`)."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ..errors import Diagnostic, UsageError
from ..testing.sizes_and_scalars import bad_size, checked_size, read_setting

_ITEM = re.compile(r"""\s*(?P<key>[A-Za-z_][\w-]*)\s*(?:(?P<equals>=)\s*)?
                       (?:"(?P<quoted>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^,"']*))\s*(?:,|\Z)""", re.VERBOSE)


def read_binds(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The values of -D: `M=100`; a bare name is 1, as in gcc. For one name the last value counts."""
    binds: dict[str, int] = {}
    for text in texts:
        name, value = read_setting(text if "=" in text else f"{text}=1", "-D")
        if not isinstance(value, int):
            raise bad_size("-D", name, value)
        binds[name] = checked_size("-D", name, value)
    return tuple(binds.items())


def read_config(text: str, known: Callable[[], Sequence[str]]) -> list[tuple[str, str]]:
    """`OMP=1,MARCH="native"` as pairs. `MARCH"native"` means MARCH=native, also after a shell has removed the quotes
    (`MARCHnative`). `known`: the keys of the runtime."""
    pairs: list[tuple[str, str]] = []
    pos = 0
    while pos < len(text):
        m = _ITEM.match(text, pos)
        if m is None:
            raise UsageError(Diagnostic("E907", f"--config: '{text[pos:].strip()}' is not KEY=VALUE",
                                        hint="write --config OMP=1,MARCH=native"))
        key, pos = m["key"], m.end()
        value = next(v for v in (m["quoted"], m["single"], m["plain"]) if v is not None).strip()
        if not m["equals"] and m["plain"] is not None:
            prefix = max([k for k in known() if key.upper().startswith(k.upper())], key=len, default="")
            if value or not prefix or len(prefix) == len(key):
                raise UsageError(Diagnostic("E907", f"--config: {key} has no value",
                                            hint=f"write --config {key}=VALUE"))
            key, value = key[:len(prefix)], key[len(prefix):]
        pairs.append((key, value))
    return pairs

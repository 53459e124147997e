"""Inputs and outputs of `caten run`: `A=a.npy`, `A=data.npz:key`, `alpha=2.0`."""
from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import CatenError, Diagnostic, UsageError
from ..frozen import frozen
from .atomic_files import STDOUT, write

_ARGUMENT = re.compile(r"(?P<name>[A-Za-z_][\w-]*)=(?P<value>.+)\Z", re.DOTALL)


def split(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Separate specs from `NAME=VALUE` arguments. An existing file whose name looks like an argument is a spec."""
    matches = [(w, m) for w in words if (m := _ARGUMENT.match(w)) and not os.path.isfile(w)]
    names = [m["name"] for _, m in matches]
    if (twice := next((n for n in names if names.count(n) > 1), None)) is not None:
        raise UsageError(Diagnostic("E913", f"{twice} is given twice"))
    data = {m["name"]: m["value"] for _, m in matches}
    return tuple([w for w in words if w not in [word for word, _ in matches]]), data


def load(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of the arguments: numbers, and arrays read from files."""
    problems: list[Diagnostic] = []
    values: dict[str, Any] = {}
    for name, text in given.items():
        try:
            values[name] = _value(name, text)
        except CatenError as problem:
            problems += problem.diagnostics
    if problems:
        raise UsageError(*problems)
    _check_memory([v for v in values.values() if isinstance(v, _Stored)])
    return {name: value.read() if isinstance(value, _Stored) else value for name, value in values.items()}


@frozen
class _Stored:
    """An array in a file, not yet read. `text`: the argument; `entry`: the name of the array in a .npz; `bytes`: its
    uncompressed size."""

    text: str
    path: Path
    entry: str | None
    bytes: int

    def read(self) -> Any:
        from ..testing import archives
        try:
            return archives.load(self.path, self.entry)
        except archives.TORN as problem:
            raise _unreadable(self.text, self.path, problem) from None


def _check_memory(stored: Sequence[_Stored]) -> None:
    """E913 if the arrays exceed the memory of this machine: a small compressed file may hold a huge array."""
    if not stored:
        return
    from ..testing.archives import memory
    most, here = max(stored, key=lambda s: s.bytes), memory()
    if (total := sum([s.bytes for s in stored])) > here:
        raise UsageError(Diagnostic("E913", f"{most.text}: the arrays need {total >> 20:,} MiB "
                                            f"({most.bytes >> 20:,} MiB for this one), "
                                            f"and this machine has {here >> 20:,} MiB"))


def _value(name: str, text: str) -> Any:
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    file, _, entry = text.rpartition(":") if ".npz:" in text else (text, "", name)
    path = Path(file)
    from ..testing import archives
    try:
        if not archives.is_archive(path):
            return _Stored(f"{name}={text}", path, None, archives.single(path).bytes)
        found = archives.entries(path)
    except FileNotFoundError:
        raise UsageError(Diagnostic("E913", f"{name}={text}: there is no file '{path}'",
                                    hint="give a number, a .npy or a .npz file")) from None
    except archives.TORN as problem:
        raise _unreadable(f"{name}={text}", path, problem) from None
    if entry not in found:
        raise UsageError(Diagnostic("E913", f"{name}={text}: {path} has no entry '{entry}'",
                                    hint=f"its entries: {', '.join(found) or 'none'}"))
    return _Stored(f"{name}={text}", path, entry, found[entry].bytes)


def _unreadable(text: str, path: Path, problem: Exception) -> CatenError:
    reason = getattr(problem, "strerror", None) or str(problem).split("\n", 1)[0]
    return UsageError(Diagnostic("E913", f"{text}: {path} cannot be read: {reason}",
                                 hint="give a number, a .npy or a .npz file"))


def save(outputs: Mapping[str, Any], path: str | None) -> None:
    """Write outputs to a .npz (by name), a single output to a .npy, or all as text to stdout."""
    import numpy as np
    buffer = io.BytesIO()
    if path is None or path == STDOUT:
        write(STDOUT, "".join([f"{n} {a.dtype}[{' '.join(map(str, a.shape))}]\n{np.array2string(a)}\n"
                               for n, a in outputs.items()]))
    elif path.endswith(".npy"):
        (array,) = outputs.values()
        np.save(buffer, array)
        write(path, buffer.getvalue())
    else:
        np.savez(buffer, **outputs)
        write(path, buffer.getvalue())


def check_output(path: str | None, count: int) -> None:
    """Check before the run that the file named by -o can hold the outputs. UsageError E903."""
    if path is None or path == STDOUT or path.endswith(".npz") or (path.endswith(".npy") and count == 1):
        return
    reason = f"a .npy holds one array, not {count}" if path.endswith(".npy") else "the suffix is not .npy or .npz"
    raise UsageError(Diagnostic("E903", f"-o {path}: {reason}", hint="use -o out.npz"))

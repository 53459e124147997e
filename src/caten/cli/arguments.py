"""The data of `caten run`: `A=a.npy`, `A=data.npz:key`, `alpha=2.0`, and what comes out."""
from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CatenError, Diagnostic, UsageError
from .files import STDOUT, write

if TYPE_CHECKING:
    import numpy as np

_ARGUMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.+)\Z", re.DOTALL)


def split(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Specs and `NAME=VALUE` arguments. A file whose name looks like an argument is a spec."""
    matches = [(w, m) for w in words if (m := _ARGUMENT.match(w)) and not Path(w).is_file()]
    names = [m["name"] for _, m in matches]
    if (twice := next((n for n in names if names.count(n) > 1), None)) is not None:
        raise UsageError(Diagnostic("E913", f"{twice} is given twice"))
    data = {m["name"]: m["value"] for _, m in matches}
    return tuple([w for w in words if w not in [word for word, _ in matches]]), data


def load(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of the arguments: numbers, and arrays from files."""
    problems: list[Diagnostic] = []
    values: dict[str, Any] = {}
    for name, text in given.items():
        try:
            values[name] = _value(name, text)
        except CatenError as problem:
            problems += problem.diagnostics
    if problems:
        raise UsageError(*problems)
    return values


def _value(name: str, text: str) -> Any:
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    path, _, entry = text.rpartition(":") if ".npz:" in text else (text, "", name)
    import numpy as np
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            if entry not in loaded.files:
                raise UsageError(Diagnostic("E913", f"{name}={text}: {path} has no entry '{entry}'",
                                            hint=f"it has {', '.join(loaded.files) or 'none'}"))
            return loaded[entry]
    except CatenError:
        raise
    except FileNotFoundError:
        raise UsageError(Diagnostic("E913", f"{name}={text}: there is no file '{path}'", hint="give a number, a .npy or a .npz file")) from None
    except (OSError, ValueError, EOFError, MemoryError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem).split("\n", 1)[0]
        raise UsageError(Diagnostic("E913", f"{name}={text}: {path} cannot be read: {reason}", hint="give a number, a .npy or a .npz file")) from None


def save(outputs: Mapping[str, np.ndarray[Any, Any]], path: str | None) -> None:
    """Outputs to a .npz (all, by name) or .npy (the only one), or as text to stdout."""
    import numpy as np
    buffer = io.BytesIO()
    if path is None or path == STDOUT:
        write(STDOUT, "".join([f"{n} {a.dtype}[{' '.join(map(str, a.shape))}]\n{np.array2string(a)}\n" for n, a in outputs.items()]))
    elif path.endswith(".npy"):
        (array,) = outputs.values()
        np.save(buffer, array)
        write(path, buffer.getvalue())
    else:
        np.savez(buffer, **outputs)  # type: ignore[arg-type]  # its stub takes a bool keyword of its own
        write(path, buffer.getvalue())


def check_output(path: str | None, count: int) -> None:
    """Before anything runs: can the outputs go where -o says?"""
    if path is None or path == STDOUT or path.endswith(".npz") or (path.endswith(".npy") and count == 1):
        return
    reason = f"{count} outputs do not fit into a .npy" if path.endswith(".npy") else "that is no .npy or .npz"
    raise UsageError(Diagnostic("E903", f"-o {path}: {reason}", hint="use -o out.npz"))

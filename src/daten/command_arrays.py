"""The arrays that a command of `daten` reads from files, or draws."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import numpy as np

from caten.core.numpy_types import kind_of
from caten.errors import CatenError, error
from caten.testing import archives

from . import element_types


def drawn(program: Any, sizes: Sequence[str], known: Mapping[str, np.ndarray] = MappingProxyType({})
          ) -> dict[str, np.ndarray]:
    """Random inputs, of the sizes of those that are known: standard normal, seed 0; integers and bools are 0."""
    extents = dict.fromkeys(program.sizes, 32)
    for name, array in known.items():
        extents |= {e: n for e, n in zip(program.inputs[name].shape, array.shape, strict=False) if isinstance(e, str)}
    extents |= {name: _count(name, value) for name, value in map(pair, sizes)}
    for name in extents:
        if name not in program.sizes:
            raise error("E678", f"no input has the size '{name}'", hint=f"the sizes are {', '.join(program.sizes)}")
    draw = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for name, declared in program.inputs.items():
        if name in known:
            continue
        shape = [extents[e] if isinstance(e, str) else e for e in declared.shape]
        kind = element_types.dtype(declared.dtype)
        try:
            values = draw.standard_normal(shape) if kind.kind in ("float", "complex") else np.zeros(shape)
        except ValueError:                                   # beyond what NumPy counts
            raise MemoryError from None
        found[name] = values.astype(kind.numpy)
    return found


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.BadParameter(f"'{text}' is not of the form NAME=VALUE")
    return name, value


def array(path: str) -> np.ndarray:
    """The array of a .npy file. E678 where it is no such file."""
    if not Path(path).exists():
        raise error("E678", f"cannot read {path}: there is no such file")
    try:
        if not archives.is_archive(Path(path)):
            return _numbers(path, archives.load(Path(path), None))
    except archives.TORN as problem:
        raise _unreadable(path, problem, "np.save writes such a file") from None
    raise error("E678", f"{path} is a .npz file, with arrays by name", hint="np.save writes a file of one array")


def arrays(path: str, program: Any) -> dict[str, np.ndarray]:
    """The training data: arrays of the same number of rows. E678 where it is no such data."""
    try:
        known = archives.entries(Path(path))
        found = {name: archives.load(Path(path), name) for name in program.inputs if name in known}
    except archives.TORN as problem:
        raise _unreadable(path, problem, "np.savez writes such a file") from None
    if missing := [name for name in program.inputs if name not in found]:
        raise error("E678", f"{path} has no array '{missing[0]}'", hint="it has one for each input, by name")
    if not found:
        raise error("E678", "the program has no input to train on", hint='[inputs] X = "X{float}[B 64]" declares one')
    for name, values in found.items():
        if not _numbers(f"{path}: '{name}'", values).ndim:
            raise error("E678", f"{path}: '{name}' is one number, and has no rows")
    rows = {name: len(values) for name, values in found.items()}
    if len(set(rows.values())) > 1:
        raise error("E678", f"{path}: the arrays differ in their rows: "
                            f"{', '.join([f'{name!r} has {n}' for name, n in rows.items()])}",
                    hint="row n of each array belongs to example n")
    if not all(rows.values()):
        raise error("E678", f"{path}: the arrays have no rows", hint="training needs one row at least")
    try:
        return {name: program.tensor(name, values).numpy() for name, values in found.items()}
    except CatenError as problem:
        of_file = [replace(d, message=f"{path}: {d.message}", place=None) for d in problem.diagnostics]
        raise CatenError(*of_file) from None


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(f"{name} is a number, not '{text}'")
    return int(text)


def _numbers(what: str, values: np.ndarray) -> np.ndarray:
    """The array. E678 if it has text, records or Python objects."""
    raw = values.dtype.kind == "V" and values.dtype.names is None          # perhaps bfloat16, as NumPy saves it
    if kind_of(values.dtype) not in "biufc" and not raw:
        raise error("E678", f"{what} has elements of type {values.dtype}, and no numbers")
    return values


def _unreadable(path: str, problem: Exception, hint: str) -> CatenError:
    reason = getattr(problem, "strerror", None) or str(problem).split("\n", 1)[0] or "it is damaged"
    return error("E678", f"cannot read {path}: {reason}", hint=hint)

"""State dicts in files: safetensors, written as a whole or not at all."""
from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from caten.core.numpy_types import kind_of, numpy_dtype
from caten.errors import error

# The element types of such files that tensors have; NumPy itself has none for BF16.
TYPES = {"BOOL": "bool", "BF16": "bf16", "F16": "f16", "F32": "f32", "F64": "f64", "C64": "c64",
         **{f"{sign}{bits}": f"{sign.lower()}{bits}" for sign in "IU" for bits in (8, 16, 32, 64)}}
LACKING = "pip install 'caten[models]'"


def save(values: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Write arrays by name. The file that was there stays whole if this fails. OSError as of `open`, for `path`;
    TypeError for what are no arrays of numbers by name, such as a module."""
    if not isinstance(values, Mapping):
        raise TypeError(f"save takes arrays by name, as state_dict() gives, not {values!r}")
    for name, value in values.items():
        if kind_of(np.asarray(value).dtype) not in "biufc":
            raise TypeError(f"save: {name} is no array of numbers, but {value!r}")
    library = _library()
    data = library.numpy.save({name: np.asarray(value, order="C") for name, value in values.items()})
    try:
        _replace(Path(os.path.realpath(path)), data)
    except OSError as problem:                               # which knows no name, or that of the temporary file
        raise OSError(problem.errno, problem.strerror, str(path)) from None


def _replace(target: Path, data: bytes) -> None:
    """Write a temporary file in the same folder and rename it; devices and pipes are written directly."""
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:                  # unlike one of mkstemp, readable as the umask says
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a file by name. E679 for a file that is no such file."""
    data = Path(path).read_bytes()
    library = _library()
    try:
        tensors = library.deserialize(data)
    except Exception as problem:                             # of the library's own type
        raise error("E679", f"{path} is no file of weights: {problem}", hint="save writes such a file") from None
    found: dict[str, np.ndarray] = {}
    for name, tensor in tensors:
        if tensor["dtype"] not in TYPES:
            raise error("E679", f"{path}: '{name}' has elements of type {tensor['dtype']}",
                        hint=f"known are {', '.join(TYPES)}")
        found[name] = np.frombuffer(tensor["data"], numpy_dtype(TYPES[tensor["dtype"]])).reshape(tensor["shape"])
    return found


def _library() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise error("E679", "safetensors, which reads and writes weights, is not installed", hint=LACKING) from None
    return safetensors

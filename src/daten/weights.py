"""State dicts in files: safetensors, written as a whole or not at all."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from caten.errors import error

LACKING = "pip install 'caten[models]'"


def save(values: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Write arrays by name. The file that was there stays whole if this fails. OSError as of `open`."""
    from_numpy = _library().save
    target = Path(path)
    data = from_numpy({name: np.ascontiguousarray(value) for name, value in values.items()})
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a file by name. E679 for a file that is no such file."""
    data = Path(path).read_bytes()
    library = _library()
    try:
        found: dict[str, np.ndarray] = library.load(data)
    except Exception as problem:                             # of the library's own type
        raise error("E679", f"{path} is no file of weights: {problem}", hint="save writes such a file") from None
    return found


def _library() -> Any:
    try:
        from safetensors import numpy
    except ImportError:
        raise error("E679", "safetensors, which reads and writes weights, is not installed", hint=LACKING) from None
    return numpy

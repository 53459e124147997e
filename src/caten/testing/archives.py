"""Arrays in .npy and .npz files that are not trusted: what a file declares is looked at before anything is unpacked."""
from __future__ import annotations

import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ..frozen import frozen

# What numpy (which reads a header as Python), zipfile and zlib raise for an archive that is torn, or none.
TORN = (OSError, ValueError, EOFError, MemoryError, KeyError, IndexError, TypeError, OverflowError, RuntimeError,
        NotImplementedError, SyntaxError,
        zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError)
ZIP = b"PK"                            # what a .npz begins with


@frozen
class Entry:
    """An array as its file declares it."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def is_archive(path: Path) -> bool:
    """Is it a .npz, with arrays by name?"""
    with open(path, "rb") as file:
        return file.read(2) == ZIP


def entries(path: Path) -> dict[str, Entry]:
    """The arrays of a .npz by name. Raises one of TORN."""
    with zipfile.ZipFile(path) as archive:
        found = {}
        for info in archive.infolist():
            with archive.open(info) as file:
                found[info.filename.removesuffix(".npy")] = _declared(file, info.file_size)
        return found


def single(path: Path) -> Entry:
    """The array of a .npy. Raises one of TORN."""
    with open(path, "rb") as file:
        return _declared(file, path.stat().st_size)


def load(path: Path, name: str | None) -> np.ndarray:
    """The array of a .npy, or that of this name in a .npz. Raises one of TORN."""
    with _quietly():
        loaded = np.load(path, allow_pickle=False)
        if name is None:
            return np.asarray(loaded)
        with loaded:
            return np.asarray(loaded[name])


def memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _quietly() -> Iterator[None]:
    """Without Python's warnings about a header: it is a string with wrong escapes, say, or one that Python 2 wrote."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _declared(file: IO[bytes], length: int) -> Entry:
    """The header of an array in a file of this length, which must hold as many elements as it says."""
    read_header = {(1, 0): np.lib.format.read_array_header_1_0,
                   (2, 0): np.lib.format.read_array_header_2_0}.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError("it is no array of numbers")
    with _quietly():
        shape, _, dtype = read_header(file)
    entry = Entry(shape, dtype)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError("it is no array of numbers")
    if file.tell() + entry.bytes != length:
        raise ValueError(f"it should hold {entry.bytes} bytes of elements, and has {length - file.tell()}")
    return entry

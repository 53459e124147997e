"""What a child process sends back through a pipe: a length, JSON of that length, then the elements of arrays, which
are received into place."""
from __future__ import annotations

import json
import math
import os
import select
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.numpy_types import named

MOST = 1 << 20                         # bytes of one system call


class Late(Exception):
    """The time is up."""


class Gone(Exception):
    """The pipe was closed before everything had been sent."""


def send(writer: int, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Facts that JSON can say, and arrays of numbers."""
    dense = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    types = {name: a.dtype.name if a.dtype.kind == "V" else a.dtype.str for name, a in dense.items()}
    head = json.dumps({"facts": facts, "arrays": [[name, types[name], a.shape] for name, a in dense.items()]}).encode()
    for view in (memoryview(len(head).to_bytes(8, "little") + head), *[_bytes_of(a) for a in dense.values()]):
        while view:
            view = view[os.write(writer, view[:MOST]):]


def receive(reader: int, seconds: float | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was sent, within so many seconds. Raises Late or Gone."""
    deadline = None if seconds is None else time.monotonic() + seconds
    length = bytearray(8)
    _fill(reader, memoryview(length), deadline)
    text = bytearray(int.from_bytes(length, "little"))
    _fill(reader, memoryview(text), deadline)
    head = json.loads(text)
    arrays = {name: np.empty(shape, named(dtype)) for name, dtype, shape in head["arrays"]}
    for array in arrays.values():
        _fill(reader, _bytes_of(array), deadline)
    return head["facts"], arrays


def _bytes_of(array: np.ndarray) -> memoryview:
    """The memory of a dense array."""
    return array.reshape(math.prod(array.shape)).view(np.uint8).data if array.size else memoryview(b"")


def _fill(reader: int, view: memoryview, deadline: float | None) -> None:
    while view:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and (left <= 0 or not select.select([reader], [], [], left)[0]):
            raise Late
        count = os.readv(reader, [view[:MOST]])
        if not count:
            raise Gone
        view = view[count:]

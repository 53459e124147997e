"""State dicts: the values of tensors by name."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from caten.core.numpy_types import kind_of


def fitting(values: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The values for tensors by name, as arrays. ValueError for one of another shape than the tensor's, and for what is
    no number of its kind: complex ones for a real tensor, texts, objects."""
    found = {name: np.asarray(values[name]) for name in own}
    for name, array in found.items():
        if array.shape != own[name].shape:
            raise ValueError(f"{name} has the shape {own[name].shape}, not {array.shape}")
        kind = kind_of(array.dtype)
        if kind not in "biufc" or (kind == "c" and own[name].dtype.kind != "complex"):
            raise ValueError(f"{name} has elements of type {own[name].dtype}, not {array.dtype}")
    return found

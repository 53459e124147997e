"""The cases of the table of features: each crossed with the element types that it is about."""
from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES, is_packed
from .cases import Case, Kernel, composite, identifier, spelled
from .feature_table import FEATURES, Feature, Sizes

KINDS: dict[str, tuple[str, ...]] = {
    "all": ("bool", "int", "uint", "float", "complex"), "number": ("int", "uint", "float", "complex"),
    "real": ("int", "uint", "float"),
    "float": ("float",), "integer": ("int", "uint"), "bool": ("bool",),
}
_WORD = re.compile(r"\bT\b")


def feature_cases() -> Iterator[Case]:
    """Rows are features, columns element types."""
    for feature in FEATURES:
        for dtype in _types(feature):
            kernel = _kernel(feature, dtype)
            strides = feature.strides
            for sizes in feature.at:
                name = ",".join([f"{k}={v}" for k, v in sizes.items()]) or "once"
                yield Case("feature", feature.name, dtype, name, kernel, partial(_given, feature, dtype, sizes),
                           feature.judge,
                           None if strides is None else partial(_strides, strides, DTYPES[dtype].bytes), feature.shift)


def _types(feature: Feature) -> list[str]:
    found = [d for d in DTYPES if DTYPES[d].kind in KINDS[feature.kinds] and (not is_packed(d) or _moves(feature))]
    if not feature.first:
        return found
    return [next(d for d in found if DTYPES[d].kind == kind and DTYPES[d].bits >= 32) for kind in KINDS[feature.kinds]
            if kind != "bool"]


def _moves(feature: Feature) -> bool:
    """Are elements only moved, by arrays without strides, as elements of 4 bits are?"""
    return feature.kinds == "all" and not feature.strided


def _kernel(feature: Feature, dtype: str) -> Kernel:
    name = identifier(feature.name, dtype)

    def filled(text: str) -> str:
        return text.replace("INNER", f"{name}_inner")
    inputs, outputs = ({n: _WORD.sub(dtype, t, count=1) for n, t in tensors.items()}
                       for tensors in (feature.inputs, feature.outputs))
    body, before = (_WORD.sub(spelled(dtype), filled(text)) for text in (feature.body, feature.before))
    declared = [t[:t.index("[")] for t in (*inputs.values(), *outputs.values()) if "[" in t]
    return Kernel(name, f"{before}\n{composite(name, inputs, outputs, body)}".strip(), frozenset(declared), (),
                  feature.config, feature.strided)


def _given(feature: Feature, dtype: str, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
    return {**sizes, **feature.given(dtype, sizes, rng)}


def _strides(strides: Any, size: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    found: tuple[int, ...] = strides(shape, size)
    return found

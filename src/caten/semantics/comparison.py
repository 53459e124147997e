"""Comparison of a computed array with the reference and its rounding bound."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES, FORMATS, part
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Program
from ..frozen import frozen

TOLERANCE = 2                          # greatest error in bounds, plus one unit in the last place
WIDE = 8                               # a bound above 1/WIDE of the greatest value says little


@frozen
class Comparison:
    """`ratio`: the greatest (|error| - 1 ulp) ÷ bound. `worst`: its index. `loose`: the elements where any value
    passes. `compared`: all others; if there are none, `passed` means nothing. `wide`: how many have a wide bound
    (WIDE)."""

    ratio: float
    worst: tuple[int, ...] | None
    passed: bool
    loose: int
    compared: int
    wide: int = 0


def widened(program: Program, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `oracle.bounded(program)` from those of `program`: outputs in float64, bounds and marks zero."""
    given = dict(arguments)
    for buffer in program.all(Buffer):
        if buffer.access != "in":
            array = np.asarray(arguments[buffer.name])
            kind = DTYPES[buffer.type].kind
            given[buffer.name] = array.astype({"float": "float64", "complex": "complex128"}.get(kind, array.dtype))
            given[f"{buffer.name}__loose"] = np.zeros(array.shape, np.uint8)
            if kind in ("float", "complex"):
                given[f"{buffer.name}__bound"] = np.zeros(array.shape)
    return given


def check(result: Any, reference: Any, bound: Any, loose: Any, dtype: str) -> Comparison:
    """Check that `result`, an array of element type `dtype`, agrees with the float64 (or exact integer) `reference`.

    An element passes if its error is at most 2 · bound + 1 ulp. Integers must be equal; NaN and infinities must match,
    in each part of a complex number (the other part is compared as usual). An element marked `loose`, or with an
    infinite bound, passes and is counted. With a NaN bound only equal values pass. `bound` may be None (0).
    """
    got, expected = np.asarray(result), np.asarray(reference)
    free = np.zeros(expected.shape, bool) if loose is None else np.asarray(loose) != 0
    if DTYPES[dtype].kind not in ("float", "complex"):
        return _comparison(np.where(got == expected, 0.0, np.inf), free)
    like, real = numpy_dtype(dtype), part(dtype)
    limit = np.zeros(expected.shape) if bound is None else np.asarray(bound, np.float64)
    with np.errstate(all="ignore"):
        rounded = expected.astype(like)
        parts = [(got.real, expected.real, rounded.real), (got.imag, expected.imag,
                                                           rounded.imag)][:2 if np.iscomplexobj(expected) else 1]
        one_ulp = spacing(_length([np.where(np.isfinite(e), e, 0.0) for _, e, _ in parts]), real)
        error = _length([_error(g, e, r, TOLERANCE * limit + one_ulp, real) for g, e, r in parts])
        beyond = np.maximum(error - one_ulp, 0.0)
        ratio = np.where(beyond == 0, 0.0, beyond / limit)
        ratio = np.where(error == 0, 0.0, np.where(np.isnan(ratio) | ~np.isfinite(error), np.inf, ratio))
        greatest = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
        wide = int(np.count_nonzero(np.isfinite(limit) & (limit * WIDE > greatest) & (limit > 0) & ~free))
    return replace(_comparison(ratio, free | np.isposinf(limit)), wide=wide)


def _error(got: Any, expected: Any, rounded: Any, reach: Any, dtype: str) -> Any:
    """|got - expected| of real numbers or of one part of complex ones. 0 for equal values, infinities and NaN included,
    and for an infinite result where the expected value reaches the greatest number."""
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    edge = np.isinf(got) & np.isfinite(expected) & (np.abs(expected) + reach > FORMATS[dtype][2])
    return np.where(same | edge, 0.0, np.abs(got.astype(np.float64) - expected))


def _length(parts: list[Any]) -> Any:
    return np.abs(parts[0]) if len(parts) == 1 else np.hypot(*parts)


def spacing(size: Any, dtype: str) -> Any:
    """The distance between neighbouring numbers of a float type near `size`."""
    precision, last, greatest = FORMATS[dtype]
    return np.ldexp(1.0, np.maximum(np.frexp(np.minimum(size, greatest))[1] - precision, last))


def _comparison(ratio: Any, free: Any) -> Comparison:
    counted = np.where(free, 0.0, ratio)
    if counted.size == 0:
        return Comparison(0.0, None, True, 0, 0)
    worst = np.unravel_index(int(np.argmax(counted)), counted.shape)
    greatest, loose = float(counted[worst]), int(np.count_nonzero(np.broadcast_to(free, counted.shape)))
    return Comparison(greatest, tuple(int(i) for i in worst) if greatest > 0 else None, greatest <= TOLERANCE, loose,
                      counted.size - loose)

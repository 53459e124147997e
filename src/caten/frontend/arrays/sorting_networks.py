"""Sorting networks for axes of a few elements, whose number is known: `np.sort`, `np.median` and `np.quantile` of the
nine neighbours in an image, or of three channels. The lesser and the greater of two elements are these two in order;
which two are next does not depend on the elements, so each step is one operation on whole arrays.

The networks are Batcher's odd-even merge sort, for any number of elements (K. E. Batcher, Sorting networks and their
applications, 1968; Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

from ...core.dtypes import DTYPES, is_float, is_short
from ..typing import WEAK_FLOAT, WEAK_INT, Literal
from .array_reductions import keep
from .axis_arguments import axis_of
from .builder import Builder
from .elementwise_functions import apply, choose, converted, floating
from .handles import Array, Operand, constant_of
from .joining import stack
from .selection import select

MOST = 32                      # elements, in 191 comparisons


@lru_cache
def network(count: int) -> tuple[tuple[int, int], ...]:
    """Pairs of positions, the first below the second. Elements that are put in order pair by pair are sorted."""
    pairs: list[tuple[int, int]] = []
    top = 1 << max(0, (count - 1).bit_length() - 1)
    p = top
    while p > 0 and count > 1:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(count - d) if i & p == r]
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2
    return tuple(pairs)


def short_order(b: Builder, path: str, x: Any, attributes: Mapping[str, Any]) -> Array | None:
    """`np.sort`, `np.median` or `np.quantile` along an axis of a few elements; None where the operator of the library
    computes it."""
    axis = attributes.get("axis", -1)
    if path not in ORDERED or not isinstance(x, Array) or not x.rank or not isinstance(axis, int):
        return None
    place = axis_of(b, axis, x.rank)
    count = constant_of(x.shape[place])
    if count is None or not 1 < count <= MOST or DTYPES[x.dtype].kind not in ("int", "uint", "float") or (
            is_short(x.dtype)):
        return None
    made = ORDERED[path](b, [select(b, x, (*[slice(None)] * place, n)) for n in range(count)], place, attributes)
    return made if path == "sort" or not attributes.get("keepdims") else keep(b, made, (place,))


def _in_order(b: Builder, parts: Sequence[Array]) -> list[Array]:
    """Arrays of one shape, at each index the least element first; for elements that are no NaN. Of equal numbers each
    is in one place, so that 0 and -0 stay both, and the gradient of each place goes to one element."""
    ordered = [*parts]
    for low, high in network(len(parts)):
        x, y = ordered[low], ordered[high]
        if is_float(x.dtype):
            is_less = b.array(apply(b, "lt", y, x))
            ordered[low], ordered[high] = b.array(choose(b, is_less, y, x)), b.array(choose(b, is_less, x, y))
        else:
            ordered[low], ordered[high] = b.array(apply(b, "min", x, y)), b.array(apply(b, "max", x, y))
    return ordered


def _unless_nan(b: Builder, parts: Sequence[Array], made: Operand) -> Array:
    """What is made of elements in order; NaN if one of them is."""
    if is_float(parts[0].dtype):
        made = choose(b, reduce(lambda x, y: apply(b, "or", x, y), [apply(b, "isnan", x) for x in parts]),
                      _number(b, math.nan), made)
    return b.array(made)


def _sort(b: Builder, parts: Sequence[Array], place: int, attributes: Mapping[str, Any]) -> Array:
    """NaN counts as the greatest: as infinity here, and as many of the last elements are NaN afterwards."""
    if not is_float(parts[0].dtype):
        ordered = _in_order(b, parts)
    else:
        whole = "i32" if parts[0].dtype == "f32" else "i64"          # as many lanes as the elements have
        unknown = [b.array(apply(b, "isnan", x)) for x in parts]
        known = [b.array(choose(b, no, _number(b, math.inf), x)) for no, x in zip(unknown, parts, strict=True)]
        numbers: Operand = reduce(lambda n, no: apply(b, "sub", n, converted(b, whole, no)), unknown,
                                  converted(b, whole, Literal(WEAK_INT, b.pos, value=len(parts))))
        ordered = [b.array(choose(b, apply(b, "gt", numbers, Literal(WEAK_INT, b.pos, value=n)), x,
                                  _number(b, math.nan))) for n, x in enumerate(_in_order(b, known))]
    return stack(b, ordered, place)


def _median(b: Builder, parts: Sequence[Array], place: int, attributes: Mapping[str, Any]) -> Array:
    """Of integers in float64; their order is that of the integers."""
    ordered, last = _in_order(b, parts), len(parts) - 1
    low, high = (floating(b, ordered[n]) for n in (last // 2, len(parts) // 2))
    middle = low if low is high else apply(b, "mul", _number(b, 0.5), apply(b, "add", low, high))
    return _unless_nan(b, parts, middle)


def _quantile(b: Builder, parts: Sequence[Array], place: int, attributes: Mapping[str, Any]) -> Array:
    """Linear between the two elements around q, from the nearer one, so that infinities stay."""
    at = float(attributes.get("q", 0.5)) * (len(parts) - 1)
    below = min(int(at), len(parts) - 1)
    part = at - below
    ordered = _in_order(b, parts)
    low, high = (floating(b, ordered[min(n, len(parts) - 1)]) for n in (below, below + 1))
    if part == 0:
        return _unless_nan(b, parts, low)
    step = apply(b, "sub", high, low)
    near = low if part < 0.49 else high
    return _unless_nan(b, parts, apply(b, "add", near, apply(b, "mul", step, _number(
        b, part if near is low else part - 1))))


def _number(b: Builder, value: float) -> Literal:
    return Literal(WEAK_FLOAT, b.pos, value=value)


# By their paths below `numpy`.
ORDERED: dict[str, Callable[[Builder, Sequence[Array], int, Mapping[str, Any]], Array]] = {
    "sort": _sort, "median": _median, "quantile": _quantile}

"""The values at which operators are called: ordinary ones, and those at which they go wrong, as cases of their own."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES
from ..core.numpy_types import numpy_dtype
from ..core.scalars import OPERATORS
from .elementwise_verdicts import limits

Array = np.ndarray[Any, Any]
COUNT = 75                  # elements: some vectors of any machine, and a rest
DIVISIONS = ("div", "floordiv", "mod", "truncdiv", "truncmod")
SHIFTS = ("shl", "shr")
# Complex operators that act on the parts: of the others, what becomes of NaN and infinity is not specified.
BY_PARTS = ("add", "sub", "neg", "conj", "real", "imag", "complex", "eq", "ne", "where", "isnan", "isinf", "cast")


def sets(fn: str, dtype: str, result: str) -> dict[str, Callable[[np.random.Generator], list[Array]]]:
    """Name -> what draws the operands of one call. `dtype`: of the operands (of the arms of `where`); `result`: of a
    conversion."""
    count = operands(fn)
    drawn: dict[str, Callable[[np.random.Generator], list[Array]]] = {
        "ordinary": lambda rng: [ordinary(dtype, rng, COUNT) for _ in range(count)]}
    for name, special in special_values(fn, dtype, result).items():
        drawn[name] = partial(combined, dtype, special, count)
    return {name: partial(_with_condition, draw) for name, draw in drawn.items()} if fn == "where" else drawn


def _with_condition(draw: Callable[[np.random.Generator], list[Array]], rng: np.random.Generator) -> list[Array]:
    """A condition and the two arms of `where`."""
    return [rng.integers(0, 2, COUNT).astype(bool), *[a[:COUNT] for a in draw(rng)[1:]]]


def operands(fn: str) -> int:
    """How many an operator or a conversion takes."""
    return OPERATORS[fn].arity if fn in OPERATORS else 1


def special_values(fn: str, dtype: str, result: str) -> dict[str, list[Sequence[Any]]]:
    """Name -> the values of the first operand, of the second one, …; the last list holds for those that follow, too."""
    d = DTYPES[dtype]
    if d.kind == "bool":
        return {"all": [(False, True)]}
    if d.kind == "complex":
        whole = (0.0, 1.5, -2.25)
        found: dict[str, list[Sequence[Any]]] = {"whole": [[complex(a, b) for a in whole for b in whole]]}
        if fn in BY_PARTS:
            found |= {"nan": [[complex(np.nan, 1), complex(1, np.nan), 1j]],
                      "infinities": [[complex(np.inf, 1), complex(-1, -np.inf), 1j]],
                      "negative-zero": [[complex(-0.0, 0.0), complex(0.0, -0.0), 1j]]}
        return found
    return _of_floats(fn, dtype, result) if d.kind == "float" else _of_integers(fn, dtype, result)


def _of_floats(fn: str, dtype: str, result: str) -> dict[str, list[Sequence[Any]]]:
    least, greatest = limits(dtype)
    some = (1.0, -1.0, 0.5, 3.0, -7.25)
    found: dict[str, list[Sequence[Any]]] = {
        "halves": [[k / 2 for k in range(-9, 10)]], "nan": [(np.nan, *some[:3])],
        "infinities": [(np.inf, -np.inf, 0.0, *some[:2])],
        "negative-zero": [(-0.0, 0.0, 1.0, -2.0)], "denormals": [(least, -least, 3 * least, 2048 * least, 1.0)],
        "overflow": [(greatest, -greatest, greatest / 2, 2.0, -0.5)]}
    if fn in DIVISIONS:
        found["zero-divisor"] = [some, (0.0, -0.0)]
    if fn == "cast" and DTYPES[result].kind in ("int", "uint"):
        low, high = float(DTYPES[result].least), float(DTYPES[result].greatest)
        near = (low, high, low - 1, high + 1, low * 2 - 1, high * 2 + 1, high / 2, -0.9, 0.9, -1.0)
        found["saturating"] = [[v for v in near if abs(v) <= greatest]]
    return found


def _of_integers(fn: str, dtype: str, result: str) -> dict[str, list[Sequence[Any]]]:
    d = DTYPES[dtype]
    edges = sorted({d.least, d.least + 1, max(d.least, -1), 0, 1, 2, d.greatest - 1, d.greatest})
    found: dict[str, list[Sequence[Any]]] = {"overflow": [edges]}
    if fn in DIVISIONS:
        small = [v for v in range(-9, 10) if v >= d.least]
        found |= {"zero-divisor": [edges, (0,)], "signs": [[v for v in small if -8 <= v <= 7],
                                                           [v for v in small if v and abs(v) < 5]]}
        if d.kind == "int":
            found["least-by-minus-one"] = [(d.least, d.least + 1, d.greatest, 7), (-1,)]
    if fn in SHIFTS:
        counts = (0, 1, 2, d.bits - 1, d.bits, d.bits + 1, 2 * d.bits, -1, d.greatest, d.least)
        found["past-the-width"] = [edges, [c for c in counts if d.least <= c <= d.greatest]]
    return found


def combined(dtype: str, special: list[Sequence[Any]], count: int, rng: np.random.Generator) -> list[Array]:
    """All combinations of the special values (for three operands a sample), repeated over vectors and a tail."""
    kind = numpy_dtype(dtype)
    with np.errstate(all="ignore"):                                  # a denormal of a narrow type rounds to 0
        values = [np.array(special[min(n, len(special) - 1)]).astype(kind) for n in range(count)]
    if count < 3:
        grid = [g.ravel() for g in np.meshgrid(*values, indexing="ij")]
        length = max(COUNT, len(grid[0]))
        return [np.resize(g, length) for g in grid]
    return [rng.choice(v, 3 * COUNT) for v in values]


def ordinary(dtype: str, rng: np.random.Generator, n: int) -> Array:
    """Numbers of some magnitudes; integers over the whole range."""
    d = DTYPES[dtype]
    if d.kind == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if d.kind in ("int", "uint"):
        whole = rng.integers(d.least, d.greatest, n, dtype=np.uint64 if d.kind == "uint" else np.int64, endpoint=True)
        return np.where(rng.random(n) < 0.5, whole % 13, whole).astype(numpy_dtype(dtype))
    if d.kind == "complex":
        return (rng.uniform(-4, 4, n) + 1j * rng.uniform(-4, 4, n)).astype(numpy_dtype(dtype))
    return (rng.uniform(-1, 1, n) * 10.0 ** rng.integers(-3, 3, n)).astype(numpy_dtype(dtype))

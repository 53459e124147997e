"""The cases of the operator table: every operator on every element type that it accepts, every conversion between
two types."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES
from ..core.scalars import OPERATORS
from .cases import Case, Kernel, composite, identifier, spelled
from .elementwise_verdicts import Elementwise
from .operand_values import Array, sets

WORDS = {"neg": "-"}                 # where a body says it in another way than the texts of the levels


def operator_cases() -> Iterator[Case]:
    """Rows of the matrix are operators, columns element types."""
    for fn, row in OPERATORS.items():
        for dtype in DTYPES:
            if row.defined_on(dtype):
                operands = ("bool", dtype, dtype) if fn == "where" else (dtype,) * row.arity
                yield from _cases("operator", fn, dtype, fn, WORDS.get(fn, row.spelling), operands,
                                  row.result_type(operands))


def conversion_cases() -> Iterator[Case]:
    """Rows are the types that are converted from, columns those that are converted to."""
    for source, target in itertools.product(DTYPES, DTYPES):
        if source != target:
            yield from _cases("conversion", source, target, "cast", f"cast {spelled(target)}", (source,), target)
    for source, target in itertools.product(DTYPES, DTYPES):
        if source != target and can_share_bits(source, target):
            yield from _cases("bitcast", source, target, "bitcast", f"bitcast {spelled(target)}", (source,), target)


def can_share_bits(source: str, target: str) -> bool:
    """Does `bitcast` accept the pair?"""
    return DTYPES[source].bits == DTYPES[target].bits and "bool" not in (source, target)


def _cases(kind: str, row: str, column: str, fn: str, word: str, operands: tuple[str, ...],
           result: str) -> Iterator[Case]:
    names = "XYZ"[:len(operands)]
    kernel = Kernel(
        identifier(kind, row, column),
        composite(identifier(kind, row, column), {n: f"{t}[N]" for n, t in zip(names, operands, strict=True)},
                  {"R": f"{result}[N]"},
                  f"(dotimes (i N) (setf (aref R i) ({word} {' '.join([f'(aref {n} i)' for n in names])})))"),
        frozenset((*operands, result)), (fn,))
    judge = Elementwise(fn, operands, result)
    for name, draw in sets(fn, operands[-1], result).items():
        yield Case(kind, row, column, name, kernel, partial(_given, names, draw), judge)


def _given(names: str, draw: Callable[[np.random.Generator], list[Array]], rng: np.random.Generator) -> dict[str, Any]:
    arrays = draw(rng)
    return dict(zip(names, arrays, strict=True)) | {"N": len(arrays[0])}

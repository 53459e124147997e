"""Shapes and sizes of arrays, and proofs that an access is in bounds."""
from __future__ import annotations

from collections.abc import Iterable

from ...core.dtypes import DTYPES
from ...core.expr import Const, Expr
from ...loop import accesses
from ...loop.context import Context
from ...loop.statements import LoopProgram, Ref
from .loop_queries import locals_in

MAX_STACK_BYTES = 16384               # of one tile on the stack


def shapes(program: LoopProgram) -> dict[str, tuple[Expr, ...]]:
    """The shape of every buffer and local."""
    found = {b.name: b.axes for b in program.buffers.values()}
    return found | {local.name: local.shape for local in locals_in(program)}


def is_inside(ref: Ref, shape: tuple[Expr, ...], context: Context) -> bool:
    """Is every index of the access proven to be in bounds?"""
    indices: tuple[Expr, ...] = ref.index
    return all(accesses.is_inside(context, i, n) for i, n in zip(indices, shape, strict=True))


def is_shown_inside(ref: Ref, shape: tuple[Expr, ...], context: Context) -> bool:
    """Is every index of the access in bounds by short proofs?"""
    indices: tuple[Expr, ...] = ref.index
    return all(known.shows_nonnegative(form) for i, n in zip(indices, shape, strict=True)
               for known in (context.with_elements_in(i),) for form in accesses.below(known, i, n))


def bytes_of(dtype: str, extents: Iterable[Expr]) -> int:
    """The bytes of an array. A symbolic extent counts as 1."""
    total = DTYPES[dtype].bytes
    for n in extents:
        total *= n.value if isinstance(n, Const) else 1
    return total

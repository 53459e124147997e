"""unflatten: view one axis of an array as two, the inverse of `flatten`."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...core.expr import Expr
from ...core.node import Node, substitute
from ...core.program import Buffer
from ...core.text import flat
from ...loop.accesses import Access, accesses, is_inside
from ...loop.affine import Linear, canonical, expression, linear
from ...loop.context import Context
from ...loop.statements import Aref, For, If, LoopProgram, Stmt, Vref
from ..analysis.loop_queries import refusal
from ..analysis.step_conditions import extent
from ..normalize import normal
from ..step_results import NOTHING, Made
from .flatten import array_of


def unflatten(program: LoopProgram, array: str, axis: int, count: Any) -> tuple[LoopProgram, Made]:
    """View axis COUNT (from 0) of an array as two, the second one with EXTENT elements. Every index there must be a
    multiple of EXTENT plus an index below EXTENT. No element moves, and callers pass an argument as before. Then a nest
    over an array that its writer indexed as a vector is planned like one over a matrix.

        (unflatten A 0 N)
        (buffer A f32 ((* M N)) (0) inout)              (buffer A f32 ((* M N)) (0) inout (seen M N))
        (for i 0 M 1 serial                       ->    (for i 0 M 1 serial
          (for j 0 N 1 serial                             (for j 0 N 1 serial
            (incf (aref A (+ (* N i) j)) a)))               (incf (aref A i j) a)))
    """
    step = f"unflatten {array} {axis} {flat(count)}"
    found = array_of(program, array, step)
    shape = found.axes if isinstance(found, Buffer) else found.shape
    if not 0 <= axis < len(shape):
        raise refusal("E533", step, f"'{array}' has no axis {axis}")
    try:
        by = canonical(extent(program, None, count))
    except ValueError as problem:
        raise refusal("E533", step, str(problem)) from None
    rows = linear(normal(shape[axis])).quotient(linear(by))
    if rows is None:
        raise refusal("E533", step, f"{flat(count)} is not known to divide the extent of the axis, {shape[axis]}")
    new: dict[Node, Node] = {}
    for access in _accesses([s for kernel in program.kernels for s in kernel.body], Context.of(program), array):
        at = access.ref.index
        if isinstance(access.ref, Vref):
            raise refusal("E533", step, f"{access.ref} is a vector")
        two = _parts(at[axis], by)
        if not all(is_inside(access.context, expression(part), end)
                   for part, end in zip(two, (expression(rows), by), strict=True)):
            raise refusal("E533", step, f"the index of {access.ref} is not shown to be a multiple of {flat(count)} "
                                        "and an index below it")
        new[access.ref] = access.ref.replace(index=(*at[:axis], *map(expression, two), *at[axis + 1:]))
    if any(isinstance(ref, Aref | Vref) and ref.buffer == array and ref not in new for ref in program.unique()):
        raise refusal("E533", step, f"'{array}' is prefetched")
    axes = (*shape[:axis], expression(rows), by, *shape[axis + 1:])
    new[found] = found.replace(seen=axes) if isinstance(found, Buffer) else found.replace(shape=axes)
    return substitute(program, new), NOTHING


def _parts(place: Expr, by: Expr) -> tuple[Linear, Linear]:
    """An index as by · row + column, with the terms in the column that are no multiple."""
    divisor = linear(by)
    row, column = linear(place).divided(divisor)
    if divisor.is_constant and divisor.constant:
        more, rest = divmod(column.constant, divisor.constant)
        return row.shifted(more), column.shifted(rest - column.constant)
    return row, column


def _accesses(stmts: Iterable[Stmt], context: Context, array: str) -> Iterator[Access]:
    """All accesses to an array, each with the context in which it runs."""
    for stmt in stmts:
        yield from [each for each in accesses(stmt, context) if each.ref.buffer == array]
        match stmt:
            case For():
                yield from _accesses(stmt.body, context.inside(stmt), array)
            case If(cond, then, otherwise):
                yield from _accesses(then, context.given(cond), array)
                yield from _accesses(otherwise, context.given(cond, False), array)
        context = context.after(stmt)

"""The ranges of the elements of index arrays that checks have found.

    (define v0 (reduce bool () ((p N)) or true (or (< (read I p) 0) (<= V (read I p)))))    (fail-if (read v0) 5)

Where the call goes on, each element of I is in [0, V), and `(aref X (aref I i))` is in bounds as it is. A check tells
something of an array if it looks at all of its elements. One that looks at those that are not negative tells that all
are below V.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import DTYPES, is_integer
from ..core.expr import TRUE, Cast, Expr, Var, index
from ..core.node import substitute
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.context import Context
from .checks_as_values import failures_of
from .values import Inside, Read, Reduce, TensorProgram, reads_of, shapes_of


@frozen
class ElementRange:
    """Each element of `array` is at least `least` and below `end`, once the check by the value `check` has not failed.
    `type`: that of the elements."""

    check: str
    array: str
    type: str
    least: Expr
    end: Expr


def element_ranges(program: TensorProgram, context: Context) -> list[ElementRange]:
    """The ranges of the elements of arrays of integers that the program takes indices from."""
    if not program.checks:
        return []
    ends = _ends(program)
    return [found for d in program.definitions if isinstance(d.value, Reduce) and d.value.cond is TRUE
            for found in _found_by(program, d.name, d.value, ends, context)] if ends else []


def _ends(program: TensorProgram) -> dict[str, list[Expr]]:
    """The arrays whose elements, which are numbers of i64, too, are in checked indices, and the extents of the axes of
    these."""
    found: dict[str, list[Expr]] = {}
    for d in program.definitions:
        for n in d.value.unique():
            if isinstance(n, Inside):
                for r in reads_of(n.index):
                    if is_integer(r.type) and r.type != "u64" and n.extent not in found.setdefault(r.buffer, []):
                        found[r.buffer].append(n.extent)
    return found


def _found_by(program: TensorProgram, name: str, value: Reduce, ends: dict[str, list[Expr]], context: Context,
              ) -> Iterator[ElementRange]:
    shapes = {b.name: b.axes for b in program.buffers.values()} | {
        n: s for d in program.definitions for n, s in zip(d.names, shapes_of(d.value), strict=True)}
    whole = [r for r in reads_of(value.expr) if r.buffer in ends and _reads_all(r, value, shapes.get(r.buffer, ()))]
    fails = [f.fails for f in failures_of(program, name, value)] if whole else []
    if not fails:
        return
    numbers: dict[Expr, Expr] = {r: Var(f"{name}.{n}", r.type) for n, r in enumerate(reads_of(value.expr))}
    for axis in value.over:
        context = context.given(index(0) <= axis.var).given(axis.var < axis.extent)
    fails = [substitute(cond, numbers) for cond in fails]
    for r in whole:
        element = Cast("i64", numbers[r])

        def fails_where(cond: Expr) -> bool:
            where = context.given(cond)
            return any(where.proves(f) for f in fails)
        for end in ends[r.buffer]:
            if fails_where(end <= element):
                least = next((e for e in (index(0), canonical(-end)) if fails_where(element < e)),
                             index(DTYPES[r.type].least))
                yield ElementRange(name, r.buffer, r.type, least, end)


def _reads_all(read: Read, value: Reduce, shape: tuple[Expr, ...]) -> bool:
    """Does a value read each element of an array, in some order of its axes?"""
    extents: dict[Expr, Expr] = {a.var: a.extent for a in value.over}
    return (len(set(read.index)) == len(read.index) == len(shape)
            and all(extents.get(i) is extent for i, extent in zip(read.index, shape, strict=True)))

"""The sizes of a program that are extents of windows, as those of a convolution are."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import Op
from .values import Reduce, Scatter, TensorProgram, reads_of


def window_sizes(program: TensorProgram) -> frozenset[tuple[str, ...]]:
    """The sizes of the axes of windows. In x[i + k] · w[k], summed over k, that is the size of k. Where x[i] · w[k] is
    added to the element i + k, it is the smaller of two."""
    return frozenset([tuple(sorted(names)) for d in program.definitions for names in _sizes(d.value)])


def _sizes(value: object) -> Iterator[frozenset[str]]:
    if not isinstance(value, Reduce | Scatter) or value.fn != "add" or not isinstance(value.expr, Op) or (
            value.expr.fn != "mul"):
        return
    reads = [[i.variables for i in r.index] for r in reads_of(value.expr)]
    if isinstance(value, Scatter):
        extents = {a.name: a.extent.variables for a in value.axes}
        for names in [i.variables & extents.keys() for i in value.index]:
            each = [extents[name] for name in names]
            if len(each) == 2 and all(len(sizes) == 1 for sizes in each) and all(
                    sum(not names.isdisjoint(i) for i in indices) < 2 for indices in reads):
                yield each[0] | each[1]
        return
    own = {a.name for a in value.axes}
    for axis in value.over:
        among = [any(axis.name in names and not own.isdisjoint(names) for names in each) for each in reads]
        alone = [any(axis.name in names and own.isdisjoint(names) for names in each) for each in reads]
        if len(axis.extent.variables) == 1 and any(among) and any(alone):
            yield axis.extent.variables

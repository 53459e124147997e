"""The sizes of a program that are extents of windows, as those of a convolution are, and of what they move over."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import Cast, Expr, Op, Var
from ..loop.affine import linear
from .values import Axis, Reduce, Scatter, TensorProgram, reads_of


def window_sizes(program: TensorProgram) -> frozenset[tuple[str, ...]]:
    """The sizes of the axes of windows. In x[i + k] · w[k], summed over k, that is the size of k. Where x[i] · w[k] is
    added to the element i + k, it is the smaller of two."""
    return frozenset([tuple(sorted(names)) for d in program.definitions for names, _ in _sizes(d.value)])


def image_sizes(program: TensorProgram) -> frozenset[str]:
    """The sizes on which it depends how many places a window has: the extents of an image, and of the window."""
    return frozenset([name for d in program.definitions for _, names in _sizes(d.value) for name in names])


def _sizes(value: object) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The sizes of an axis of windows, and those of the axes along which they move."""
    if not isinstance(value, Reduce | Scatter) or value.fn != "add":
        return
    product = value.expr
    while isinstance(product, Cast):                        # products of 16-bit floats are added up in float32
        product = product.arg
    if not isinstance(product, Op) or product.fn != "mul":
        return
    reads = [r.index for r in reads_of(value.expr)]
    axes = {a.name: a for a in value.axes}
    own = frozenset(axes)
    over = value.over if isinstance(value, Reduce) else ()
    if isinstance(value, Scatter):                          # sums over the axes that its index does not have
        yield from _added_up(value, axes, reads)
        own = frozenset[str]().union(*[i.variables for i in value.index]) & own
        over = tuple([a for a in value.axes if a.name not in own])
    for axis in over:
        moved = [i.variables & own for index in reads for i in index
                 if axis.name in i.variables and _slides(i, axis, own)]
        alone = [any(axis.name in i.variables and own.isdisjoint(i.variables) for i in index) for index in reads]
        if len(axis.extent.variables) == 1 and any(moved) and any(alone):
            yield axis.extent.variables, frozenset[str]().union(*[axes[name].extent.variables
                                                                  for names in moved for name in names])


def _added_up(value: Scatter, axes: dict[str, Axis], reads: list[tuple[Expr, ...]],
              ) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for names in [i.variables & axes.keys() for i in value.index]:
        each = [axes[name].extent.variables for name in names]
        if len(each) == 2 and all(len(sizes) == 1 for sizes in each) and all(
                sum(not names.isdisjoint(i.variables) for i in index) < 2 for index in reads):
            yield each[0] | each[1], each[0] | each[1]


def _slides(i: Expr, axis: Axis, own: frozenset[str]) -> bool:
    """Is a subscript the place of a window plus the one in it? In C · g + c with c < C, the channel c of a group, it is
    not."""
    form = linear(i)
    return any(axis.extent.variables.isdisjoint(name for atom in form.coefficient(Var(at, "i64")).atoms()
                                                for name in atom.variables)
               for at in sorted(own & i.variables))

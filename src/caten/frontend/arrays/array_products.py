"""Contractions: `a @ b`, `np.dot`, `np.tensordot`, `np.outer`. All are sums of products over labelled axes."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NoReturn

from ...core.dtypes import is_complex
from ...core.expr import Expr
from ..typing import Term
from .axis_arguments import axes_of
from .builder import Builder
from .elementwise_functions import apply
from .handles import ZERO, Array, Indices, Operand, is_one, spelled
from .reshaping import ravel
from .views import expand_dims

Labels = tuple[Any, ...]               # a label for each axis; equal labels are one index


def contract(b: Builder, operands: Sequence[Array], labels: Sequence[Labels], kept: Labels, what: str) -> Array:
    """Σ over all labels that are not kept of the product of the operands. An axis of extent 1 is repeated, as in
    broadcasting. E320 if the extents of a label differ."""
    extents: dict[Any, Expr] = {}
    for x, own in zip(operands, labels, strict=True):
        for label, extent in zip(own, x.shape, strict=True):
            known = extents.get(label)
            both = extent if known is None or is_one(known) else known if is_one(extent) else b.same_extent(known,
                                                                                                             extent)
            if both is None:
                shapes = " and ".join([spelled(each.shape) for each in operands])
                b.fail("E320", f"the shapes {shapes} do not fit together in {what}",
                       f"axis {own.index(label)} of {spelled(x.shape)} meets one of another extent")
            extents[label] = both
    over = [label for label in extents if label not in kept]

    def element(outer: Indices, inner: Indices) -> Term:
        at = dict(zip((*kept, *over), (*outer, *inner), strict=True))
        factors = [b.term(x, tuple([ZERO if is_one(extent) and not is_one(extents[label]) else at[label]
                                    for label, extent in zip(own, x.shape, strict=True)]))
                   for x, own in zip(operands, labels, strict=True)]
        total = factors[0]
        for factor in factors[1:]:
            total = b.typing.apply(product, [total, factor], b.pos)
        return total

    product, monoid = ("and", "or") if all(x.dtype == "bool" for x in operands) else ("mul", "add")
    shape = [extents[label] for label in kept]
    if over:
        return b.reduce(monoid, shape, [extents[label] for label in over], element, what)
    return b.compute(shape, lambda i: b.typing.default(element(i, ())))


def matmul(b: Builder, a: Array, other: Array) -> Array:
    """`a @ b`: the last axis of a with the second to last of b; axes before them are broadcast."""
    if not a.rank or not other.rank:
        needs_arrays(b, "@")
    batch = max(a.rank, other.rank) - 2
    left: Labels = (*[f"batch {n}" for n in range(max(batch - a.rank + 2, 0), max(batch, 0))],
                    *(("row",) if a.rank > 1 else ()), "inner")
    right: Labels = (*[f"batch {n}" for n in range(max(batch - other.rank + 2, 0), max(batch, 0))], "inner",
                     *(("column",) if other.rank > 1 else ()))
    kept = (*[f"batch {n}" for n in range(max(batch, 0))], *(("row",) if a.rank > 1 else ()),
            *(("column",) if other.rank > 1 else ()))
    return contract(b, (a, other), (left, right), kept, "@")


def dot(b: Builder, a: Operand, other: Operand) -> Operand:
    """`np.dot`: the last axis of a with the second to last of b, or its only one; of scalars the product."""
    if not isinstance(a, Array) or not isinstance(other, Array) or not a.rank or not other.rank:
        return apply(b, "mul", a, other)
    return tensordot(b, a, other, ((a.rank - 1,), (max(other.rank - 2, 0),)), "np.dot")


def tensordot(b: Builder, a: Array, other: Array, axes: Any, what: str = "np.tensordot") -> Array:
    """Sums over pairs of axes, `(axes of a, axes of b)`; a number n: the last n of a and the first n of b."""
    if isinstance(axes, int) and not isinstance(axes, bool):
        if not 0 <= axes <= min(a.rank, other.rank):
            b.fail("E321", f"there are no {axes} axes to sum over in {spelled(a.shape)} and {spelled(other.shape)}")
        axes = tuple(range(a.rank - axes, a.rank)), tuple(range(axes))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        b.fail("E321", "the axes of tensordot are a number, or two lists", "axes=([1], [0])")
    mine, theirs = axes_of(b, axes[0], a.rank), axes_of(b, axes[1], other.rank)
    if len(mine) != len(theirs):
        b.fail("E321", f"{len(mine)} axes are paired with {len(theirs)}")
    left: Labels = tuple([("sum", mine.index(n)) if n in mine else ("a", n) for n in range(a.rank)])
    right: Labels = tuple([("sum", theirs.index(n)) if n in theirs else ("b", n) for n in range(other.rank)])
    kept = tuple([label for label in (*left, *right) if label[0] != "sum"])
    return contract(b, (a, other), (left, right), kept, what)


def inner(b: Builder, a: Operand, other: Operand) -> Operand:
    """`np.inner`: the last axis of both; of scalars the product."""
    if not isinstance(a, Array) or not isinstance(other, Array) or not a.rank or not other.rank:
        return apply(b, "mul", a, other)
    return tensordot(b, a, other, ((a.rank - 1,), (other.rank - 1,)), "np.inner")


def vdot(b: Builder, a: Array, other: Array) -> Operand:
    """`np.vdot`: all elements of both, those of a conjugated."""
    return tensordot(b, ravel(b, conjugated(b, a)), ravel(b, other), 1, "np.vdot")


def conjugated(b: Builder, x: Array) -> Array:
    """The conjugate of complex numbers; others as they are."""
    return b.array(apply(b, "conj", x)) if is_complex(x.dtype) else x


def multi_dot(b: Builder, arrays: Sequence[Array]) -> Operand:
    """`np.linalg.multi_dot`, from the left to the right."""
    return reduce(lambda a, other: matmul(b, b.array(a), other), arrays)


def outer(b: Builder, a: Array, other: Array) -> Operand:
    """a[i] · b[j]."""
    return apply(b, "mul", expand_dims(b, ravel(b, a), 1), ravel(b, other))


def needs_arrays(b: Builder, what: str) -> NoReturn:
    """E330."""
    b.fail("E330", f"{what} takes arrays of one axis or more", "write * for a product with a number")

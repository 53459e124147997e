"""Arrays of indices: `np.indices`, `np.mgrid`, `np.ogrid`, `np.ix_`, `np.triu_indices`, `np.unravel_index`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.expr import Cast, Expr, Op, index, number
from ...loop.affine import canonical
from .axis_arguments import axis_of
from .builder import Builder
from .creation import arange
from .elementwise_functions import apply, term_of
from .handles import Array, Indices, Operand, size_term, spelled
from .joining import stack
from .size_facts import floor_quotient
from .views import broadcast_to, expand_dims


def indices(b: Builder, shape: Sequence[Expr], sparse: bool) -> Any:
    """`np.indices`: of each element of an array of that shape the index along each axis."""
    along = [_along(b, b.compute((extent,), lambda i: i[0]), n, len(shape)) for n, extent in enumerate(shape)]
    return tuple(along) if sparse else stack(b, [broadcast_to(b, x, tuple(shape)) for x in along])


def _along(b: Builder, x: Array, axis: int, rank: int) -> Array:
    """A vector along one of the axes."""
    return expand_dims(b, x, tuple([n for n in range(rank) if n != axis]))


def grid(b: Builder, written: Any, is_open: bool) -> Any:
    """`np.mgrid[a:b, c:d]`, and `np.ogrid`, whose arrays have one element along the axes of the others."""
    parts = written if isinstance(written, tuple) else (written,)
    ranges = [_range(b, part) for part in parts]
    if not isinstance(written, tuple):
        return ranges[0]
    made = [_along(b, x, n, len(ranges)) for n, x in enumerate(ranges)]
    if is_open:
        return tuple(made)
    shape = tuple([x.shape[0] for x in ranges])
    return stack(b, [broadcast_to(b, x, shape) for x in made])


def _range(b: Builder, part: Any) -> Array:
    if not isinstance(part, slice) or part.stop is None:
        b.fail("E322", "np.mgrid and np.ogrid take slices with an end", "np.mgrid[:H, :W]")
    if isinstance(part.step, complex):
        b.fail("E327", "np.mgrid with a number of points as a step is not supported yet", "np.linspace is")
    given = [term_of(0 if part.start is None else part.start, b.pos), term_of(part.stop, b.pos),
             term_of(1 if part.step is None else part.step, b.pos)]
    if any(x is None for x in given):
        b.fail("E322", "the bounds of np.mgrid and np.ogrid are numbers and sizes")
    start, stop, step = [x for x in given if x is not None]
    return arange(b, start, stop, step, None)


def mesh(b: Builder, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """`np.ix_(rows, columns)`: an index of all elements in these rows and columns."""
    for x in arrays:
        if x.rank != 1 or x.dtype == "bool":
            b.fail("E327", f"np.ix_ takes integers along one axis, not an array of the shape {spelled(x.shape)}")
    return tuple([_along(b, x, n, len(arrays)) for n, x in enumerate(arrays)])


def along_axis(b: Builder, x: Array, at: Array, axis: Any) -> tuple[Array, ...]:
    """The index of the elements that `np.put_along_axis` changes."""
    if at.rank != x.rank or not isinstance(axis, int):
        b.fail("E322", "np.put_along_axis takes an axis, and indices with as many axes as the array")
    place = axis_of(b, axis, x.rank)
    return tuple([at if n == place else _along(b, b.compute((extent,), lambda i: i[0]), n, x.rank)
                  for n, extent in enumerate(x.shape)])


def diagonal_indices(b: Builder, n: Expr, rank: int) -> tuple[Array, ...]:
    """`np.diag_indices`"""
    return tuple([b.compute((n,), lambda i: i[0])] * rank)


def unravel(b: Builder, flat: Operand, shape: Sequence[Expr]) -> tuple[Operand, ...]:
    """`np.unravel_index`: the index along each axis of an element in C order."""
    found: list[Operand] = []
    for n, extent in enumerate(reversed(shape)):
        size = size_term(extent, b.pos)
        found.insert(0, flat if n == len(shape) - 1 else apply(b, "mod", flat, size))
        flat = apply(b, "floordiv", flat, size)
    return tuple(found)


def ravelled(b: Builder, at: Sequence[Array], shape: Sequence[Expr]) -> Operand:
    """`np.ravel_multi_index`: where the element with these indices is in C order."""
    if len(at) != len(shape):
        b.fail("E321", f"{len(at)} indices are given for {len(shape)} axes")
    flat: Operand = at[0]
    for each, extent in zip(at[1:], shape[1:], strict=True):
        flat = apply(b, "add", apply(b, "mul", flat, size_term(extent, b.pos)), each)
    return flat


def triangle_indices(b: Builder, n: Expr, k: int, columns: Expr | None, lower: bool) -> tuple[Array, Array]:
    """`np.tril_indices` (k <= 0) and `np.triu_indices` (k >= 0) of a square matrix: the elements of a triangle, row by
    row. Row r of a lower triangle begins at r (r + 1) / 2, so the element p is in row floor((sqrt(8 p + 1) - 1) / 2),
    which float64 gives exactly below 2^49."""
    if (k > 0 if lower else k < 0) or (columns is not None and columns is not n):
        b.fail("E327", "only the triangle of a square matrix is supported here, without elements beyond its diagonal",
               "k is at most 0 for np.tril_indices and at least 0 for np.triu_indices")
    side = canonical(n - abs(k))
    if abs(k) > 1 and not b.sizes.proves(side >= 0):       # (side + 1) side is 0 for -1, too
        side = canonical(Op("max", (side, index(0))))
    count = floor_quotient(canonical(side * (side + 1)), index(2))
    b.sizes.demand(count >= 0, b.pos)                      # always: a fact that products of sizes do not show

    def row(at: Expr) -> Expr:
        root = Op("sqrt", (Cast("f64", at * 8 + 1),))
        return Cast("i64", Op("floor", ((root - number(1.0, "f64")) * number(0.5, "f64"),)))

    def start(r: Expr) -> Expr:
        return Op("floordiv", (r * (r + 1), index(2)))

    def along(element: Callable[[Expr, Expr], Expr]) -> Array:
        def at(i: Indices) -> Expr:
            place = i[0] if lower else canonical(count - 1 - i[0])
            return element(place, row(place))
        return b.compute((count,), at)
    if lower:
        return along(lambda p, r: r - k), along(lambda p, r: p - start(r))
    return along(lambda p, r: side - 1 - r), along(lambda p, r: n - 1 - (p - start(r)))

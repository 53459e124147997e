"""Functions of `np.linalg` that ask for singular values with NumPy's arguments: norms, condition numbers, ranks."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import array_reductions
from .array_reductions import keep, reduced
from .axis_arguments import axes_of
from .builder import Builder
from .elementwise_functions import apply, converted, floating
from .fourier import Numpy
from .handles import Array, Operand
from .selection import select
from .views import expand_dims, moveaxis

SINGULAR = {2: "max", -2: "min", "nuc": "add"}           # norms of matrices, and what they make of the singular values


def _is_singular(order: Any) -> bool:
    return isinstance(order, int | float | str) and not isinstance(order, bool) and order in SINGULAR


def norm(numpy: Numpy, b: Builder, x: Array, order: Any, axis: Any, keepdims: bool) -> Operand:
    """`np.linalg.norm`: of matrices also the greatest (2) and the least (-2) singular value, and their sum ("nuc")."""
    axes = axes_of(b, axis, x.rank)
    if len(axes) != 2 or not _is_singular(order):
        return array_reductions.norm(b, x, order, axis, keepdims)
    made = reduced(b, SINGULAR[order], _singular_values(numpy, b, moveaxis(b, x, tuple(axes), (-2, -1))), -1, False)
    return keep(b, b.array(made), sorted(axes)) if keepdims else made


def _matrix_norm(numpy: Numpy, b: Builder, x: Array, keepdims: bool, order: Any) -> Operand:
    return norm(numpy, b, x, order, (-2, -1), keepdims)


def _singular_values(numpy: Numpy, b: Builder, x: Array) -> Array:
    return b.array(numpy(b, "linalg.svdvals", floating(b, x)))


def _cond(numpy: Numpy, b: Builder, x: Array, order: Any) -> Operand:
    """The norm of a matrix times that of its inverse: of the norm 2, the greatest singular value over the least."""
    if order in (None, 2, -2):
        values = _singular_values(numpy, b, x)
        first, last = (select(b, values, (Ellipsis, at)) for at in ((-1, 0) if order == -2 else (0, -1)))
        return apply(b, "div", first, last)
    inverse = b.array(numpy(b, "linalg.inv", floating(b, x)))
    return apply(b, "mul", *[norm(numpy, b, each, order, (-2, -1), False) for each in (x, inverse)])


def _matrix_rank(numpy: Numpy, b: Builder, x: Array, tol: Operand | None, hermitian: bool, rtol: Any) -> Operand:
    """How many singular values are above a bound, `tol`, or `rtol` times the greatest one."""
    if x.rank < 2:                                       # a vector is a matrix of one row
        x = expand_dims(b, x, tuple(range(2 - x.rank)))
    if tol is None:
        options = {"rtol": rtol} if rtol is not None else {}
        found: Operand = numpy(b, "linalg.matrix_rank", floating(b, x), **options)
        return found
    if rtol is not None:
        b.fail("E322", "np.linalg.matrix_rank has tol or rtol, not both", "tol is a bound, rtol times the greatest")
    bound = expand_dims(b, tol, -1) if isinstance(tol, Array) and tol.rank else tol
    above = apply(b, "gt", _singular_values(numpy, b, x), bound)
    return reduced(b, "add", b.array(converted(b, "i64", above)), -1, False)


# By their paths: the signature, and what makes the result.
MATRICES: dict[str, tuple[str, Callable[..., Any]]] = {
    "linalg.norm": ("x:array ord=None axis=None keepdims:bool=False", norm),
    "linalg.matrix_norm": ("x:array * keepdims:bool=False ord='fro'", _matrix_norm),
    "linalg.cond": ("x:array p=None", _cond),
    "linalg.matrix_rank": ("A:array tol:operand=None hermitian:bool=False * rtol=None", _matrix_rank)}

"""Products of arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor, one, product
from .data_types import result_type
from .manipulation import moveaxis


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product x1 @ x2 of vectors, matrices, or stacks of matrices, whose leading axes are broadcast."""
    a, b = _same(x1, x2)
    return product(a, b)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The array with its last two axes exchanged: the transpose of each matrix."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The tensor contraction: sums of products over axes of both arrays. `axes`: the number of axes, the last of x1 and
    the first of x2, or a pair of sequences of axes. The other axes of x1 come first in the result."""
    a, b = _same(x1, x2)
    ours, theirs = ((range(a.ndim - axes, a.ndim), range(axes)) if isinstance(axes, int)
                    else ([n % a.ndim for n in axes[0]], [n % b.ndim for n in axes[1]]))
    kept_a = [n for n in range(a.ndim) if n not in ours]
    kept_b = [n for n in range(b.ndim) if n not in theirs]
    summed = int(np.prod([a.shape[n] for n in ours]))
    left = (a.transpose(*kept_a, *ours) if a.ndim else a).reshape(-1 if a.size else int(np.prod([a.shape[n] for n in
                                                                                                kept_a])), summed)
    right = (b.transpose(*theirs, *kept_b) if b.ndim else b).reshape(summed, -1 if b.size else int(np.prod(
        [b.shape[n] for n in kept_b])))
    return product(left, right).reshape(*[a.shape[n] for n in kept_a], *[b.shape[n] for n in kept_b])


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along an axis: the sum of conj(x1) · x2."""
    a, b = _same(x1, x2)
    return one("vecdot", moveaxis(a, axis, -1), moveaxis(b, axis, -1))


def _same(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    dtype: Any = result_type(x1, x2)
    return x1.astype(dtype), x2.astype(dtype)

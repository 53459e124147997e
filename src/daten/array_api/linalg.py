"""The extension `linalg` of the standard, of the library's operators. NumPy computes at once what they are not made
for: complex matrices, empty ones, a square Q of a tall matrix, and tolerances that differ between matrices."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ..tensor import Tensor, apply, one
from . import elementwise, reductions
from .data_types import isdtype
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import broadcast_arrays, moveaxis
from .reductions import sum as total

EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L Lᵀ = x of positive definite matrices; `upper`: its conjugate transpose."""
    if _is_real(x):
        lower = one("cholesky", x)
        return matrix_transpose(lower) if upper else lower
    lower = Tensor(np.linalg.cholesky(x.numpy()))
    return Tensor(np.conj(np.swapaxes(lower.numpy(), -1, -2))) if upper else lower


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The X with x1 X = x2. An x2 of one axis is a vector, of more axes matrices."""
    if _is_real(x1) and x1.dtype == x2.dtype and x2.size:
        made = one("solve", x1, x2 if x2.ndim > 1 else x2.reshape(-1, 1))
        return made if x2.ndim > 1 else made[..., 0]
    if x2.ndim == 1:
        return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()[:, None])[..., 0])
    return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()))


def inv(x: Tensor, /) -> Tensor:
    """The inverse of matrices."""
    return one("inverse", x) if _is_real(x) else Tensor(np.linalg.inv(x.numpy()))


def det(x: Tensor, /) -> Tensor:
    """The determinant of matrices."""
    return one("det", x) if _is_real(x) else Tensor(np.linalg.det(x.numpy()))


def slogdet(x: Tensor, /) -> Any:
    """The sign of the determinant and the logarithm of its absolute value."""
    if _is_real(x):
        return SlogdetResult(*apply("slogdet", x))
    found = np.linalg.slogdet(x.numpy())
    return SlogdetResult(Tensor(found.sign), Tensor(found.logabsdet))


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The orthogonal Q and the triangular R with Q R = x."""
    if mode == "reduced" and _is_real(x):
        return QRResult(*apply("qr", x))
    found = np.linalg.qr(x.numpy(), mode)                    # type: ignore[call-overload]   # a text that it knows
    return QRResult(Tensor(found[0]), Tensor(found[1]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition U S Vh = x."""
    if _is_real(x):
        return SVDResult(*apply("svd", x, full_matrices=full_matrices))
    return SVDResult(*[Tensor(part) for part in np.linalg.svd(x.numpy(), full_matrices=full_matrices)])


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, the greatest first."""
    return one("svdvals", x) if _is_real(x) else Tensor(np.linalg.svd(x.numpy(), compute_uv=False))


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    if _is_real(x):
        return EighResult(*apply("eigh", x))
    return EighResult(*[Tensor(part) for part in np.linalg.eigh(x.numpy())])


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, the least first."""
    return one("eigvalsh", x) if _is_real(x) else Tensor(np.linalg.eigvalsh(x.numpy()))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of matrices."""
    if _is_real(x) and (rtol is None or isinstance(rtol, int | float)):
        return one("pinv", x, rtol=rtol)
    limit = max(x.shape[-2:], default=0) * np.finfo(x.dtype.numpy).eps if rtol is None else np.asarray(rtol)
    return Tensor(np.linalg.pinv(x.numpy(), rcond=limit))


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The rank of matrices: the number of singular values that are greater than `rtol` times the largest one. The
    default of `rtol` is max(M, N) · eps. `rtol` may be an array, with one number for each matrix."""
    if _is_real(x) and (rtol is None or isinstance(rtol, int | float)):
        return one("matrix_rank", x, rtol=rtol)
    values = np.linalg.svd(x.numpy(), compute_uv=False)
    limit = max(x.shape[-2:]) * np.finfo(x.dtype.numpy).eps if rtol is None else np.asarray(rtol)
    greatest = values.max(axis=-1, keepdims=True, initial=0)
    return Tensor((values > greatest * np.expand_dims(limit, -1)).sum(axis=-1).astype(np.int64))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """x n times by itself; negative n: the inverse."""
    if n == 0:
        return Tensor(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype.numpy), x.shape))
    base, made, n = (x, None, n) if n > 0 else (inv(x), None, -n)
    while n:
        if n & 1:
            made = base if made is None else matmul(made, base)
        base, n = matmul(base, base) if n > 1 else base, n >> 1
    assert made is not None
    return made


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: "fro", "nuc", 1, 2, inf and their negatives."""
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        made = vector_norm(svdvals(x), axis=-1, ord={"nuc": 1, 2: np.inf, -2: -np.inf}[ord])
        return made[..., None, None] if keepdims else made
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"the norms of matrices are 'fro', 'nuc', 1, 2, inf and their negatives, not {ord!r}")
    sums = total(elementwise.abs(x), axis=-2 if abs(ord) == 1 else -1, keepdims=True)
    made = (reductions.max if ord > 0 else reductions.min)(sums, axis=(-2, -1), keepdims=True)
    return made if keepdims else made[..., 0, 0]


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: Any = 2) -> Tensor:
    """The norm of vectors along one or several axes."""
    size = elementwise.abs(x) if isdtype(x.dtype, "complex floating") else x
    if abs(ord) == np.inf and not x.size:                    # the greatest of no elements is 0, as in the standard
        return total(size, axis=axis, keepdims=keepdims)
    return one("norm", size, axis=list(axis) if isinstance(axis, tuple) else axis, keepdims=keepdims, ord=ord)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    a, b = broadcast_arrays(x1, x2)
    if a.shape[axis] != 3 or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"{x1!r}, {x2!r}: vectors of three elements have a cross product")
    return moveaxis(one("cross", moveaxis(a, axis, -1), moveaxis(b, axis, -1)), -1, axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    return one("outer", x1, x2)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    rows, columns = x.shape[-2:]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    at = np.arange(count, dtype=np.int64)
    return x[(..., at - min(offset, 0), at + max(offset, 0))]


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _is_real(x: Tensor) -> bool:
    """Are they matrices of real floats, and is there any?"""
    return x.ndim > 1 and x.size > 0 and bool(isdtype(x.dtype, "real floating"))


__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]

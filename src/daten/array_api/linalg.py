"""The extension `linalg` of the standard, on the operators of the library. All functions take stacks of matrices.

NumPy computes immediately what the operators do not support: complex matrices, empty matrices, a square Q of a tall
matrix, and tolerances that differ between matrices."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ..tensor import Tensor, apply, one
from . import elementwise, statistical_functions
from .data_types import isdtype
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import broadcast_arrays, moveaxis
from .statistical_functions import sum as total

EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices: the lower triangular L with L Lᴴ = x. `upper`: its conjugate
    transpose instead."""
    if _is_real(x):
        lower = one("cholesky", x)
        return matrix_transpose(lower) if upper else lower
    lower = Tensor(np.linalg.cholesky(x.numpy()))
    return Tensor(np.conj(np.swapaxes(lower.numpy(), -1, -2))) if upper else lower


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution X of x1 X = x2, for square matrices x1. If x2 has one axis, it is a vector, else matrices."""
    if _is_real(x1) and x1.dtype == x2.dtype and x2.size:
        made = one("solve", x1, x2 if x2.ndim > 1 else x2.reshape(-1, 1))
        return made if x2.ndim > 1 else made[..., 0]
    if x2.ndim == 1:
        return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()[:, None])[..., 0])
    return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()))


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices."""
    return one("inverse", x) if _is_real(x) else Tensor(np.linalg.inv(x.numpy()))


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices."""
    return one("det", x) if _is_real(x) else Tensor(np.linalg.det(x.numpy()))


def slogdet(x: Tensor, /) -> Any:
    """The signs of the determinants of square matrices, and the natural logarithms of their absolute values."""
    if _is_real(x):
        return SlogdetResult(*apply("slogdet", x))
    found = np.linalg.slogdet(x.numpy())
    return SlogdetResult(Tensor(found.sign), Tensor(found.logabsdet))


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The QR decomposition x = Q R, with orthonormal columns in Q and upper triangular R. `mode`: "reduced", with Q of
    K columns, K = min(M, N), or "complete", with a square Q."""
    if mode == "reduced" and _is_real(x):
        return QRResult(*apply("qr", x))
    found = np.linalg.qr(x.numpy(), mode)                    # type: ignore[call-overload]   # a text that it knows
    return QRResult(Tensor(found[0]), Tensor(found[1]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition x = U diag(S) Vh, with the singular values S in descending order. With
    `full_matrices`, U and Vh are square; without it, U has K = min(M, N) columns and Vh has K rows."""
    if _is_real(x):
        return SVDResult(*apply("svd", x, full_matrices=full_matrices))
    return SVDResult(*[Tensor(part) for part in np.linalg.svd(x.numpy(), full_matrices=full_matrices)])


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, in descending order."""
    return one("svdvals", x) if _is_real(x) else Tensor(np.linalg.svd(x.numpy(), compute_uv=False))


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order, and the eigenvectors as columns."""
    if _is_real(x):
        return EighResult(*apply("eigh", x))
    return EighResult(*[Tensor(part) for part in np.linalg.eigh(x.numpy())])


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    return one("eigvalsh", x) if _is_real(x) else Tensor(np.linalg.eigvalsh(x.numpy()))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudo-inverses of matrices. Singular values up to `rtol` times the largest one count as 0; the
    default is max(M, N) · eps."""
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
    """The matrix power xⁿ of square matrices. n = 0: the identity; n < 0: the power of the inverse."""
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
    """The norms of matrices. `ord`: "fro" (Frobenius), "nuc" (the sum of the singular values), 1 or -1 (the largest or
    smallest column sum of absolute values), inf or -inf (the same of rows), 2 or -2 (the largest or smallest singular
    value). ValueError for another `ord`."""
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        made = vector_norm(svdvals(x), axis=-1, ord={"nuc": 1, 2: np.inf, -2: -np.inf}[ord])
        return made[..., None, None] if keepdims else made
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"the norms of matrices are 'fro', 'nuc', 1, 2, inf and their negatives, not {ord!r}")
    sums = total(elementwise.abs(x), axis=-2 if abs(ord) == 1 else -1, keepdims=True)
    made = (statistical_functions.max if ord > 0 else statistical_functions.min)(sums, axis=(-2, -1), keepdims=True)
    return made if keepdims else made[..., 0, 0]


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: Any = 2) -> Tensor:
    """The p-norm with p = `ord` of vectors along axes; without `axis`, of all elements. ±inf: the largest or smallest
    |x|."""
    size = elementwise.abs(x) if isdtype(x.dtype, "complex floating") else x
    if abs(ord) == np.inf and not x.size:                    # the greatest of no elements is 0, as in the standard
        return total(size, axis=axis, keepdims=keepdims)
    return one("norm", size, axis=list(axis) if isinstance(axis, tuple) else axis, keepdims=keepdims, ord=ord)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis. ValueError for another extent."""
    a, b = broadcast_arrays(x1, x2)
    if a.shape[axis] != 3 or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"{x1!r}, {x2!r}: vectors of three elements have a cross product")
    return moveaxis(one("cross", moveaxis(a, axis, -1), moveaxis(b, axis, -1)), -1, axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The outer product of two vectors: all products of an element of x1 and one of x2."""
    return one("outer", x1, x2)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices. `offset` > 0: above the main diagonal; < 0: below it."""
    rows, columns = x.shape[-2:]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    at = np.arange(count, dtype=np.int64)
    return x[(..., at - min(offset, 0), at + max(offset, 0))]


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The traces of matrices: the sums of their diagonals. `offset` as in `diagonal`, `dtype` as in `sum`."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _is_real(x: Tensor) -> bool:
    """True for matrices of real floating-point numbers that have elements."""
    return x.ndim > 1 and x.size > 0 and bool(isdtype(x.dtype, "real floating"))


__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]

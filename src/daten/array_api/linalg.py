"""The extension `linalg` of the standard. Decompositions of single matrices that the library has are kernels. What it
has not (singular values, eigenvalues), and those of stacks of matrices, NumPy computes at once."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ..tensor import Tensor, apply, one
from .data_types import isdtype
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import broadcast_arrays, moveaxis
from .reductions import sum as total

EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L Lᵀ = x of a positive definite matrix; `upper`: its conjugate transpose."""
    lower = one("cholesky", x) if _is_single(x) else Tensor(np.linalg.cholesky(x.numpy()))
    return Tensor(np.conj(np.swapaxes(lower.numpy(), -1, -2))) if upper else lower


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The X with x1 X = x2."""
    if _is_single(x1) and x2.ndim in (1, 2) and x1.dtype == x2.dtype and x1.size:
        made = one("solve", x1, x2 if x2.ndim == 2 else x2.reshape(-1, 1))
        return made if x2.ndim == 2 else made.reshape(-1)
    if x2.ndim == 1:
        return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()[:, None])[..., 0])
    return Tensor(np.linalg.solve(x1.numpy(), x2.numpy()))


def inv(x: Tensor, /) -> Tensor:
    """The inverse of a matrix."""
    return one("inverse", x) if _is_single(x) and x.size else Tensor(np.linalg.inv(x.numpy()))


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return one("det", x) if _is_single(x) and x.size else Tensor(np.linalg.det(x.numpy()))


def slogdet(x: Tensor, /) -> Any:
    """The sign of the determinant and the logarithm of its absolute value."""
    found = np.linalg.slogdet(x.numpy())
    return SlogdetResult(Tensor(found.sign), Tensor(found.logabsdet))


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The orthogonal Q and the triangular R with Q R = x."""
    if mode == "reduced" and _is_single(x) and x.shape[0] >= x.shape[1] > 0:
        return QRResult(*apply("qr", x))
    found = np.linalg.qr(x.numpy(), mode)                    # type: ignore[call-overload]   # a text that it knows
    return QRResult(Tensor(found[0]), Tensor(found[1]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition U S Vh = x."""
    return SVDResult(*[Tensor(part) for part in np.linalg.svd(x.numpy(), full_matrices=full_matrices)])


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, the greatest first."""
    return Tensor(np.linalg.svd(x.numpy(), compute_uv=False))


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of a symmetric or Hermitian matrix."""
    return EighResult(*[Tensor(part) for part in np.linalg.eigh(x.numpy())])


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix, the least first."""
    return Tensor(np.linalg.eigvalsh(x.numpy()))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse."""
    limit = max(x.shape[-2:], default=0) * np.finfo(x.dtype.numpy).eps if rtol is None else np.asarray(rtol)
    return Tensor(np.linalg.pinv(x.numpy(), rcond=limit))


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values that are not 0."""
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
    return Tensor(np.asarray(np.linalg.norm(x.numpy(), ord=ord, axis=(-2, -1), keepdims=keepdims)))


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: Any = 2) -> Tensor:
    """The norm of vectors along one or several axes."""
    array = x.numpy()
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    kept = [n for n in range(x.ndim) if n not in {a % x.ndim for a in axes}]
    flat = array.transpose(*kept, *[a % x.ndim for a in axes]).reshape(*[x.shape[n] for n in kept], -1)
    made = np.asarray(np.linalg.norm(flat, ord=ord, axis=-1))
    if keepdims:
        made = made.reshape([x.shape[n] if n in kept else 1 for n in range(x.ndim)])
    return Tensor(made)


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


def _is_single(x: Tensor) -> bool:
    """Is it one matrix of real floats?"""
    return x.ndim == 2 and bool(isdtype(x.dtype, "real floating"))


__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]

"""Decompositions of matrices: what they promise holds for matrices of all kinds, singular and badly scaled ones included, and of stacks."""
from __future__ import annotations

import numpy as np
import pytest

import caten

rng = np.random.default_rng(5)
KINDS = ("random", "nought", "ones", "one column", "a row of noughts", "graded", "tiny", "huge", "shifted", "multiple values")


def matrices(kind: str, rows: int, columns: int) -> np.ndarray:
    """Two matrices of a kind."""
    x = rng.standard_normal((2, rows, columns))
    match kind:
        case "nought":
            return 0 * x
        case "ones":
            return np.ones_like(x)
        case "one column":
            return x[:, :, :1] @ x[:, :1, :]
        case "a row of noughts":
            x[:, -1] = 0
        case "graded":
            return x * 10.0 ** -np.arange(columns)
        case "tiny" | "huge":
            return x * (1e-160 if kind == "tiny" else 1e150)
        case "shifted":
            return np.broadcast_to(np.eye(rows, columns, 1), x.shape).copy()
        case "multiple values":
            q = np.linalg.qr(rng.standard_normal((2, rows, rows)))[0]
            return np.resize((q * (np.arange(rows) // 3)) @ np.swapaxes(q, -1, -2), x.shape)
    return x


def size(x: np.ndarray) -> float:
    return float(abs(x).max(initial=0))


def close(got: np.ndarray, want: np.ndarray, scale: float, dtype: type) -> None:
    assert got.dtype == dtype
    assert size(got - want) <= 100 * np.finfo(dtype).eps * max(scale, 1e-300) * max(1, len(want)), (size(got - want), scale)


def orthonormal(q: np.ndarray, dtype: type) -> None:
    close(np.swapaxes(q, -1, -2) @ q, np.eye(q.shape[-1]).astype(dtype), 1.0, dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 21])
def test_eigenvalues_of_symmetric_matrices(n: int, kind: str) -> None:
    x = matrices(kind, n, n)
    a = x + np.swapaxes(x, -1, -2)
    values, v = caten.ops.eigh(a)
    close(v * values[..., None, :] @ np.swapaxes(v, -1, -2), a, size(a), np.float64)
    orthonormal(v, np.float64)
    assert (np.diff(values) >= 0).all()
    close(values, np.linalg.eigvalsh(a), size(a), np.float64)
    close(caten.ops.eigvalsh(np.tril(a)), np.linalg.eigvalsh(a), size(a), np.float64)
    greatest = np.take_along_axis(v, abs(v).argmax(axis=-2)[..., None, :], -2)
    assert (greatest > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 5), (5, 2), (7, 7), (20, 13), (13, 20)])
def test_singular_values(rows: int, columns: int, kind: str) -> None:
    a = matrices(kind, rows, columns)
    k = min(rows, columns)
    for full in (False, True):
        u, s, vh = caten.ops.svd(a, full_matrices=full)
        assert u.shape == (2, rows, rows if full else k)
        assert vh.shape == (2, columns if full else k, columns)
        close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, size(a), np.float64)
        orthonormal(u, np.float64)
        orthonormal(np.swapaxes(vh, -1, -2), np.float64)
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()
    expected = np.linalg.svd(a, compute_uv=False)
    close(s, expected, size(a), np.float64)
    close(caten.ops.svdvals(a), expected, size(a), np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 5), (5, 2), (16, 16), (20, 13)])
def test_orthogonal_triangular(rows: int, columns: int, kind: str) -> None:
    a = matrices(kind, rows, columns)
    q, r = caten.ops.qr(a)
    close(q @ r, a, size(a), np.float64)
    orthonormal(q, np.float64)
    assert not np.tril(r, -1).any()
    assert (np.diagonal(r, 0, -2, -1) >= 0).all()


@pytest.mark.slice(2)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_small_types(dtype: str) -> None:
    a = matrices("random", 6, 6).astype(dtype)
    wide = a.astype(np.float64)
    symmetric = (a + np.swapaxes(a, -1, -2)).astype(dtype)
    scale = np.finfo(dtype).eps * 100
    np.testing.assert_allclose(caten.ops.svdvals(a).astype(np.float64), np.linalg.svd(wide, compute_uv=False), rtol=scale, atol=scale)
    np.testing.assert_allclose(caten.ops.eigvalsh(symmetric).astype(np.float64), np.linalg.eigvalsh(symmetric.astype(np.float64)), rtol=scale, atol=scale)
    q, r = [x.astype(np.float64) for x in caten.ops.qr(a)]
    np.testing.assert_allclose(q @ r, wide, atol=scale)
    u, s, vh = [x.astype(np.float64) for x in caten.ops.svd(a)]
    np.testing.assert_allclose(u * s[..., None, :] @ vh, wide, atol=scale)


def test_pseudo_inverses_and_ranks() -> None:
    for kind in ("random", "one column", "a row of noughts", "ones"):
        a = matrices(kind, 5, 4)
        np.testing.assert_allclose(caten.ops.pinv(a), np.linalg.pinv(a), atol=1e-10)
        np.testing.assert_array_equal(caten.ops.matrix_rank(a), np.linalg.matrix_rank(a))


@pytest.mark.nightly
def test_pseudo_inverses_and_ranks_within_a_tolerance() -> None:
    a = np.diag([1.0, 0.5, 1e-3])
    assert [int(caten.ops.matrix_rank(a, rtol=r)) for r in (1e-4, 0.1, 0.7)] == [3, 2, 1]
    np.testing.assert_allclose(caten.ops.pinv(a, rtol=0.1), np.diag([1, 2, 0]))


def test_stacks_and_matrices_that_are_repeated() -> None:
    a, b = rng.standard_normal((3, 1, 4, 4)), rng.standard_normal((2, 4, 3))
    np.testing.assert_allclose(caten.ops.solve(a, b), np.linalg.solve(a, b), atol=1e-9)
    np.testing.assert_allclose(np.triu(a) @ caten.ops.triangular_solve(a, b, lower=False), np.broadcast_to(b, (3, 2, 4, 3)), atol=1e-9)
    np.testing.assert_allclose(caten.ops.inverse(a), np.linalg.inv(a), atol=1e-9)
    np.testing.assert_allclose(caten.ops.det(a), np.linalg.det(a))
    sign, log = caten.ops.slogdet(a)
    np.testing.assert_allclose((sign, log), np.linalg.slogdet(a))
    assert [x.tolist() for x in caten.ops.slogdet(np.zeros((2, 2)))] == [0, -np.inf]


def test_what_is_not_positive_definite_gives_nan() -> None:
    found = caten.ops.cholesky(np.stack([np.eye(2), -np.eye(2)]))
    assert found[0].tolist() == [[1, 0], [0, 1]]
    assert np.isnan(found[1, 0, 0])


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", ["eigh", "svd", "qr"])
def test_elements_that_are_no_numbers_end(name: str) -> None:
    """The number of steps is bounded, and what comes of NaN is NaN."""
    found = getattr(caten.ops, name)(np.full((5, 5), np.nan))
    assert np.isnan(np.asarray(found[0])).any()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (1, 1)])
def test_matrices_without_elements_or_with_one(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 2.0)
    made = [(caten.ops.svd(x, full_matrices=False), np.linalg.svd(x, full_matrices=False)), (caten.ops.qr(x), np.linalg.qr(x)), ((caten.ops.svdvals(x), caten.ops.pinv(x), caten.ops.matrix_rank(x)),
            (np.linalg.svdvals(x), np.linalg.pinv(x), np.linalg.matrix_rank(x)))]
    if shape[-1] == shape[-2]:
        made += [(caten.ops.eigh(x), np.linalg.eigh(x)), ((caten.ops.eigvalsh(x),), (np.linalg.eigvalsh(x),))]
    for found, wanted in made:
        for a, b in zip(found, wanted, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(abs(a), abs(b))

"""The array API namespace: what its own test suite does not look at, and what it found."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import daten
import daten.array_api as xp
from daten import Tensor


def test_the_names_of_the_standard() -> None:
    assert xp.__array_api_version__ == "2024.12"
    assert Tensor([1.0]).__array_namespace__() is xp
    assert xp.asarray([1, 2]).dtype == xp.int64 == "int64"
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16
    with pytest.raises(TypeError, match="no type for int64 and uint64"):
        xp.result_type(xp.int64, xp.uint64)
    assert xp.finfo(xp.float32).eps == np.finfo(np.float32).eps
    assert xp.isdtype(xp.uint8, ("bool", "integral"))
    assert xp.__array_namespace_info__().default_dtypes()["real floating"] == xp.float32


@pytest.mark.parametrize("runtime", ["numpy", "clang"])
def test_a_bool_without_axes(runtime: str) -> None:
    daten.use(runtime)
    try:
        assert bool(xp.all(xp.asarray(True) == xp.asarray(True)))
    finally:
        daten.use()


def test_products() -> None:
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(xp.tensordot(Tensor(a), Tensor(b), axes=((1, 2), (1, 0))).numpy(), np.tensordot(a, b, ((1, 2), (1, 0))))
    c, d = np.array([1 + 1j, 2], np.complex64), np.array([1, 2j], np.complex64)
    assert complex(xp.vecdot(Tensor(c), Tensor(d))) == np.vdot(c, d)
    np.testing.assert_allclose(xp.linalg.solve(Tensor(b[:3] + 5 * np.eye(3)), Tensor(b[3])).numpy(), np.linalg.solve(b[:3] + 5 * np.eye(3), b[3]))


@pytest.mark.nightly
def test_transforms_of_other_lengths() -> None:
    x = np.random.default_rng(0).standard_normal((3, 10))
    for n in (7, 10, 12):
        np.testing.assert_allclose(xp.fft.fft(Tensor(x), n=n, axis=1).numpy(), np.fft.fft(x, n, 1), atol=1e-12)
        np.testing.assert_allclose(xp.fft.hfft(Tensor(x), n=n).numpy(), np.fft.hfft(x, n), atol=1e-12)
    np.testing.assert_allclose(xp.fft.irfftn(xp.fft.rfftn(Tensor(x))).numpy(), x, atol=1e-12)


def test_arrays_of_other_libraries() -> None:
    own = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(Tensor(own)), own)
    np.testing.assert_array_equal(xp.from_dlpack(own, copy=False).numpy(), own)
    assert memoryview(Tensor(own).numpy()).shape == (2, 3)
    if sys.version_info >= (3, 12):                             # before, classes have no buffer protocol
        assert memoryview(Tensor(own)).tolist() == own.tolist()
    with pytest.raises(ValueError, match="there is one device"):
        Tensor(own).to_device("cuda")


def test_dlpack_copies_only_where_it_may() -> None:
    """A tensor is read-only: an array without a copy says so, which DLPack before 1.0 cannot."""
    own = np.arange(6.0).reshape(2, 3)
    x = Tensor(own)
    for copy in (None, True):
        given = np.from_dlpack(Exporter(x, copy))
        assert not np.shares_memory(given, x.numpy())
    shared = np.from_dlpack(x, copy=False)
    assert not shared.flags.writeable
    assert np.shares_memory(shared, x.numpy())
    for version in (None, (0, 8)):
        with pytest.raises(BufferError, match=r"DLPack before 1\.0 cannot say"):
            x.__dlpack__(copy=False, max_version=version)
    with pytest.raises(BufferError, match="on the CPU"):
        x.__dlpack__(dl_device=(2, 0))
    assert np.shares_memory(xp.from_dlpack(own, copy=False).numpy(), own)
    assert np.shares_memory(xp.from_dlpack(Old(own), copy=False).numpy(), own)
    for copy in (None, True):
        assert not np.shares_memory(xp.from_dlpack(own, copy=copy).numpy(), own)
    with pytest.raises(BufferError, match="only with a copy"):
        xp.from_dlpack(Copying(own), copy=False)
    np.testing.assert_array_equal(xp.from_dlpack(Copying(own)).numpy(), own)


class Old:
    """An array of a library that knows the first DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Exporter(Old):
    """Asks for a copy, or leaves it to the tensor."""

    def __init__(self, array: Any, copy: bool | None) -> None:
        super().__init__(array)
        self.copy = copy

    def __dlpack__(self, **given: Any) -> Any:
        return self.array.__dlpack__(copy=self.copy)


class Copying(Old):
    """An array that is not as DLPack needs it."""

    def __dlpack__(self, *, copy: bool | None = None, **given: Any) -> Any:
        if copy is False:
            raise BufferError("only with a copy")
        return self.array.copy().__dlpack__()


def test_indices() -> None:
    own = np.arange(24.0).reshape(4, 6)
    x = Tensor(own)
    where = np.array([3, 0, -1])
    for index in (where, (slice(1, None), where), own > 5, (own > 5)[:, 0], (where[:, None], where), (1, where), ..., (None, 2), True, False):
        np.testing.assert_array_equal(x[index].numpy(), own[index])
    changed, expected = Tensor(own), own.copy()
    for index, value in ((slice(1, 3), 0.0), (own > 20, 7.0), ((where, 2), np.arange(3.0)), ((0, 0), 5), (..., own), (True, 1.0), (False, 2.0)):
        changed[index] = value
        expected[index] = value
        np.testing.assert_array_equal(changed.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), own)
    for index, message in ((9, "out of bounds"), ((0, 0, 0), "too many indices"), (own[:2] > 0, "a mask of shape"), (1.5, "is no index")):
        with pytest.raises(IndexError, match=message):
            x[index]


def test_operators_of_integers_and_bools() -> None:
    own = np.arange(6, dtype=np.int32)
    x = Tensor(own)
    pairs = [(x + 1.5, own + 1.5), (x / 2, own / 2), (x ** 2, own ** 2), (2 ** x, 2 ** own), (~x, ~own), (x & 3, own & 3), (x << 1, own << 1),
             (~(x > 2), ~(own > 2)), ((x > 2) ^ (x > 4), (own > 2) ^ (own > 4)), (x // 2, own // 2), (7 % (x + 1), 7 % (own + 1)),
             (x + np.float32(1), own + np.float32(1)), (x + own.astype(np.int8), own + own)]
    for found, expected in pairs:
        np.testing.assert_array_equal(found.numpy(), expected)

"""bfloat16 by DLPack, as other libraries exchange it: a capsule whose element type is kDLBfloat."""
from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import caten
import daten.array_api as xp
from caten.calls import dlpack
from daten import Tensor

X = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
AT = {b"dltensor": 20, b"dltensor_versioned": 52}                    # of DLDataType in dlpack.h: code, bits, lanes


class Other:
    """An array of bfloat16 in another library, which NumPy does not know as an array. `versions`: does it speak DLPack 1.0?"""

    def __init__(self, array: np.ndarray, versions: bool) -> None:
        self.bits, self.versions = array.view(np.uint16), versions

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, stream: Any = None, **how: Any) -> Any:
        if how and not self.versions:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        capsule = self.bits.__dlpack__(**how)
        type_of(capsule)[0] = 4
        return capsule


def type_of(capsule: Any) -> Any:
    """The code and the bits of the element type in a capsule."""
    valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    (name,) = [n for n in AT if valid(capsule, n)]
    return (ctypes.c_uint8 * 2).from_address(pointer(capsule, name) + AT[name])


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("x", [X, X.T, X[:, ::-1], X[:0]], ids=["rows", "columns", "reversed", "empty"])
def test_arrays_of_other_libraries_are_read(x: np.ndarray, versions: bool) -> None:
    other = Other(x, versions)
    for made in (dlpack.array_of(other), xp.from_dlpack(other).numpy(), Tensor(other).numpy(), Tensor(other, "float32").astype("bfloat16").numpy()):
        assert made.dtype == ml_dtypes.bfloat16
        assert np.array_equal(made, x)
    assert np.array_equal(xp.from_dlpack(other, copy=False).numpy(), x)
    assert np.array_equal(caten.ops.negative(other), -x)


def test_a_tensor_says_that_its_elements_are_bfloat16() -> None:
    t = Tensor(X)
    assert tuple(type_of(t.__dlpack__())) == (4, 16)
    assert np.array_equal(dlpack.array_of(t), X)
    assert np.array_equal(xp.from_dlpack(t).numpy(), X)
    assert tuple(type_of(Tensor(X.astype(np.float32)).__dlpack__())) == (2, 32)


def test_other_types_are_as_numpy_has_them() -> None:
    for x in (np.ones(3, np.int8), np.ones(3, bool), np.ones(3, np.uint16), np.ones((2, 2), np.complex64)):
        assert np.array_equal(dlpack.array_of(x), x)
        assert dlpack.array_of(x).dtype == x.dtype

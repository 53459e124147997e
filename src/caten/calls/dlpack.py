"""Arrays of other libraries by DLPack, and arrays for them. bfloat16, which NumPy's DLPack does not know, travels as
16-bit integers whose type is named in the capsule (dlpack.h, DLDataTypeCode)."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..core.numpy_types import numpy_dtype

UINT, BFLOAT = 1, 4                                            # kDLUInt, kDLBfloat
# The offset of the type in DLManagedTensor, and in DLManagedTensorVersioned, which has 32 bytes before the DLTensor.
TYPE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}


def array_of(value: Any, **how: Any) -> np.ndarray:
    """The array over the memory of a value with `__dlpack__`, as `np.from_dlpack`, whose keywords `how` are."""
    given = _AsIntegers(value)
    array: np.ndarray = np.from_dlpack(given, **how)
    return array.view(numpy_dtype("bf16")) if given.is_bfloat else array


def capsule_of(array: np.ndarray, **how: Any) -> Any:
    """What `array.__dlpack__` returns, whose keywords `how` are."""
    if array.dtype != numpy_dtype("bf16"):
        return array.__dlpack__(**how)
    capsule = array.view(np.uint16).__dlpack__(**how)
    _type_of(capsule)[0] = BFLOAT
    return capsule


class _AsIntegers:
    """A value whose elements of bfloat16 are exported as 16-bit integers."""

    def __init__(self, value: Any) -> None:
        self.value, self.is_bfloat = value, False

    def __dlpack__(self, **how: Any) -> Any:
        capsule = self.value.__dlpack__(**how)
        type_ = _type_of(capsule)
        if (type_[0], type_[1]) == (BFLOAT, 16):
            type_[0], self.is_bfloat = UINT, True
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        found: tuple[int, int] = self.value.__dlpack_device__()
        return found


def _type_of(capsule: Any) -> Any:
    """The bytes of the element type in a capsule: its code, its bits, its lanes."""
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    name = next(name for name in TYPE_AT if is_valid(capsule, name))
    return (ctypes.c_uint8 * 2).from_address(pointer(capsule, name) + TYPE_AT[name])

"""Element types: their names, properties and promotion."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caten.core.numpy_types import numpy_dtype

from ..element_types import DType, dtype, type_named
from ..operands import promoted
from ..tensor import Tensor

bool = dtype("bool")
int8, int16, int32, int64 = [dtype(n) for n in ("i8", "i16", "i32", "i64")]
uint8, uint16, uint32, uint64 = [dtype(n) for n in ("u8", "u16", "u32", "u64")]
float32, float64, complex64, complex128 = [dtype(n) for n in ("f32", "f64", "c64", "c128")]

KINDS = {"bool": {bool}, "signed integer": {int8, int16, int32, int64},
         "unsigned integer": {uint8, uint16, uint32, uint64},
         "real floating": {float32, float64, dtype("f16"), dtype("bf16")}, "complex floating": {complex64, complex128}}
KINDS["integral"] = KINDS["signed integer"] | KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] | KINDS["real floating"] | KINDS["complex floating"]
DEFAULTS = {"real floating": float32, "complex floating": complex64, "integral": int64, "indexing": int64}


@dataclass(frozen=True)
class FloatInfo:
    """The properties of a floating-point type. `bits`: the size of a number; `eps`: the distance from 1 to the next
    larger number; `max`, `min`: the largest and the smallest finite number; `smallest_normal`: the smallest positive
    normal number."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The properties of an integer type: its size in bits, and its largest and smallest number."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """The properties of a floating-point type; for a complex type, those of its real and imaginary parts."""
    found = np.finfo(numpy_dtype(type_named(_type_of(type))))
    return FloatInfo(found.bits, float(found.eps), float(found.max), float(found.min), float(found.smallest_normal),
                     dtype_object(found.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """The properties of an integer type."""
    found = np.iinfo(numpy_dtype(type_named(_type_of(type))))
    return IntegerInfo(found.bits, int(found.max), int(found.min), dtype_object(found.dtype))


def isdtype(dtype: Any, kind: Any) -> Any:
    """True if the element type is of this kind: "bool", "signed integer", "unsigned integer", "integral", "real
    floating", "complex floating", "numeric", an element type, or a tuple of kinds, of which one must match. ValueError
    for an unknown kind."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of element types: those are {', '.join(KINDS)}")
    return dtype in KINDS[kind]


def can_cast(from_: Any, to: Any, /) -> Any:
    """True if type promotion allows a cast from `from_` to `to`: result_type(from_, to) == to."""
    source = _type_of(from_)
    try:
        return result_type(source, to) == _type_of(to)
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The element type that type promotion gives for these arrays, element types and Python numbers. TypeError if the
    standard defines none."""
    types = [_type_of(a) for a in arrays_and_dtypes if not isinstance(a, NUMBERS)]
    if not types:
        raise TypeError("result_type needs an array or an element type")
    kinds = {_kind(t) for t in types}
    if len(kinds) > 1 and kinds != {"real", "complex"}:
        raise TypeError(f"the standard has no type for {' and '.join(dict.fromkeys(map(str, types)))}")
    found = dtype(promoted([t.caten for t in types]))
    if kinds == {"integral"} and found not in KINDS["integral"]:
        raise TypeError(f"the standard has no type for {' and '.join(dict.fromkeys(map(str, types)))}")
    for value in arrays_and_dtypes:
        if isinstance(value, complex) and _kind(found) == "real":
            found = complex64 if found == float32 else complex128
    return found


def astype(x: Tensor, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Tensor:
    """The array converted to this element type."""
    if device is not None:
        x.to_device(device)
    return Tensor(x.astype(_type_of(dtype)))


NUMBERS = (int, float, complex)                             # a bool is an int


def dtype_object(given: Any) -> DType:
    """The element type of daten for one of NumPy, or for a name."""
    return dtype(type_named(given))


def _type_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else dtype_object(value)


def _kind(dtype: DType) -> str:
    if dtype in KINDS["integral"]:
        return "integral"
    return "bool" if dtype == bool else "complex" if dtype in KINDS["complex floating"] else "real"


class Info:
    """The capabilities, element types and devices of the namespace (`__array_namespace_info__`)."""

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices and results with data-dependent shapes are supported; they are computed immediately."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The only device, "cpu"."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The default element types, by kind."""
        return dict(DEFAULTS)

    def devices(self) -> list[str]:
        """The devices: "cpu" alone."""
        return ["cpu"]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The element types of the standard by name; with `kind`, only those of this kind."""
        types = [bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64,
                 complex128]
        return {t.name: t for t in types if kind is None or isdtype(t, kind)}

"""The element types: names, sizes, ranges, and how a user spells them."""
from __future__ import annotations

import math
import struct

from ..frozen import frozen


@frozen
class DType:
    """One element type. `bits` is its size; `kind` is one of `float int uint bool complex`; `numpy` the name that
    numpy, or ml_dtypes, has for it. A `storage` type is read, written, chosen and converted, and nothing is computed in
    it: see `computed`."""

    name: str
    kind: str
    bits: int
    numpy: str
    storage: bool = False

    @property
    def bytes(self) -> int:
        """Of an element by itself; in an array of the caller's, two elements of 4 bits share one."""
        return max(1, self.bits // 8)

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number: the relative error of one rounding (0 for integers)."""
        return {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53, "c64": 2.0**-24,
                "c128": 2.0**-53}.get(self.name, 0.0)

    @property
    def least(self) -> int:
        return 0 if self.kind in ("uint", "bool") else -(1 << (self.bits - 1))

    @property
    def greatest(self) -> int:
        return 1 if self.kind == "bool" else (1 << self.bits) - 1 if self.kind == "uint" else (1 << (self.bits - 1)) - 1


DTYPES: dict[str, DType] = {d.name: d for d in (
    DType("bool", "bool", 8, "bool"),
    *(DType(f"i{b}", "int", b, f"int{b}") for b in (8, 16, 32, 64)),
    *(DType(f"u{b}", "uint", b, f"uint{b}") for b in (8, 16, 32, 64)),
    DType("i4", "int", 4, "int4", True), DType("u4", "uint", 4, "uint4", True),
    DType("f16", "float", 16, "float16", True), DType("bf16", "float", 16, "bfloat16", True),
    DType("f32", "float", 32, "float32"), DType("f64", "float", 64, "float64"),
    DType("c64", "complex", 64, "complex64"), DType("c128", "complex", 128, "complex128"),
)}

# How a spec may spell a type (in any case). `int` is 64 bits wide.
SPELLINGS: dict[str, str] = {
    "bool": "bool", "boolean": "bool", "int": "i64",
    **{f"int{b}": f"i{b}" for b in (8, 16, 32, 64)}, **{f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)},
    **{f"i{b}": f"i{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"u{b}" for b in (8, 16, 32, 64)},
    "int4": "i4", "uint4": "u4", "i4": "i4", "u4": "u4",
    "half": "f16", "bfloat16": "bf16", "bf16": "bf16", "float": "f32", "double": "f64",
    **{f"{p}{b}": f"f{b}" for p in ("float", "fp", "f") for b in (16, 32, 64)},
    "complex64": "c64", "complex128": "c128", "c64": "c64", "c128": "c128",
}

# Spellings that a spec may not use yet, with the reason (shown in the diagnostic).
LATER: dict[str, str] = {
    "sparse": "Sparse tensors are not supported yet",
}

# The floats: bits of the significand with the leading one, exponent of the last place of the smallest numbers, greatest
# number.
FORMATS: dict[str, tuple[int, int, float]] = {
    "f16": (11, -24, 65504.0), "bf16": (8, -133, (2 - 2.0**-7) * 2.0**127),
    "f32": (24, -149, (2 - 2.0**-23) * 2.0**127),
    "f64": (53, -1074, (2 - 2.0**-52) * 2.0**1023),
}


def computed(dtype: str) -> str:
    """The type in which arithmetic on a type is done: float32 for the 16-bit floats, to which every result is
    rounded."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def part(dtype: str) -> str:
    """The type of the parts of a complex number; any other type itself."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def whole(dtype: str) -> str:
    """The type of complex numbers with parts of a type; '' if there is none."""
    return {"f32": "c64", "f64": "c128"}.get(dtype, "")


def is_short(dtype: str) -> bool:
    """Is it a float of 16 bits?"""
    return dtype in ("f16", "bf16")


def is_packed(dtype: str) -> bool:
    """Do two elements share a byte in an array of the caller's?"""
    return DTYPES[dtype].bits == 4


def rounded(value: float, dtype: str) -> float:
    """The number nearest to a float64 in a float type: halves to even, infinity where it is too large."""
    precision, last, greatest = FORMATS[dtype]
    if dtype == "f64" or value == 0 or not math.isfinite(value):
        return value
    place = max(math.frexp(value)[1] - precision, last)
    nearest = math.ldexp(round(math.ldexp(value, -place)), place) if place > -1000 else 0.0
    nearest = math.copysign(nearest, value)
    return nearest if abs(nearest) <= greatest else math.copysign(math.inf, value)


def rounds_to_infinity(value: float, dtype: str) -> bool:
    """Is a finite number too large for a float type?"""
    return math.isfinite(value) and math.isinf(rounded(value, dtype))


def short_bits(value: float, dtype: str) -> int:
    """The bits of a 16-bit float, from a number that is rounded to it."""
    if math.isnan(value):
        return 0x7E00 if dtype == "f16" else 0x7FC0
    nearest = rounded(value, dtype)
    return int.from_bytes(struct.pack("<e", nearest) if dtype == "f16" else struct.pack("<f", nearest)[2:], "little")


def short_value(bits: int, dtype: str) -> float:
    """The number that the bits of a 16-bit float mean."""
    raw = bits.to_bytes(2, "little")
    value: float = struct.unpack("<e", raw)[0] if dtype == "f16" else struct.unpack("<f", b"\0\0" + raw)[0]
    return value


def is_float(dtype: str) -> bool:
    """Is it a real floating-point type?"""
    return DTYPES[dtype].kind == "float"


def is_integer(dtype: str) -> bool:
    """Is it a signed or unsigned integer (bool is not)?"""
    return DTYPES[dtype].kind in ("int", "uint")


def is_complex(dtype: str) -> bool:
    """Is it a pair of floats?"""
    return DTYPES[dtype].kind == "complex"

"""The element types: names, sizes, ranges, and how a user spells them."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """One element type. `bits` is its storage size; `kind` is one of `float int uint bool complex`."""

    name: str
    kind: str
    bits: int
    numpy: str

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number: the relative error of one rounding (0 for integers)."""
        return {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53, "c64": 2.0**-24, "c128": 2.0**-53}.get(self.name, 0.0)

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
    DType("f32", "float", 32, "float32"), DType("f64", "float", 64, "float64"),
    DType("c64", "complex", 64, "complex64"), DType("c128", "complex", 128, "complex128"),
)}

# How a spec may spell a type (in any case). `int` is 64 bits wide.
SPELLINGS: dict[str, str] = {
    "bool": "bool", "boolean": "bool", "int": "i64",
    **{f"int{b}": f"i{b}" for b in (8, 16, 32, 64)}, **{f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)},
    **{f"i{b}": f"i{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"u{b}" for b in (8, 16, 32, 64)},
    "float": "f32", "double": "f64",
    **{f"{p}{b}": f"f{b}" for p in ("float", "fp", "f") for b in (32, 64)},
    "complex64": "c64", "complex128": "c128", "c64": "c64", "c128": "c128",
}

# Spellings that a spec may not use yet, with the reason (shown in the diagnostic).
LATER: dict[str, str] = {
    **dict.fromkeys(("half", "float16", "fp16", "f16", "bfloat16", "bf16"), "16-bit floats are not supported yet; use float"),
    **dict.fromkeys(("int4", "uint4", "i4", "u4"), "4-bit storage types are not supported yet; use int8 or uint8"),
    "dense": "class words such as Dense are not supported yet; name an element type",
    "complex": "class words such as Complex are not supported yet; use complex64 or complex128",
    "sparse": "Sparse tensors are not supported yet",
}


def is_float(dtype: str) -> bool:
    """Is it a real floating-point type?"""
    return DTYPES[dtype].kind == "float"


def is_integer(dtype: str) -> bool:
    """Is it a signed or unsigned integer (bool is not)?"""
    return DTYPES[dtype].kind in ("int", "uint")


def is_complex(dtype: str) -> bool:
    """Is it a pair of floats?"""
    return DTYPES[dtype].kind == "complex"

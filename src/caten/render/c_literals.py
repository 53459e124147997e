"""Constants in C: exact, of the right type, and as short as that allows."""
from __future__ import annotations

import math
import struct
from typing import Any

from ..core.dtypes import DTYPES, is_short, rounded, short_bits
from .code import UNARY, Code


def literal(value: Any, dtype: str) -> Code:
    """The C expression of a constant. 8- and 16-bit values are plain ints, 16-bit floats their bits; infinity and NaN
    need <math.h>."""
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return Code("1" if value else "0")
    if kind in ("int", "uint"):
        return integer(int(value), dtype)
    if kind == "complex":
        part, number = ("f32" if dtype == "c64" else "f64"), complex(value)
        return Code(f"(ct_{dtype}){{{floating(number.real, part).text}, {floating(number.imag, part).text}}}")
    if is_short(dtype):
        return Code(f"0x{short_bits(float(value), dtype):04x} /* {rounded(float(value), dtype):g} */")
    return floating(float(value), dtype)


def integer(value: int, dtype: str) -> Code:
    """An integer, wrapped into its type."""
    row = DTYPES[dtype]
    value = (value - row.least) % (1 << row.bits) + row.least
    if row.kind == "uint":
        return Code(str(value) + ("u" if row.bits >= 32 else ""))
    if value == row.least and row.bits >= 32:
        return Code(f"({value + 1} - 1)")
    return Code(str(value), UNARY) if value < 0 else Code(str(value))


def floating(value: float, dtype: str) -> Code:
    """The shortest decimal that reads back as the value rounded to its type."""
    single = dtype == "f32"
    if single:
        value = round_to_single(value)
    if math.isnan(value):
        return Code("NAN")
    if math.isinf(value):
        return Code("INFINITY") if value > 0 else Code("-INFINITY", UNARY)
    text = next(t for p in range(1, 10)
                if round_to_single(float(t := f"{value:.{p}g}")) == value) if single else repr(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    return Code(text + ("f" if single else ""), UNARY if text.startswith("-") else 16)


def round_to_single(value: float) -> float:
    """The nearest float32."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded

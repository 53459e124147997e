"""Conversions of storage types in C: 16-bit floats from and to wider ones, and integers of 4 bits.

A 16-bit float is held as its bits, a `uint16_t`. Each conversion rounds once, halves to even; NaN stays NaN. Machines
with instructions for float16 use them (F16C), all others integer arithmetic; bfloat16 is the upper half of a float32.
"""
from __future__ import annotations

from collections.abc import Callable

from ..core.dtypes import DTYPES, is_short
from ..frozen import frozen
from .c_literals import literal
from .code import Code
from .helper_bodies import PART
from .helper_functions import Helpers

MANTISSA = {"f32": 24, "f64": 53}                            # bits of the integers that a float type has all of
NATIVE = "defined(__F16C__) && defined(__FLT16_MAX__)"        # the type _Float16, and instructions that convert it
# A float64 as the float32 next to it whose last bit is 1, unless it is one exactly: rounding that to fewer bits rounds
# once.
ODD = """union { float value; uint32_t bits; } u = {(float)a};
const double near = u.value;
if (near != a && near - near == 0 && !(u.bits & 1)) u.bits += fabs(a) > fabs(near) ? 1u : -1u;
return u.value;"""


def by_way_of(to: str, of: str) -> str | None:
    """The type through which a conversion goes without rounding twice; None where it is done at once."""
    if is_short(of):
        return None if to == "f32" else "f32"
    if not is_short(to) or of in ("f32", "f64"):
        return None
    row = DTYPES[of]
    if row.kind == "complex":
        return PART[of]
    if row.kind == "bool" or to == "f16" or row.bits <= 16:  # an integer that float32 rounds is infinity in float16
        return "f32"
    return "f64" if row.bits == 32 else None


@frozen
class _Dialect:
    """How scalars (one lane) or vectors spell what both do: `whole` is the type of uint32, `single` that of float,
    `short` that of uint16."""

    h: Helpers
    lanes: int
    whole: str
    single: str
    short: str

    @classmethod
    def of(cls, h: Helpers, lanes: int) -> _Dialect:
        return cls(h, lanes, h.type("u32", lanes), h.type("f32", lanes), h.type("u16", lanes))

    def converted(self, kind: str, text: str) -> str:
        return f"({kind})({text})" if self.lanes == 1 else f"__builtin_convertvector({text}, {kind})"

    def as_bits(self, text: str) -> str:
        return f"{self.h.bits('u32', 'f32')}({text})" if self.lanes == 1 else f"(({self.whole})({text}))"

    def as_float(self, text: str) -> str:
        return f"{self.h.bits('f32', 'u32')}({text})" if self.lanes == 1 else f"(({self.single})({text}))"

    def select(self, cond: str, yes: str, no: str) -> str:
        if self.lanes == 1:
            return f"{cond} ? {yes} : {no}"
        yes = yes if not yes[0].isdigit() else f"({self.whole}){{0}} + {yes}"
        return f"{self.h.select('u32', self.lanes)}({cond}, {yes}, {no})"


def _from_f16(d: _Dialect) -> str:
    wide = d.as_bits(f"{d.as_float('x')} * 0x1p112f")  # the product is exact: of what is below the normal range, too
    return (f"{d.whole} x = {d.converted(d.whole, 'a')}, s = (x & 0x8000u) << 16;\nx = (x & 0x7fffu) << 13;\n"
            f"{d.whole} r = {wide};\n"
            f"r = {d.select('x >= 0x0f800000u', 'r | 0x7f800000u', 'r')};\nreturn {d.as_float('r | s')};")


def _to_f16(d: _Dialect) -> str:
    # the last place of 0.5f is that of the smallest float16
    low = f"{d.as_bits(d.as_float('x') + ' + 0.5f')} - 0x3f000000u"
    return (f"{d.whole} x = {d.as_bits('a')}, s = (x >> 16) & 0x8000u;\nx &= 0x7fffffffu;\n"
            f"{d.whole} r = (x + 0xfffu + ((x >> 13) & 1u) - 0x38000000u) >> 13;\n"
            f"r = {d.select('x < 0x38800000u', low, 'r')};\nr = {d.select('x >= 0x47800000u', '0x7c00u', 'r')};\n"
            f"r = {d.select('x > 0x7f800000u', '0x7e00u', 'r')};\nreturn {d.converted(d.short, 'r | s')};")


def _from_bf16(d: _Dialect) -> str:
    return f"return {d.as_float(d.converted(d.whole, 'a') + ' << 16')};"


def _to_bf16(d: _Dialect) -> str:
    return (f"const {d.whole} x = {d.as_bits('a')};\n{d.whole} r = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;\n"
            f"r = {d.select('(x & 0x7fffffffu) > 0x7f800000u', '(x >> 16) | 0x40u', 'r')};\n"
            f"return {d.converted(d.short, 'r')};")


PORTABLE: dict[tuple[str, str], Callable[[_Dialect], str]] = {
    ("f32", "f16"): _from_f16, ("f16", "f32"): _to_f16, ("f32", "bf16"): _from_bf16, ("bf16", "f32"): _to_bf16}


def scalar(h: Helpers, to: str, of: str) -> str:
    """The function that converts one element."""
    name = f"ct_{to}_of_{of}"

    def make() -> str:
        if of == "f64":
            h.headers.add("math.h")
            odd = h.define("ct_odd", lambda: h.function("ct_odd", "float", "double a", ODD))
            body = f"return {scalar(h, to, 'f32')}({odd}(a));"
        elif of in ("i64", "u64"):                                    # rounded to odd as well, to 53 bits
            limit = f"({h.types[of]})1 << 53"
            large = f"a < -({limit}) || a > {limit}" if of == "i64" else f"a > {limit}"
            body = (f"if ({large}) a = (a & ~({h.types[of]})2047) | ((a & 2047) != 0 ? 1024 : 0);\n"
                    f"return {scalar(h, to, 'f64')}((double)a);")
        else:
            body = PORTABLE[to, of](_Dialect.of(h, 1))
            if "f16" in (to, of):
                native = ("union { uint16_t bits; _Float16 value; } u = {a};\nreturn (float)u.value;" if of == "f16"
                          else
                          "union { _Float16 value; uint16_t bits; } u = {(_Float16)a};\nreturn u.bits;")
                body = f"#if {NATIVE}\n{native}\n#else\n{body}\n#endif"
        return h.function(name, h.types[to], f"{h.types[of]} a", body)
    return h.define(name, make)


def vector(h: Helpers, to: str, of: str, lanes: int) -> str:
    """The function that converts a vector."""
    name = f"ct_{to}_of_{of}x{lanes}"
    if (to, of) not in PORTABLE:
        return h.lanewise(scalar(h, to, of), name, of, to, lanes, 1)

    def make() -> str:
        body = PORTABLE[to, of](_Dialect.of(h, lanes))
        result, operand = h.type(to, lanes), h.type(of, lanes)
        if "f16" in (to, of):
            by_gcc = _by_gcc(h, to, of, lanes)
            gcc = f"#elif defined(__F16C__) && !defined(__clang__)\n{by_gcc}\n" if by_gcc else ""
            body = f"#if defined(__clang__) && {NATIVE}\n{_by_clang(h, to, lanes)}\n{gcc}#else\n{body}\n#endif"
        return h.function(name, result, f"{operand} a", body)
    return h.define(name, make)


def _by_clang(h: Helpers, to: str, lanes: int) -> str:
    halves = f"typedef _Float16 halves __attribute__((vector_size({2 * lanes})));\n"
    if to == "f32":
        return halves + f"return __builtin_convertvector((halves)a, {h.type('f32', lanes)});"
    return halves + f"return ({h.type('f16', lanes)})__builtin_convertvector(a, halves);"


def _by_gcc(h: Helpers, to: str, of: str, lanes: int) -> str:
    """By the instruction for 8 lanes; more by halves, for which gcc has no conversion of whole vectors."""
    if lanes < 8:
        return ""
    if lanes == 8:
        return (f"return ({h.type('f32', 8)})__builtin_ia32_vcvtph2ps256(({h.type('i16', 8)})a);" if to == "f32" else
                f"return ({h.type('f16', 8)})__builtin_ia32_vcvtps2ph256(a, 0);")
    half, inner = lanes // 2, vector(h, to, of, lanes // 2)
    parts = [f"{inner}(__builtin_shufflevector(a, a, {', '.join(map(str, range(first, first + half)))}))"
             for first in (0, half)]
    return f"return __builtin_shufflevector({', '.join(parts)}, {', '.join(map(str, range(lanes)))});"


def saturated(h: Helpers, to: str, of: str, lanes: int) -> str:
    """The function that converts a vector of floats to integers as `Helpers.saturate` does a number: to the limits, if
    they are floats, before the conversion, else after it. What becomes 0 is +0 before, for gcc may take `trunc` for a
    conversion and that back."""
    name, row = f"ct_{to}_of_{of}x{lanes}", DTYPES[to]
    floats, whole, result = h.type(of, lanes), h.mask_type(DTYPES[of].bits, lanes), h.type(to, lanes)
    suffix, signed = "f" * (of == "f32"), row.kind == "int"
    large = "((c >= 1) | (c <= -1))" if signed else "(c >= 1)"

    def limited(dtype: str, value: str, limit: str, is_beyond: str) -> str:
        return f"{h.select(dtype, lanes)}({is_beyond}, {h.splat(dtype, lanes)}({limit}), {value})"

    def make() -> str:
        if row.bits < MANTISSA[of]:
            most, least = f"{float(row.greatest)}{suffix}", f"{float(row.least)}{suffix}"
            lines = [f"{floats} c = {limited(of, 'a', most, f'a > {most}')};"]
            lines += [f"c = {limited(of, 'c', least, f'c < {least}')};"] if signed else []
            through = "i32" if row.bits < 32 else to
            made = Code(f"__builtin_convertvector(({floats})(({whole})c & {large}), {h.type(through, lanes)})")
            lines.append(f"return {h.converted(made, through, to, lanes).text};")
            return h.function(name, result, f"{floats} a", "\n".join(lines))
        limit, mask = f"{2.0 ** (row.bits - signed):.1f}{suffix}", h.mask_type(row.bits, lanes)
        inside = f"(c < {limit}) & {large}" + (f" & (c > -{limit})" if signed else "")
        lines = [f"{result} r = __builtin_convertvector(({floats})(({whole})c & {inside}), {result});"]
        for bound, beyond in ((row.greatest, f"c >= {limit}"), (row.least, f"c <= -{limit}"))[:1 + signed]:
            is_beyond = beyond if mask == whole else f"__builtin_convertvector({beyond}, {mask})"
            lines.append(f"r = {limited(to, 'r', literal(bound, to).text, is_beyond)};")
        return h.function(name, result, f"{floats} c", "\n".join([*lines, "return r;"]))
    return h.define(name, make)


def wrapped(h: Helpers, to: str, lanes: int = 1) -> str:
    """The function that keeps the lower 4 bits of an 8-bit integer, as an integer of 4 bits."""
    byte = {"i4": "i8", "u4": "u8"}[to]
    name = f"ct_{to}_of_{byte}" + (f"x{lanes}" if lanes > 1 else "")

    def make() -> str:
        given, unsigned, result = h.type(byte, lanes), h.type("u8", lanes), h.type(to, lanes)
        kept = "a & 15" if to == "u4" else f"({given})(({unsigned})a << 4) >> 4"
        return h.function(name, result, f"{given} a", f"return ({result})({kept});")
    return h.define(name, make)

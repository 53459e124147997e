"""Masked vector loads and stores, each form under a preprocessor condition: the builtins for x86 that gcc and clang
share, the generic ones of clang 22, and accesses to the first lanes where AVX2 has no masks or slow ones."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import DTYPES

# Bytes of an element -> its C type, its mode letters and its mask letter in the names of the x86 builtins.
WORDS = {1: ("char", "qi", "b"), 2: ("short", "hi", "w"), 4: ("int", "si", "d"), 8: ("long long", "di", "q")}
REGISTERS = (512, 256, 128)
# Bytes of a vector -> its mask as an integer in C, with as many bits for each of its bytes.
BITS = {32: ("uint32_t", "(uint32_t)__builtin_ia32_pmovmskb256((bytes)m)", 1),
        16: ("uint32_t", "(uint32_t)__builtin_ia32_pmovmskb128((bytes)m)", 1), 8: ("uint64_t", "(uint64_t)m", 8),
        4: ("uint32_t", "(uint32_t)m", 8)}
SMALL = "defined(__AVX2__) && !defined(__AVX512BW__)"       # are there no masks for elements of one and two bytes?
FIRST_BYTES = f"""
#if {SMALL}
#define CT_SOME static __attribute__((unused, noinline, pure))
#else
#define CT_SOME static inline
#endif
#define CT_SOMETIMES static inline __attribute__((unused))
""" """
/* The first `count` of eight bytes, and their store; none where `count` is not positive. */
CT_SOMETIMES uint64_t ct_first_bytes(const void *from, int64_t count)
{
    const char *p = from;
    uint64_t eight;
    uint32_t low, high;
    uint16_t one, two;
    if (count >= 8) { __builtin_memcpy(&eight, p, 8); return eight; }
    if (count >= 4) {
        __builtin_memcpy(&low, p, 4);
        __builtin_memcpy(&high, p + count - 4, 4);
        return low | (uint64_t)high << 8 * (count - 4);
    }
    if (count >= 2) {
        __builtin_memcpy(&one, p, 2);
        __builtin_memcpy(&two, p + count - 2, 2);
        return one | (uint64_t)two << 8 * (count - 2);
    }
    return count > 0 ? *(const unsigned char *)p : 0;
}

CT_SOMETIMES void ct_put_bytes(void *to, int64_t count, uint64_t x)
{
    char *p = to;
    const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> (8 * (count - 4) & 63));
    const uint16_t one = (uint16_t)x, two = (uint16_t)(x >> (8 * (count - 2) & 63));
    if (count >= 8) __builtin_memcpy(p, &x, 8);
    else if (count >= 4) {
        __builtin_memcpy(p, &low, 4);
        __builtin_memcpy(p + count - 4, &high, 4);
    } else if (count >= 2) {
        __builtin_memcpy(p, &one, 2);
        __builtin_memcpy(p + count - 2, &two, 2);
    } else if (count > 0) *p = (char)x;
}
"""


def has_first_bytes(dtype: str, lanes: int) -> bool:
    """Do masked loads and stores of these vectors use FIRST_BYTES?"""
    return DTYPES[dtype].bytes < 4 and lanes * DTYPES[dtype].bytes in BITS


def forms(loads: bool, dtype: str, vector: str, element: str, mask: str, lanes: int) -> Iterator[tuple[str, str]]:
    """(preprocessor condition, function body) for each builtin that fits. The function has a pointer `p`, a mask `m`
    and, for a store, the vector `v`."""
    size = DTYPES[dtype].bytes
    if not loads and size >= 4 and lanes * size == 32:
        yield "defined(__AVX2__) && !defined(__AVX512VL__)", _of_first_lanes(size)
    if has_first_bytes(dtype, lanes):
        yield SMALL, _of_first_bytes(loads, vector, lanes, size)
    for bits in [bits for bits in REGISTERS if lanes * size * 8 % bits == 0][:1]:
        where = f"defined(__AVX512{'BW' if size < 4 else 'DQ'}__){'' if bits == 512 else ' && defined(__AVX512VL__)'}"
        apart = "" if loads else _kept_apart(dtype, lanes)
        yield where, apart + _by_x86_builtin(loads, size, vector, mask, lanes, bits, avx512=True)
    if size >= 4 and lanes * size % 16 == 0:
        yield "defined(__AVX2__)", _by_x86_builtin(loads, size, vector, mask, lanes, 128 if lanes * size % 32 else 256,
                                           avx512=False)
    yield _by_generic_builtin(loads, dtype, vector, element, lanes)


def _of_first_lanes(size: int) -> str:
    """A store of 32 bytes in parts, if the mask selects the first lanes: a tail, whose branches go the same way for all
    rows. They take 2 ns on a Zen 3, a masked store of AVX2 takes 4.6."""
    own, half, (kind, letter) = WORDS[size][0], 16 // size, {4: ("float", "s"), 8: ("double", "d")}[size]
    low, high = [", ".join(map(str, range(n, n + half))) for n in (0, half)]
    pair = (f"typedef {own} pair __attribute__((vector_size(8), aligned(4), may_alias));\n"
            "if (on & 2) {\n*(pair *)p = __builtin_shufflevector(rest, rest, 0, 1);\n"
            "rest = __builtin_shufflevector(rest, rest, 2, 3, 2, 3);\np += 2;\non >>= 2;\n}\n")
    return (f"typedef {own} part __attribute__((vector_size(32), may_alias));\n"
            f"typedef {kind} signs __attribute__((vector_size(32)));\n"
            f"typedef {own} half __attribute__((vector_size(16), aligned({size}), may_alias));\n"
            f"typedef {own} one __attribute__((may_alias));\n"
            f"int on = __builtin_ia32_movmskp{letter}256((signs)m);\n"
            "if (on & (on + 1)) {\n"
            f"{_instruction(False, size, 256, False, 'p', '(part)m', '(part)v')};\n}} else {{\n"
            f"half rest = __builtin_shufflevector((part)v, (part)v, {low});\n"
            f"if (on & {1 << half - 1}) {{\n*(half *)p = rest;\n"
            f"rest = __builtin_shufflevector((part)v, (part)v, {high});\n"
            f"p += {half};\non >>= {half};\n}}\n"
            f"if (on & {1 << half - 1}) *(half *)p = rest;\nelse {{\n{pair if size == 4 else ''}"
            f"if (on & 1) *(one *)p = rest[0];\n}}\n}}")


def _of_first_bytes(loads: bool, vector: str, lanes: int, size: int) -> str:
    """For elements of one and two bytes, for which AVX2 has no masks: eight bytes at a time if the mask selects the
    first lanes, and lane by lane otherwise."""
    total = lanes * size
    integer, on, width = BITS[total]
    lines = [f"typedef char bytes __attribute__((vector_size({total})));"] if total >= 16 else []
    words = max(1, total // 8)
    lines += [f"union {{ {vector} whole; uint64_t words[{words}]; }} x = {{{'0' if loads else 'v'}}};",
              f"const {integer} on = {on};",
              "if (on & (on + 1)) {",
              f"for (int k = 0; k < {lanes}; k++) if (m[k]) {'x.whole[k] = p[k]' if loads else 'p[k] = v[k]'};",
              "} else {",
              f"const int64_t count = {'__builtin_popcountll' if integer == 'uint64_t' else '__builtin_popcount'}(on)"
              f"{f' / {width}' if width > 1 else ''};"]
    for n in range(words):
        place = f"p + {n * 8 // size}, count - {n * 8}" if n else "p, count"
        lines.append(f"x.words[{n}] = ct_first_bytes({place});" if loads else f"ct_put_bytes({place}, x.words[{n}]);")
    return "\n".join([*lines, "}", *(["return x.whole;"] if loads else [])])


def _kept_apart(dtype: str, lanes: int) -> str:
    """Keeps a narrowed vector and its store apart: clang 22 stores twice the bytes with AVX-512 where it sees both that
    a vector was narrowed and that a mask has one lane."""
    bits = DTYPES[dtype].bits
    if bits == 64 or dtype == "f32":
        return ""
    place = "v" if lanes * bits in REGISTERS else "m"
    return f'#if defined(__clang__) && defined(__AVX512F__)\n__asm__("" : "+{place}"(v));\n#endif\n'


def _by_generic_builtin(loads: bool, dtype: str, vector: str, element: str, lanes: int) -> tuple[str, str]:
    kind = "load" if loads else "store"
    body = "" if loads else _kept_apart(dtype, lanes)
    body += (f"typedef _Bool flags __attribute__((ext_vector_type({lanes})));\n"
             f"typedef {element} lanes __attribute__((ext_vector_type({lanes})));\n")
    load = f"return ({vector})__builtin_masked_load(__builtin_convertvector(m, flags), p, (lanes){{0}});"
    body += load if loads else \
            "__builtin_masked_store(__builtin_convertvector(m, flags), (lanes)v, p);"
    return f"__has_builtin(__builtin_masked_{kind})", body


def _by_x86_builtin(loads: bool, size: int, vector: str, mask: str, lanes: int, bits: int, avx512: bool) -> str:
    """One builtin per register of the vector; every element type is treated as integers of its size."""
    own, count = WORDS[size][0], lanes * size * 8 // bits
    part = f"typedef {own} part __attribute__((vector_size({bits // 8}), may_alias));\n"
    if count == 1:
        use = _instruction(loads, size, bits, avx512, "p", "(part)m", "(part)v")
        return part + (f"return ({vector}){use};" if loads else f"{use};")
    lines = [f"union {{ {mask} whole; part parts[{count}]; }} on = {{m}};",
             f"union {{ {vector} whole; part parts[{count}]; }} x{'' if loads else ' = {v}'};"]
    for n in range(count):
        use = _instruction(loads, size, bits, avx512, f"(p + {n * bits // 8 // size})", f"on.parts[{n}]",
                           f"x.parts[{n}]")
        lines.append(f"x.parts[{n}] = {use};" if loads else f"{use};")
    return part + "\n".join([*lines, *(["return x.whole;"] if loads else [])])


def _instruction(loads: bool, size: int, bits: int, avx512: bool, place: str, mask: str, value: str) -> str:
    letters, letter = WORDS[size][1:]           # void pointers, for the compilers differ in the types of these
    if not avx512:
        kind = letter + ("" if bits == 128 else str(bits))
        return (f"__builtin_ia32_maskload{kind}((const void *){place}, {mask})" if loads
                else f"__builtin_ia32_maskstore{kind}((void *){place}, {mask}, {value})")
    flags = f"__builtin_ia32_cvt{letter}2mask{bits}({mask})"
    return (f"__builtin_ia32_loaddqu{letters}{bits}_mask((const void *){place}, (part){{0}}, {flags})" if loads
            else f"__builtin_ia32_storedqu{letters}{bits}_mask((void *){place}, {value}, {flags})")

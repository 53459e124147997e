"""The types and instructions through which a vector is converted to one of another element size."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..frozen import frozen

IN_BYTES = {"i4": "i8", "u4": "u8"}           # in vectors, each element has a byte


def conversion_steps(of: str, to: str) -> tuple[str, ...]:
    """The types that follow `of`, the last of them `to`, each at most twice as wide as the one before, or half as wide.

    Between integers, or from integers or floats to floats, by value; to a narrower integer it wraps."""
    of, to = IN_BYTES.get(of, of), IN_BYTES.get(to, to)
    kind, bits, last = DTYPES[of].kind, DTYPES[of].bits, DTYPES[to].bits
    if of == to:
        return ()
    if DTYPES[to].kind == "float" and kind != "float" and bits < 32:
        step = f"i{2 * bits}"                                       # has the numbers of the unsigned type, too
    elif bits / 2 <= last <= 2 * bits:
        return (to,)
    else:
        step = f"{kind[0]}{2 * bits if last > bits else bits // 2}"
    return (step, *conversion_steps(step, to))


@frozen
class Instruction:
    """An instruction that gcc has as a builtin, and does not find for vectors: what defines that the machine has it,
    the call for a vector `a`, and the type of the result."""

    where: str
    call: str
    to: str


LETTERS = {8: "b", 16: "w", 32: "d", 64: "q"}               # of element sizes, in the names of instructions
SPELLED = {8: "char", 16: "short", 32: "int", 64: "long long"}
WIDE, LESS = 64, 32                                         # bytes of a vector of AVX-512 and of AVX2


def gnu_conversion(of: str, to: str, lanes: int) -> Instruction | None:
    """The instruction of AVX-512 or AVX2 that does the first steps of a conversion at once: it widens integers to a
    whole register (vpmovsx, vpmovzx), or narrows them from one (vpmov of AVX-512)."""
    a, steps = DTYPES[IN_BYTES.get(of, of)], [DTYPES[t] for t in conversion_steps(of, to)]
    widened = [b for b in steps if a.kind in ("int", "uint") and b.kind in ("int", "uint") and b.bits > a.bits]
    if widened and widened[-1].bytes * lanes in (WIDE, LESS):
        b, width = widened[-1], widened[-1].bytes * lanes
        name = f"pmov{'sz'[a.kind == 'uint']}x{LETTERS[a.bits]}{LETTERS[b.bits]}{8 * width}"
        given, vector = _operand(a.bits, lanes), _vector(b.bits, lanes)
        if given is None:
            return None
        if width == LESS:
            return Instruction("__AVX2__", f"__builtin_ia32_{name}({given})", b.name)
        return Instruction(_needs(a.bits), f"__builtin_ia32_{name}_mask({given}, ({vector}){{0}}, -1)", b.name)
    narrowed = [b for b in steps if a.kind in ("int", "uint") and b.kind in ("int", "uint") and b.bits < a.bits]
    if narrowed and a.bytes * lanes == WIDE and narrowed[-1].bytes * lanes >= 16:
        b = narrowed[-1]
        name = f"__builtin_ia32_pmov{LETTERS[a.bits]}{LETTERS[b.bits]}512_mask"
        return Instruction(_needs(b.bits), f"{name}(({_vector(a.bits, lanes)})a, ({_vector(b.bits, lanes)}){{0}}, -1)",
                           b.name)
    return None


def _needs(bits: int) -> str:
    return "__AVX512BW__" if bits == 8 else "__AVX512F__"


def _operand(bits: int, lanes: int) -> str | None:
    """The vector `a` as the builtin takes it: at least 16 bytes."""
    if bits * lanes >= 128:
        return f"({_vector(bits, lanes)})a"
    if bits * lanes == 64:
        return f"({_vector(bits, 2 * lanes)})({_vector(64, 2)}){{(long long)a, 0}}"
    return None


def _vector(bits: int, lanes: int) -> str:
    return f"__attribute__((vector_size({bits * lanes // 8}))) {SPELLED[bits]}"

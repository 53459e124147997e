"""C helpers for arrays of int4 and uint4: two elements per byte in memory order, the first in the low half.

If two threads may write the elements of one byte, reads and writes are atomic. `Helpers.shared_byte` and
`set_shared` give their spelling.
"""
from __future__ import annotations

from .helper_functions import Helpers


def get(h: Helpers, dtype: str, shared: bool) -> str:
    """The helper `get(p, e)`, which returns element e."""
    name = f"ct_get_{dtype}" + "_shared" * shared
    byte = h.shared_byte() if shared else "p[e >> 1]"
    body = f"return (int8_t)((uint8_t)({byte} << (e & 1 ? 0 : 4))) >> 4;" if dtype == "i4" else (f"return {byte} >> (e "
                                                                                                 f"& 1 ? 4 : 0) & 15;")
    return h.define(name, lambda: h.function(name, h.types[dtype], f"{h.outside}const uint8_t *p, int64_t e", body))


def put(h: Helpers, dtype: str, shared: bool) -> str:
    """The helper `put(p, e, v)`, which sets element e to v."""
    name = f"ct_put_{dtype}" + "_shared" * shared
    body = h.set_shared() if shared else ("const int s = e & 1 ? 4 : 0;\np += e >> 1;\n"
                                          "*p = (uint8_t)((*p & ~(15 << s)) | (v & 15) << s);")
    return h.define(name, lambda: h.function(name, "void", f"{h.outside}uint8_t *p, int64_t e, {h.types[dtype]} v",
                                             body))


def vector(h: Helpers, action: str, dtype: str, lanes: int, shared: bool) -> str:
    """The helper `load store gather scatter`, or a masked form, for vectors: (p, e[, stride][, mask][, v]). Contiguous
    elements are loaded as bytes, and stored as bytes, which no other thread writes, where they start at a whole one;
    others one by one."""
    name = f"ct_{action}_packed_{dtype}x{lanes}" + "_shared" * shared  # unpacked arrays have helpers of the plain name

    def make() -> str:
        loads, masked = action.startswith(("load", "gather")), action.endswith("_if")
        strided = action.startswith(("gather", "scatter"))
        kind, one = h.type(dtype, lanes), get(h, dtype, shared) if loads else put(h, dtype, shared)
        at = "e + k * stride" if strided else "e + k"
        head = f"{'const ' * loads}uint8_t *p, int64_t e{', int64_t stride' * strided}"
        head += (f", {h.mask_type(4, lanes)} m" if masked else "") + ("" if loads else f", {kind} v")
        touched = "if (m[k]) " if masked else ""
        step = f"v[k] = {one}(p, {at});" if loads else f"{one}(p, {at}, v[k]);"
        body = (f"{kind} v = {{0}};\n" if loads
                else "") + f"for (int k = 0; k < {lanes}; k++) {touched}{step}" + ("\nreturn v;" if loads else "")
        if lanes > 2 and loads and not strided and not shared:
            body = _loaded(h, dtype, lanes, masked)
        elif lanes > 2 and not masked and not strided and not loads:
            body = _stored(h, dtype, lanes) + body
        return h.function(name, kind if loads else "void", head, body)
    return h.define(name, make)


def _loaded(h: Helpers, dtype: str, lanes: int, masked: bool) -> str:
    """Two loads of bytes: from an odd element on, its byte and those behind it begin with a high half."""
    half = lanes // 2
    kind, signed = h.type("u8", half), h.type({"i4": "i8", "u4": "u8"}[dtype], half)
    both = ", ".join([f"{k}, {k + half}" for k in range(half)])
    loose, made = h.loose_type("u8", half), h.type(dtype, lanes)
    loads, wanted = [f"*(const {loose} *)p", f"*(const {loose} *)(p + (e & 1))"], ""
    if masked:
        halves, load = h.type("i8", half), h.memory("load_if", "u8", half)
        parts = [f"({halves})__builtin_shufflevector(m, m, {', '.join([str(2 * k + n) for k in range(half)])})"
                 for n in (0, 1)]
        wanted = f"const {halves} even = {parts[0]}, odd = {parts[1]}, any = even | odd;\n"
        loads = [f"{load}(p, e & 1 ? even : any)", f"{load}(p + (e & 1), e & 1 ? odd : any)"]
    chosen = f" & ({made})m" if masked else ""
    return (f"p += e >> 1;\n{wanted}"
            f"const {kind} first = {loads[0]}, second = {loads[1]};\n"
            f"const {signed} low = ({signed})(second << 4) >> 4, high = ({signed})first >> 4;\n"
            f"return (e & 1 ? ({made})__builtin_shufflevector(high, low, {both})\n"
            f"              : ({made})__builtin_shufflevector(low, high, {both})){chosen};")


def _stored(h: Helpers, dtype: str, lanes: int) -> str:
    half = lanes // 2
    kind, loose, whole = h.type("u8", half), h.loose_type("u8", half), h.type("u8", lanes)
    even, odd = (", ".join([str(2 * k + first) for k in range(half)]) for first in (0, 1))
    return (f"if (!(e & 1)) {{\n    const {whole} b = ({whole})v & 15;\n"
            f"    const {kind} low = __builtin_shufflevector(b, b, {even}), high = __builtin_shufflevector(b, b, "
            f"{odd});\n"
            f"    *({loose} *)(p + (e >> 1)) = low | high << 4;\n    return;\n}}\n")

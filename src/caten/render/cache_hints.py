"""Render prefetches and non-temporal vector stores."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.node import Node
from ..loop.affine import canonical
from ..loop.statements import STREAM, WRITE, Aref, Prefetch, Setf, Vref
from .c_expressions import Expressions
from .code import ADD, MUL, Code, call
from .helper_functions import Helpers
from .linear_offsets import offset

ALIGNED = 16          # bytes: the alignment of a non-temporal store, and of every large array; wider vectors are split

# Only clang has a portable builtin for non-temporal stores. x86 does not order them with a thread's other stores, so a
# store fence must come before another thread reads them.
NON_TEMPORAL_MACROS = """#if defined(__clang__)
#define CT_STREAM(p, v) __builtin_nontemporal_store(v, p)
#else
#define CT_STREAM(p, v) (*(p) = (v))
#endif
#if defined(__clang__) && defined(__SSE__)
#define CT_STREAMED __builtin_ia32_sfence()
#else
#define CT_STREAMED (void)0
#endif
"""


def render_prefetch(stmt: Prefetch, expressions: Expressions) -> Code:
    """The prefetch of an element, or of a vector's last element: a vector that crosses a cache line starts in the line
    of the vector before it. The address may be out of bounds, which compilers with this builtin accept. (C leaves such
    pointer arithmetic undefined, but the same sum in integers costs a quarter of clang's time for gemm.)"""
    ref = stmt.ref
    assert isinstance(ref, (Aref, Vref))
    view, index = expressions.views[ref.buffer], list(ref.index)
    if isinstance(ref, Vref):
        index[ref.axis] = canonical(index[ref.axis] + (ref.count - 1))
    at = expressions.value(offset(tuple(index), view.shape, view.order, view.strides)).at(MUL if view.packed else ADD)
    address = f"{expressions.mention(ref.buffer)} + {at}{' / 2' if view.packed else ''}"
    return call("__builtin_prefetch", Code(address), *([Code("1")] if stmt.how == WRITE else []))


def has_non_temporal_store(node: Node) -> bool:
    """Does a statement or kernel contain a non-temporal store?"""
    return any(isinstance(n, Setf) and n.how == STREAM for n in node.unique())


def define_non_temporal_store(helpers: Helpers, dtype: str, lanes: int) -> str:
    """The helper that stores a vector non-temporally if its address is aligned, which it tests at run time, and
    normally otherwise."""
    base = "u8" if dtype == "bool" else dtype
    name = f"ct_stream_{base}x{lanes}"

    def make() -> str:
        vector, element, plain = helpers.type(base, lanes), helpers.types[base], helpers.memory("store", base, lanes)
        size = DTYPES[base].bytes * lanes
        aligned, by = f"ct_{base}x{lanes}_aligned", min(size, ALIGNED)
        helpers.define(aligned,
                       lambda: f"typedef {element} {aligned} __attribute__((vector_size({size}), aligned({by}), "
                               f"may_alias));\n")
        return helpers.function(name, "void", f"{element} *p, {vector} v",
                                f"if (((uintptr_t)p & {by - 1}) == 0) CT_STREAM(({aligned} *)p, ({aligned})v);\n"
                                f"else {plain}(p, v);")
    return helpers.define(name, make)

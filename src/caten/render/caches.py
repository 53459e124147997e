"""What is asked of the caches: lines fetched in advance, and vector stores past them."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.node import Node
from ..loop.affine import canonical
from ..loop.statements import STREAM, WRITE, Aref, Prefetch, Setf, Vref
from .code import ADD, MUL, Code, call
from .expressions import Expressions
from .flatten import offset
from .helpers import Helpers

ALIGNED = 16          # bytes: what such a store wants of its address, and what every large array has; wider vectors are stored in parts

# Only clang has a store for it that is not tied to one machine. On x86 such stores of one thread are not ordered with its others: a fence orders
# them before another thread is told that they are there.
MACROS = """#if defined(__clang__)
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


def prefetched(stmt: Prefetch, expressions: Expressions) -> Code:
    """The request for a place, of a vector for its last element: where it lies in two lines, the first is that of the vector before. The place need
    not exist: the compilers that have this builtin take any address. (Pointers to nothing are nothing that C defines, but the same sum in integers
    takes clang a quarter of its time for gemm.)"""
    ref = stmt.ref
    assert isinstance(ref, (Aref, Vref))
    view, index = expressions.views[ref.buffer], list(ref.index)
    if isinstance(ref, Vref):
        index[ref.axis] = canonical(index[ref.axis] + (ref.count - 1))
    at = expressions.value(offset(tuple(index), view.shape, view.order, view.strides)).at(MUL if view.packed else ADD)
    address = f"{expressions.mention(ref.buffer)} + {at}{' / 2' if view.packed else ''}"
    return call("__builtin_prefetch", Code(address), *([Code("1")] if stmt.how == WRITE else []))


def streams(node: Node) -> bool:
    """Does anything in a statement or kernel store past the caches?"""
    return any(isinstance(n, Setf) and n.how == STREAM for n in node.unique())


def store(helpers: Helpers, dtype: str, lanes: int) -> str:
    """The helper that stores a vector: past the caches where its address allows it, which is asked each time, else as any other."""
    base = "u8" if dtype == "bool" else dtype
    name = f"ct_stream_{base}x{lanes}"

    def make() -> str:
        vector, element, plain = helpers.type(base, lanes), helpers.types[base], helpers.memory("store", base, lanes)
        size = DTYPES[base].bytes * lanes
        aligned, by = f"ct_{base}x{lanes}_aligned", min(size, ALIGNED)
        helpers.define(aligned, lambda: f"typedef {element} {aligned} __attribute__((vector_size({size}), aligned({by}), may_alias));\n")
        return helpers.function(name, "void", f"{element} *p, {vector} v",
                                f"if (((uintptr_t)p & {by - 1}) == 0) CT_STREAM(({aligned} *)p, ({aligned})v);\nelse {plain}(p, v);")
    return helpers.define(name, make)

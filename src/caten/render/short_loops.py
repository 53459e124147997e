"""Find short loops that clang should not vectorise with masks."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var
from ..core.program import FREE_MASKS_BYTES
from ..loop.accesses import conjuncts, stride_in
from ..loop.statements import Aref, For, Incf, Let, Setf
from .c_scope import View

# Where clang knows that a loop has fewer iterations than this, it vectorises it only without a scalar rest: the last
# vector is masked, and often the only one.
FEW = 16
# Asked for vectors, it makes whole ones and a scalar rest.
MACRO = """#ifdef __clang__
#define CT_WHOLE_VECTORS CT_PRAGMA(clang loop vectorize(enable))
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define CT_WHOLE_VECTORS
#endif
"""
CHEAP = frozenset(("add", "sub", "mul", "neg", "max", "min", "fmax", "fmin", "fma", "abs"))
MOST_STRIDE = 4                     # elements that are loaded as a longer vector


def bounds(cond: Expr) -> Iterator[tuple[str, int]]:
    """The sizes that a condition bounds by constants, and how large they are at most."""
    for part in conjuncts(cond):
        match part:
            case Op("lt" | "le" as fn, (Var(name=name), Const(value=int() as end))):
                yield name, end - (fn == "lt")


def should_have_a_rest(loop: For, most: Mapping[str, int], views: Mapping[str, View], vector_bytes: int) -> bool:
    """Is a loop known to be short, and slower with masks than with a scalar rest? So it is where a masked load waits
    for the masked store of the row before, which lies beside it, where elements are not contiguous, and where masked
    stores take long. `most`: the greatest values of sizes."""
    if not (isinstance(loop.hi, Var) and most.get(loop.hi.name, FEW) < FEW and loop.lo == Const(0, "i64")
            and loop.step == Const(1, "i64") and all(isinstance(s, Setf | Incf | Let) for s in loop.body)):
        return False
    stores = [s.ref for s in loop.body if isinstance(s, Setf | Incf)]
    values = [n for s in loop.body if isinstance(s, Setf | Incf | Let) for n in s.value.unique()]
    refs = {n for s in loop.body for n in s.unique() if isinstance(n, Aref)}
    strides = {_stride(ref, loop.name, views.get(ref.buffer)) for ref in refs}
    if None in strides or not all(_is_cheap(n) for n in values) or not all(
            isinstance(ref, Aref) and _stride(ref, loop.name, views.get(ref.buffer)) == 1 for ref in stores):
        return False
    read = {n.buffer for n in values if isinstance(n, Aref)} | {s.ref.buffer for s in loop.body if isinstance(s, Incf)}
    return vector_bytes < FREE_MASKS_BYTES or max(s or 0 for s in strides) > 1 or any(r.buffer in read for r in stores)


def _is_cheap(node: object) -> bool:
    match node:
        case Op(fn=fn, dtype=dtype):
            return dtype in ("i64", "bool") or fn in CHEAP
        case Aref(dtype=dtype):
            return dtype in DTYPES and DTYPES[dtype].bytes in (4, 8) and not DTYPES[dtype].storage
    return True


def _stride(ref: Aref, name: str, view: View | None) -> int | None:
    """By how many elements an access moves with a loop, up to MOST_STRIDE; None if by more, or by no constant."""
    moving = [axis for axis, e in enumerate(ref.index) if name in e.variables]
    if not moving:
        return 0
    if moving != [view.order[-1] if view is not None and view.order else len(ref.index) - 1]:
        return None
    stride = stride_in(ref.index[moving[0]], name)
    return stride if stride is not None and 1 <= stride <= MOST_STRIDE else None

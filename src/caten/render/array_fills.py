"""Nests that set a whole array to a constant, as one loop: C compilers make one call of `memset` of it, instead of one
for each row, which takes longer than short rows."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Var
from ..loop.statements import ONE, ZERO, Aref, For, Setf
from .c_scope import Scope
from .linear_offsets import product

NO_NUMBERS = ("bool", "complex")


def filled_array(loop: For, scope: Scope) -> tuple[str, Expr, Const] | None:
    """The array that serial loops, one directly in the other, set to a constant, the number of its elements and the
    constant; None for other nests, for rows of arrays, and for arrays with strides or in registers, and elements that
    are no numbers in C."""
    extents: dict[str, Expr] = {}
    stmt = loop
    while True:
        if stmt.mark != "serial" or stmt.lo is not ZERO or stmt.step is not ONE or len(stmt.body) != 1:
            return None
        extents[stmt.name] = stmt.hi
        match stmt.body[0]:
            case For() as stmt:
                continue
            case Setf(ref=Aref(buffer=name, index=at), value=Const() as value, how=""):
                break
        return None
    view = scope.views[name]
    is_number = not (view.packed or DTYPES[view.dtype].storage or DTYPES[view.dtype].kind in NO_NUMBERS)
    if len(at) < 2 or view.strides or view.width or not is_number:
        return None
    axes = {i.name: n for i, n in zip(at, view.shape, strict=True) if isinstance(i, Var)}
    return (name, product(view.shape), value) if len(axes) == len(at) and axes == extents else None

"""Injectivity of a tile: do its elements map to different elements of the array?"""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Const, Expr, number
from ...loop.accesses import stride_in
from ...loop.context import Context
from ...loop.dependence import carried_dependence
from ...loop.statements import Aref, For, Setf, Stmt


def obstacle_to_one_to_one(ref: Aref, axes: Sequence[For], extents: Sequence[Expr], context: Context) -> str | None:
    """Why two elements of a tile may be one of the array; None if none are. The strides of each index must exceed the
    reach of the faster axes; otherwise (for quotients and remainders) the dependence test decides."""
    if any(stride_in(i, loop.name) is None for loop in axes for i in ref.index) and _never_meet(ref, axes, context):
        return None
    for position in range(len(ref.index)):
        moving = [(abs(s), extent) for loop, extent in zip(axes, extents, strict=True)
                  if (s := stride_in(ref.index[position], loop.name)) != 0 and s is not None]
        reach = 0
        for stride, extent in sorted(moving, key=lambda m: m[0]):
            if stride <= reach:
                return f"two iterations meet in one element of {ref}"
            reach += stride * (extent.value - 1) if isinstance(extent, Const) else 1 << 62
    for loop in axes:
        if not any(stride_in(i, loop.name) for i in ref.index):
            return f"two iterations of '{loop.name}' meet in one element of {ref}; use partial"
    return None


def _never_meet(ref: Aref, axes: Sequence[For], context: Context) -> bool:
    """Does a nest over the axes store to each element at most once?"""
    nest: Stmt = Setf(ref, number(0, ref.dtype))
    for loop in reversed(axes):
        nest = loop.replace(mark="serial", body=(nest,))
    while isinstance(nest, For):
        if carried_dependence(nest, context) is not None:
            return False
        context, nest = context.inside(nest), nest.body[0]
    return True

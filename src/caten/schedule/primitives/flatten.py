"""flatten: the last two axes of a tile as one, along which vectors may lie."""
from __future__ import annotations

from functools import partial
from typing import Any

from ...core.expr import Expr, Op
from ...core.node import Node, substitute
from ...loop.affine import canonical
from ...loop.statements import Aref, LoopProgram, Vref
from ..made import NOTHING, Nothing
from ..nests import local_array, refusal


def flatten(program: LoopProgram, tile: str) -> tuple[LoopProgram, Nothing]:
    """The last two axes of a local array become one; each element stays where it is. After two loops have become one, a tile is contiguous
    along it.

        (fuse y x) (flatten T)
        (local T f32 (4 8) stack)                       (local T f32 (32) stack)
        (for y 0 4 1 serial                       ->    (for yx 0 32 1 serial
          (for x 0 8 1 serial                             (incf (aref T yx) a))
            (incf (aref T y x) a)))
    """
    step = f"flatten {tile}"
    found = local_array(program, tile, partial(refusal, "E533", step))
    if len(found.shape) < 2:
        raise refusal("E533", step, f"{found} has fewer than two axes")
    *outer, rows, length = found.shape

    def joined(ref: Any) -> Any:
        *others, row, cell = ref.index
        return (*others, _joined(row, cell, length))

    new: dict[Node, Node] = {found: found.replace(shape=(*outer, canonical(rows * length)))}
    for ref in program.unique():
        match ref:
            case Aref(buffer=name) if name == tile:
                new[ref] = ref.replace(index=joined(ref))
            case Vref(buffer=name, axis=axis) if name == tile:
                if axis not in (-1, len(ref.index) - 1):
                    raise refusal("E533", step, f"{ref} is a vector along another axis than the last")
                new[ref] = ref.replace(index=joined(ref), axis=-1)
    return substitute(program, new), NOTHING


def _joined(row: Expr, cell: Expr, length: Expr) -> Expr:
    """row · length + cell; x where they are the quotient and the remainder of x."""
    match row, cell:
        case Op(fn="floordiv", args=(x, by)), Op(fn="mod", args=(other, to)) if x is other and by is to is length:
            return x
    return canonical(row * length + cell)

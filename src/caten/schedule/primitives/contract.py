"""contract: a product that is added becomes a fused multiply-add, rounded once."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import is_float
from ...core.expr import Op
from ...core.node import Node
from ...core.rewrite import Rules, holes, rewrite
from ...loop.statements import Incf, LoopProgram, Ref, Setf
from ..analysis.nests import find, refusal, replaced
from ..made import NOTHING, Nothing


def _fused(**parts: Any) -> Node | None:
    x, y, z = parts["x"], parts["y"], parts["z"]
    return Op("fma", (x, y, z)) if is_float(z.dtype) else None


def _fused_into(r: Ref, x: Any, y: Any) -> Node | None:
    return Setf(r, Op("fma", (x, y, r))) if is_float(r.dtype) else None


x, y, z, r = holes("x y z r")

CONTRACT = Rules(
    (x * y + z, _fused),                         # x·y + z = fma(x, y, z)
    (z + x * y, _fused),                         # z + x·y = fma(x, y, z)
    (Incf(r, x * y, "add"), _fused_into),        # r += x·y is r = fma(x, y, r)
)


def contract(program: LoopProgram, loop: str) -> tuple[LoopProgram, Nothing]:
    """Inside a loop, x·y + z becomes (fma x y z), and adding a product to a place sets it to such a value. The last step for that nest: a
    place that is set is no longer one that is added to, so its loops keep their order.

        (contract p)
        (for p 0 K 1 serial                          (for p 0 K 1 serial
          (incf (aref s) (* (aref A p) y)))    ->      (setf (aref s) (fma (aref A p) y (aref s))))
    """
    step = f"contract {loop}"
    found = find(program, loop, step)
    fused = rewrite(found, CONTRACT)
    if fused is found:
        raise refusal("E516", step, "there is no product of floats that is added to something", "name the loop whose body adds a product")
    return replaced(program, found, fused), NOTHING

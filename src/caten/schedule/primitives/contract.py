"""contract: contract products and additions to fused multiply-adds (FMA)."""
from __future__ import annotations

from typing import Any

from ...core.dtypes import is_float
from ...core.expr import Op
from ...core.node import Node
from ...core.rewrite import Rules, holes, rewrite
from ...loop.statements import Incf, LoopProgram, Ref, Setf
from ..analysis.loop_queries import find, refusal, replaced
from ..step_results import NOTHING, Made


def _fused(**parts: Any) -> Node | None:
    x, y, z = parts["x"], parts["y"], parts["z"]
    return Op("fma", (x, y, z)) if is_float(z.dtype) else None


def _fused_into(r: Ref, x: Any, y: Any) -> Node | None:
    return Setf(r, Op("fma", (x, y, r))) if is_float(r.dtype) else None


def _subtracted_from(r: Ref, x: Any, y: Any) -> Node | None:
    return _fused_into(r, Op("neg", (x,)), y)


x, y, z, r = holes("x y z r")

CONTRACT = Rules(
    (x * y + z, _fused),                         # x·y + z = fma(x, y, z)
    (z + x * y, _fused),                         # z + x·y = fma(x, y, z)
    (Incf(r, x * y, "add"), _fused_into),        # r += x·y is r = fma(x, y, r)
    (Incf(r, Op("neg", (x * y,)), "add"), _subtracted_from),        # r -= x·y is r = fma(-x, y, r)
)


def contract(program: LoopProgram, loop: str) -> tuple[LoopProgram, Made]:
    """Replace x·y + z inside LOOP by (fma x y z), which rounds once, and r -= x·y by r = fma(-x, y, r). An accumulation
    becomes an assignment, which no later step can reorder, so take this step last.

        (contract p)
        (for p 0 K 1 serial                          (for p 0 K 1 serial
          (incf (aref s) (* (aref A p) y)))    ->      (setf (aref s) (fma (aref A p) y (aref s))))
    """
    step = f"contract {loop}"
    found = find(program, loop, step)
    fused = rewrite(found, CONTRACT)
    if fused is found:
        raise refusal("E516", step, "there is no product of floats that is added to something",
                      "name the loop whose body adds a product")
    return replaced(program, found, fused), NOTHING

"""Check candidates: against the reference at moderate sizes, against the present schedule at the tuned sizes."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..benchmarking.sizes import Values
from ..compiler import Built
from ..core.dtypes import is_integer
from ..core.numpy_types import kind_of
from ..core.program import Bind, Require, Scalar
from ..core.size_formula import evaluate
from ..frontend.op import OpProgram
from ..runtime import work_formulas
from ..semantics import comparison
from ..testing.reference import Expected, caller, outputs_of

MODERATE = 30_000_000          # steps and bytes of a run compared with the reference
ROUGHLY = 1e-2                 # tolerance at the tuned sizes, relative to the largest element


def results(op: OpProgram, built: Built, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of one call; the arguments stay unchanged."""
    own = {k: v.copy(order="K") if isinstance(v, np.ndarray) and op.buffers[k].access != "in" else v
           for k, v in arguments.items()}
    function = built.runtime.load(built.artifact, built.manifest)
    caller(op, getattr(function, op.name, function), own)()
    return {n: np.array(own[n]) for n in outputs_of(op)}


def agree(op: OpProgram, got: Mapping[str, np.ndarray], expected: Expected) -> bool:
    """Is every output within its rounding-error bound, with at least one element compared?"""
    found = [comparison.check(got[n], expected.values[n], expected.bounds[n], expected.loose[n], op.buffers[n].type)
             for n in outputs_of(op)]
    return all(c.passed and c.compared for c in found)


def are_near(got: np.ndarray, first: np.ndarray) -> bool:
    """Are results equal up to rounding? The tolerance is coarse: error bounds of large arrays take long to compute."""
    if kind_of(got.dtype) not in "fc":
        return bool(np.array_equal(got, first))
    if got.dtype.kind == "V":
        got, first = got.astype(np.float32), first.astype(np.float32)
    finite = np.isfinite(first)
    if not finite.any():
        return True
    scale = float(np.max(np.abs(first[finite])))
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(got[finite] - first[finite]) <= ROUGHLY * scale))


def moderate(op: OpProgram, values: Values) -> Values:
    """Reduce the sizes until the work is moderate. Each step shrinks the largest size by a third, to an odd number;
    the conditions of the operator must hold."""
    while work_of(op, values) > MODERATE:
        smaller = next((s for s in _smaller(op, values) if _allowed(op, s)), None)
        if smaller is None:
            break
        values = smaller
    return values


def work_of(op: OpProgram, values: Values) -> int:
    """Steps and bytes of one call. Integer scalars without a value count as 1."""
    known = {n: int(values[n]) for n in op.sizes} | {s.name: int(values.get(s.name, 1)) for s in op.all(Scalar)
                                                     if is_integer(s.type)}
    return work_formulas.at(work_formulas.steps(op), known) + work_formulas.at(work_formulas.bytes_moved(op), known)


def _smaller(op: OpProgram, values: Values) -> list[Values]:
    free = [n for n in op.sizes if values[n] > 1 and n not in [b.name for b in op.all(Bind)]]
    return [values | {n: int(values[n]) * 2 // 3 | 1} for n in sorted(free, key=lambda n: -values[n])]


def _allowed(op: OpProgram, values: Values) -> bool:
    sizes = {n: int(values[n]) for n in op.sizes}
    shapes = [e for b in op.buffers.values() for e in b.shape]
    return all(evaluate(r.cond, sizes) for r in op.all(Require)) and all(int(evaluate(e, sizes)) > 0 for e in shapes)

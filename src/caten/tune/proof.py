"""Are the results of a candidate right? By the reference at moderate sizes, and by those of the present schedule at the sizes that are measured."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bench.sizes import Values
from ..build import Built
from ..core.dtypes import is_integer
from ..core.formula import evaluate
from ..core.numpy_types import kind_of
from ..core.program import Bind, Require, Scalar
from ..frontend.op import OpProgram
from ..loop import comparison
from ..runtime import work
from ..testing.reference import Expected, caller, outputs_of

MODERATE = 30_000_000          # operations and bytes of a run that is compared with the reference
ROUGHLY = 1e-2                 # of the greatest element: how far results may be from the present schedule's at full size


def results(op: OpProgram, built: Built, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The outputs of one call on copies."""
    own = {k: v.copy(order="K") if isinstance(v, np.ndarray) and op.buffers[k].access != "in" else v for k, v in arguments.items()}
    function = built.runtime.load(built.artifact, built.manifest)
    caller(op, getattr(function, op.name, function), own)()
    return {n: np.array(own[n]) for n in outputs_of(op)}


def agree(op: OpProgram, got: Mapping[str, np.ndarray], expected: Expected) -> bool:
    """Is every output within its rounding bound, and something of it compared?"""
    found = [comparison.check(got[n], expected.values[n], expected.bounds[n], expected.loose[n], op.buffers[n].type) for n in outputs_of(op)]
    return all(c.passed and c.compared for c in found)


def are_near(got: np.ndarray, first: np.ndarray) -> bool:
    """Equal but for rounding? Without bounds on the errors, which would take long at full size, this finds what is grossly wrong."""
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
    """Sizes with less work: the greatest one becomes a third smaller, and odd, again and again, as far as the operator's conditions allow."""
    while work_of(op, values) > MODERATE:
        smaller = next((s for s in _smaller(op, values) if _allowed(op, s)), None)
        if smaller is None:
            break
        values = smaller
    return values


def work_of(op: OpProgram, values: Values) -> int:
    """Operations and bytes of one call. Integer scalars without a value count as 1."""
    known = {n: int(values[n]) for n in op.sizes} | {s.name: int(values.get(s.name, 1)) for s in op.all(Scalar) if is_integer(s.type)}
    return int(evaluate(work.flops(op), known)) + int(evaluate(work.bytes_moved(op), known))


def _smaller(op: OpProgram, values: Values) -> list[Values]:
    free = [n for n in op.sizes if values[n] > 1 and n not in [b.name for b in op.all(Bind)]]
    return [values | {n: int(values[n]) * 2 // 3 | 1} for n in sorted(free, key=lambda n: -values[n])]


def _allowed(op: OpProgram, values: Values) -> bool:
    sizes = {n: int(values[n]) for n in op.sizes}
    shapes = [e for b in op.buffers.values() for e in b.shape]
    return all(evaluate(r.cond, sizes) for r in op.all(Require)) and all(int(evaluate(e, sizes)) > 0 for e in shapes)

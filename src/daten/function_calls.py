"""Functions of `caten.op` on tensors: nodes of the graph, with gradients, like any other operator."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caten.core.expr import Const, Expr
from caten.core.numpy_types import numpy_dtype
from caten.functions.op_function import OpFunction

from .symbolic_sizes import Symbolic
from .tensor import Tensor
from .tensor import applied as applied_spec
from .tracing import ACTIVE, formulas_of

LEAST_VARYING = 1 << 40         # no array has an axis of this length


def applied(function: OpFunction, given: Mapping[str, Any]) -> Any:
    """The results of a function for arguments by parameter: tensors, arrays and numbers. E673 where it changes one."""
    shapes = _Shapes()
    call = function.lazy({name: shapes.like(value) for name, value in given.items()})
    return applied_spec(call.spec, call.name, [given[name] for name in call.inputs], {})


class _Shapes:
    """Arrays that are there for their types and shapes. Axes that have one extent in this call alone have several: the
    operator is for all sizes of what `jit` traces."""

    def __init__(self) -> None:
        self._varying: list[tuple[Expr, int]] = []

    def like(self, value: Any) -> Any:
        """An array for a tensor; what is no tensor as it is."""
        if isinstance(value, Symbolic):
            return value.value()
        if not isinstance(value, Tensor):
            return value
        r = value._ref
        formulas: Sequence[Any] = formulas_of(r) or r.shape
        extents = [self._extent(e, n) for e, n in zip(formulas, r.shape, strict=True)]
        dtype = numpy_dtype(r.dtype)
        return np.ndarray(extents, dtype, bytes(dtype.itemsize), strides=(0,) * len(extents))

    def _extent(self, formula: Expr | int, extent: int) -> int:
        """The extent of an axis in this call; if it varies, a number that only those have that are always as long."""
        trace = ACTIVE.get()
        if not isinstance(formula, Expr) or isinstance(formula, Const) or trace is None or trace.formulas is None:
            return extent
        for known, number in self._varying:
            if trace.formulas.variables.equal(known, formula):
                return number
        number = LEAST_VARYING + len(self._varying)
        self._varying.append((formula, number))
        return number

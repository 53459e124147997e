"""Bodies over whole arrays as values, and these run by the meaning of the tensor level."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caten.core.expr import Const, Expr, Var
from caten.core.node import Node
from caten.core.program import Buffer, Require, Scalar, Size
from caten.core.text import place_in
from caten.frontend.arrays.whole_arrays import Evaluated, evaluate
from caten.semantics.tensor_meaning import Environment, OutsideError, element, value
from caten.tensor.values import TensorProgram, ValueTable


def run(found: Evaluated, sizes: Mapping[str, int], given: Environment) -> list[Any]:
    """The outputs for these sizes, scalars and arrays. A condition that fails is an AssertionError."""
    env = {**{name: np.int64(n) for name, n in sizes.items()}, **given}
    for required in found.conditions:
        assert element(required.cond, env, {}), f"{required!r} does not hold"
    arrays = dict(given)
    with np.errstate(all="ignore"):
        for definition in found.definitions:
            arrays[definition.name] = value(definition.value, env, arrays)
    return [arrays[output.value] for output in found.outputs]


def parameters(declared: str) -> tuple[Node, ...]:
    """Clauses from a short text: `X f32 M N; a f32; out Y f32 M; inout C f32 M`. Scalars have no axes."""
    sizes: dict[str, None] = {}
    clauses: list[Node] = []
    for part in declared.split(";"):
        words = part.split()
        access = words.pop(0) if words[0] in ("out", "inout") else "in"
        name, dtype, *axes = words
        if not axes and access == "in":
            clauses.append(Scalar(name, dtype))
            continue
        sizes.update(dict.fromkeys([a for a in axes if not a.isdigit()]))
        shape = tuple([Const(int(a), "i64") if a.isdigit() else Var(a, "i64") for a in axes])
        clauses.append(Buffer(name, dtype, shape, tuple(range(len(shape))), access))
    return (*[Size(name) for name in sizes], *clauses)


def evaluated(declared: str, code: str, outputs: Sequence[str] = ("R",), lang: str = "python",
              conditions: Sequence[Expr] = (), table: ValueTable | None = None) -> Evaluated:
    """The values of a body."""
    params = (*parameters(declared), *map(Require, conditions))
    rows = iter(range(1, 1000))
    return evaluate(params, outputs, code, lang, lambda pos: place_in(code, pos, "<body>"),
                    table or ValueTable(TensorProgram("t", params)), lambda message, pos: next(rows))


def tolerance(dtype: str) -> float:
    """A relative error that no sum of these sizes exceeds."""
    return {"f16": 3e-2, "f64": 1e-9}.get(dtype, 2e-4)


__all__ = ["OutsideError", "evaluated", "parameters", "run", "tolerance"]

"""Bodies over whole arrays, in Python and in Lisp: values, written as loops of the body language."""
from __future__ import annotations

from ..core.node import Node
from ..core.program import Require, Size
from ..errors import error
from ..tensor.canonical_values import canonical_values
from ..tensor.lower import lower
from ..tensor.values import TensorProgram, ValueTable
from .arrays.handles import NeedsLoops
from .arrays.python_source import PythonSource
from .arrays.whole_arrays import evaluate
from .body import Lowered
from .composite import Composite, parameter


def lower_python_body(composite: Composite) -> Lowered:
    """Lower a body in Python. Raises CatenError."""
    try:
        return lower_array_body(composite)
    except NeedsLoops as problem:
        at = PythonSource(composite.code, composite.where).position(problem.statement)
        raise error("E018", "loops over elements are written in Lisp", composite.where(at),
                    hint="write the loops as operations on whole arrays, or the body in Lisp") from None


def lower_array_body(composite: Composite) -> Lowered:
    """Lower a body over whole arrays. Raises CatenError; NeedsLoops if it has statements over elements."""
    params: tuple[Node, ...] = (*[parameter(t) for t in composite.tensors], *[Size(name) for name in composite.sizes],
                                *[Require(cond) for cond in composite.conditions])
    start = TensorProgram(composite.name, params)
    found = evaluate(params, composite.outputs, composite.code, composite.lang, composite.where, ValueTable(start),
                     lambda message, pos: 0)
    program = canonical_values(start.adding(*found.definitions, *found.outputs))
    stmts = tuple([s for kernel in lower(program).kernels for s in kernel.body])
    return Lowered(stmts, (), tuple([c.cond for c in found.conditions]))

"""Bodies over whole arrays, in Python and in Lisp: values, written as loops of the body language; and composites as
functions of such bodies."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..core.node import Node
from ..core.program import Fusion, Require, Size
from ..errors import error
from ..loop.accumulations import normalise
from ..loop.zero_fill import fill_outputs
from ..tensor.canonical_values import canonical_values
from ..tensor.fusion_requests import names_in
from ..tensor.lower import lower
from ..tensor.raising import raise_op
from ..tensor.values import Inside, Named, TensorProgram, ValueTable
from .arrays.called_composites import CalledComposite, Composites
from .arrays.handles import NeedsLoops
from .arrays.python_source import PythonSource
from .arrays.whole_arrays import evaluate
from .composite import Callees, Composite, parameter
from .lowered_body import Lowered
from .op import Body, OpProgram


class CompositeFunctions:
    """Composites as functions that return their outputs as values. `lower`: lowers the body of one."""

    def __init__(self, callees: Callees, lower: Callable[[Composite], Lowered]) -> None:
        self.callees, self.lower = callees, lower
        self.known: dict[str, TensorProgram] = {}
        self.callers: list[str] = []                     # whose bodies are being read

    def function(self, name: str) -> CalledComposite | None:
        """The composite of this name, in any spelling."""
        found = self.callees.find(name)
        if found is None:
            return None
        return CalledComposite(found.name, found.inputs, found.outputs, partial(self.values, found))

    def names(self) -> list[str]:
        return self.callees.names()

    def values(self, composite: Composite) -> TensorProgram:
        """The values of a composite. E233 if it calls itself, directly or through others."""
        if composite.name not in self.known:
            if composite.name in self.callers:
                chain = " calls ".join((*self.callers[self.callers.index(composite.name):], composite.name))
                raise error("E233", f"{chain}: recursion is not possible", composite.name_place, hint="write a loop")
            self.callers.append(composite.name)
            try:
                self.known[composite.name] = self.made(composite)
            finally:
                self.callers.pop()
        return self.known[composite.name]

    def made(self, composite: Composite) -> TensorProgram:
        lowered = self.lower(composite)
        if lowered.values is not None:
            return lowered.values
        requirements = [Require(cond) for cond in lowered.requirements]
        op = OpProgram(composite.name, (*parameters(composite), *requirements, Body(lowered.stmts)))
        return raise_op(fill_outputs(normalise(op)))


def parameters(composite: Composite) -> tuple[Node, ...]:
    """The parameters of a composite: tensors, sizes and conditions."""
    return (*[parameter(t) for t in composite.tensors], *[Size(name) for name in composite.sizes],
            *[Require(cond) for cond in composite.conditions])


def lower_python_body(composite: Composite, composites: Composites) -> Lowered:
    """Lower a body in Python. Raises CatenError."""
    try:
        return lower_array_body(composite, composites)
    except NeedsLoops as problem:
        at = PythonSource(composite.code, composite.where).position(problem.statement)
        raise error("E018", "loops over elements are written in Lisp", composite.where(at),
                    hint="write the loops as operations on whole arrays, or the body in Lisp") from None


def lower_array_body(composite: Composite, composites: Composites) -> Lowered:
    """Lower a body over whole arrays. Raises CatenError; NeedsLoops if it has statements over elements. Variables that
    requests to fusion name are arrays of the loops, with their names."""
    params = parameters(composite)
    start = TensorProgram(composite.name, params)
    found = evaluate(params, composite.outputs, composite.code, composite.lang, composite.where, ValueTable(start),
                     lambda message, pos: 0, composites)
    requests = next((f for f in composite.facts if isinstance(f, Fusion)), Fusion(()))
    asked = {name for request in requests.requests for name in names_in(request)}
    kept = {name: value for name, value in found.variables if name in asked}
    program = canonical_values(start.adding(
        *[Named(value, name, ()) for name, value in kept.items()], *found.definitions, *found.outputs,
        *([Fusion(tuple([("keep", name) for name in kept]))] if kept else [])))
    stmts = tuple([s for kernel in lower(_without_checks(program)).kernels for s in kernel.body])
    return Lowered(stmts, (), tuple([c.cond for c in found.conditions]),
                   values=program.without(Fusion, Named).adding(*found.conditions))


def _without_checks(program: TensorProgram) -> TensorProgram:
    """The program with indices as they are: as loops its accesses get their checks like all others."""
    memo: dict[Node, Node] = {}

    def go(n: Node) -> Node:
        if n not in memo:
            memo[n] = go(n.index) if isinstance(n, Inside) else n.map(go)
        return memo[n]
    return program.replace(clauses=tuple([c.map(go) for c in program.clauses]))

"""A body over whole arrays in steps: the operators of the library that it calls and that are no formulas, and the
values before, between and behind them.

    g = triangular_solve(A.mT, 2 * x)          1: v0 = 2 · x, v1 = Aᵀ
    return g @ y.mT                            2: v2 = triangular_solve(v1, v0)
                                               3: out = v2 · yᵀ

The loop nest of such an operator has no derivative by itself, but the operator has one: that of its [gradient].
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..core.expr import Expr, Var
from ..core.node import Node
from ..core.program import Buffer, GradientBody, Outputs, Require, Scalar, Size, Source
from ..core.unique_names import Names
from ..frozen import frozen
from ..loop.statements import Address, ExternCall
from ..options import Instance, Options
from ..tensor.values import Define, FailIf, Named, Nest, Out, Output, TensorProgram, ValueTable, operands_of, shapes_of
from . import operator_library
from .array_bodies import array_body
from .arrays.called_composites import CalledComposite
from .arrays.handles import NeedsLoops
from .composite import Composite
from .composite_functions import CompositeFunctions
from .op import OpProgram
from .spec import composites_of
from .spec_files import SpecText


@frozen
class Step:
    """`takes`, `gives`: the names of the arrays and numbers that are read, in the order of the step's inputs, and of
    the results. `program`: the values of the step; None for an operator of the library."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    program: OpProgram | None = None
    operator: str = ""
    instance: Instance | None = None


def steps_of(source: SpecText, options: Options) -> tuple[Step, ...]:
    """The steps of the only composite of a spec, in order; none where it calls no such operator, or has loops itself.
    Its inputs and outputs have their names. Raises CatenError."""
    (composite,), functions = composites_of(source, options)
    calls = _CallsApart(functions)
    try:
        values = array_body(composite, calls).values
    except NeedsLoops:
        return ()
    assert values is not None
    return _Steps(values, calls.made).all() if calls.made else ()


class _CallsApart:
    """The composites that a body may call. A call of an operator of the library that has loops, or a gradient by hand,
    is a nest of one statement, with its number in `made`."""

    def __init__(self, functions: CompositeFunctions) -> None:
        self.functions, self.names, self.library_names = functions, functions.names, functions.library_names
        self.made: dict[str, tuple[str, Instance | None, CalledComposite]] = {}

    def function(self, name: str) -> CalledComposite | None:
        return self._called(self.functions.callees.find(name), self.functions.function(name))

    def of_library(self, name: str) -> CalledComposite | None:
        return self._called(self.functions.callees.of_library(name), self.functions.of_library(name))

    def _called(self, found: Composite | None, callee: CalledComposite | None) -> CalledComposite | None:
        if found is None or callee is None or Path(found.file).parent != operator_library.FOLDER:
            return callee
        by_hand = any(isinstance(fact, GradientBody) for fact in found.facts)

        def values(instance: Instance | None) -> TensorProgram:
            assert callee is not None
            whole = callee.values(instance)
            if not by_hand and not any(isinstance(d.value, Nest) for d in whole.definitions):
                return whole
            number = f"call_{len(self.made)}"
            self.made[number] = found.called, instance, callee
            return _one_statement(whole, number, callee.inputs)
        return replace(callee, values=values)


def _one_statement(program: TensorProgram, number: str, inputs: Sequence[str]) -> TensorProgram:
    """The program with one statement instead of its values."""
    types: dict[str, str] = {p.name: p.type for p in program.params if isinstance(p, Buffer | Scalar)}
    scalars = {s.name for s in program.all(Scalar)}
    given: list[Expr] = [Var(n, types[n]) if n in scalars else Address(n, "read", types[n]) for n in inputs]
    made = [program.buffers[o.name] for o in program.outputs]
    call = ExternCall(number, (*given, *[Address(b.name, "write", b.type) for b in made]))
    facts = program.without(Define, Output, Named, FailIf)
    table = ValueTable(facts)
    results = table.define(Nest((call,), tuple([Out(b.name, b.type, b.axes) for b in made])))
    return facts.adding(*table.definitions, *[Output(b.name, r) for b, r in zip(made, results, strict=True)])


class _Steps:
    def __init__(self, values: TensorProgram, made: dict[str, tuple[str, Instance | None, CalledComposite]]) -> None:
        self.values, self.made = values, made
        self.calls = {d: call for d in values.definitions if (call := _call_of(d, made)) is not None}
        self.given: dict[str, Buffer | Scalar] = {
            p.name: p for p in values.params if isinstance(p, Scalar) or (isinstance(p, Buffer) and p.access == "in")}
        self.fresh = Names.of(values).fresh

    def all(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        for d, call in self.calls.items():
            operator, instance, callee = self.made[call.fn]
            arrays = call.args[:len(callee.inputs)]
            if not all(isinstance(a, Address) for a in arrays):
                return ()                                    # a number that is computed is in no array
            takes = tuple([a.buffer for a in arrays if isinstance(a, Address)])
            steps += self.between(takes)
            steps.append(Step(takes, d.names, None, operator, instance))
            assert isinstance(d.value, Nest)
            self.given |= {name: Buffer(name, out.type, out.shape, tuple(range(len(out.shape))), "in")
                           for name, out in zip(d.names, d.value.outs, strict=True)}
        outputs = {o.name: o.value for o in self.values.outputs}
        steps += self.between([v for v in outputs.values() if v not in self.given])
        return (*steps, *[Step((value,), (name,)) for name, value in outputs.items()])

    def between(self, names: Iterable[str]) -> list[Step]:
        """The step that computes values from what is given by now, if there is something to compute."""
        wanted = [name for name in dict.fromkeys(names) if name not in self.given]
        if not wanted:
            return []
        needed, found = set(wanted), list[Define]()
        for d in reversed(self.values.definitions):
            if d not in self.calls and not needed.isdisjoint(d.names):
                needed.update(operands_of(d.value))
                found.append(d)
        used = {v for d in found for v in _variables(d)}
        read = [p for name, p in self.given.items() if name in needed or name in used]
        sizes = {s.name for s in self.values.all(Size)}
        lacking = (used | {v for p in read if isinstance(p, Buffer) for e in p.axes for v in e.variables}) & sizes
        for p in self.given.values():                        # whose axes say how long others are
            if not _plain_sizes([p]).isdisjoint(lacking - _plain_sizes(read)):
                read.append(p)
        made: dict[str, Buffer] = {}
        for d in found:
            for (name, dtype), shape in zip(d.declares_all(), shapes_of(d.value), strict=True):
                if name in wanted:
                    made[name] = Buffer(self.fresh("step"), dtype, shape, tuple(range(len(shape))), "out")
        kept: list[Node] = [*self.values.all(Source)]
        inside = {v for p in (*read, *made.values()) if isinstance(p, Buffer) for e in p.axes for v in e.variables} | (
            used & sizes)
        kept += [c for c in self.values.clauses if (isinstance(c, Size) and c.name in inside)
                 or (isinstance(c, Require) and c.cond.variables <= inside)]
        outputs = [Output(b.name, name) for name, b in made.items()]
        names_of_outputs = Outputs(tuple([b.name for b in made.values()]))
        program = OpProgram(self.values.name, (*read, *made.values(), *kept, names_of_outputs, *found[::-1], *outputs))
        self.given |= {name: b.replace(name=name, access="in") for name, b in made.items()}
        return [Step(tuple([p.name for p in read]), tuple(made), program)]


def _call_of(d: Define, made: Iterable[str]) -> ExternCall | None:
    match d.value:
        case Nest((ExternCall(fn) as call,)) if fn in made:
            return call
    return None


def _plain_sizes(params: Iterable[Buffer | Scalar]) -> set[str]:
    """The sizes that the axes of arrays are."""
    return {e.name for p in params if isinstance(p, Buffer) for e in p.axes if isinstance(e, Var)}


def _variables(d: Define) -> set[str]:
    return {n.name for n in d.value.unique() if isinstance(n, Var)}

"""The gradient of an operator as an operator of its own.

    Y{float}[M N] = f(X{float}[M K], W{float}[K N])
->  grad_X, grad_W = f_gradient(X, W, grad_Y)

`grad_Y` is the gradient of a number with respect to Y, of the shape of Y; the results are the gradients of the same
number with respect to the inputs: what is known as a vector-Jacobian product.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.dtypes import is_float
from ..core.expr import Cast, Expr, number
from ..core.program import Buffer, Case, Doc, Fusion, Outputs, Reference, Scalar, Schedule, Signature
from ..core.text import Text
from ..core.unique_names import Names
from ..errors import error
from ..tensor.canonical_values import canonical_values
from ..tensor.nest_sources import without_callers_outputs
from ..tensor.values import Compute, Define, FailIf, Named, Output, TensorProgram
from .adjoints import Gradients
from .formula_adjoints import NotDifferentiable


def gradient_program(program: TensorProgram, wrt: Sequence[str] = ()) -> TensorProgram:
    """The program that computes gradients with respect to inputs of floats: those of `wrt`, or all.

    Its inputs are those of the program, and for each output of floats `Y` the array `grad_Y`; its outputs are `grad_X`
    for each input `X`. An array that is input and output has its own gradient as `grad_Y_in`. CatenError E676 where
    something has no derivative, E677 where nothing can be differentiated."""
    program = without_callers_outputs(program)
    names = Names.of(program)
    outputs = {o.name: o.value for o in program.outputs if is_float(program.buffers[o.name].type)}
    inputs = _inputs(program)
    asked = list(wrt) or [name for name, dtype in inputs.items() if is_float(dtype)]
    for name in asked:
        if not is_float(inputs.get(name, "")):
            raise error("E677", f"{program.name}: '{name}' is no input of floats", place=program.place())
    if not asked or not outputs:
        raise error("E677", f"{program.name} has no {'output' if asked else 'input'} of floats to differentiate",
                    place=program.place())
    seeds = {name: names.fresh(f"grad_{name}") for name in outputs}
    results = {name: names.fresh(f"grad_{name}_in" if name in outputs else f"grad_{name}") for name in asked}
    buffers = program.buffers
    given = {seed: buffers[name].replace(name=seed, access="in") for name, seed in seeds.items()}
    made = {result: _result(program, name, result) for name, result in results.items()}
    work = Gradients(program.adding(*given.values(), *made.values()), asked)
    try:
        work.forward(program.definitions)
        for name, output in outputs.items():
            work.seed(output, seeds[name])
        work.accumulate()
    except NotDifferentiable as problem:
        raise error("E676", f"{program.name} has no gradient: {problem.what}", place=program.place(),
                    hint="give it one by hand in a section [gradient]") from None
    sets: list[Output] = []
    for name, result in results.items():
        found = work.gradient(name)
        if found is None or found in given or found in {o.value for o in sets} or work.types[found] != inputs[name]:
            axes = work.axes(name)
            made_of: Expr = number(0.0, inputs[name]) if found is None else work.read(found, [a.var for a in axes])
            if made_of.dtype != inputs[name]:
                made_of = Cast(inputs[name], made_of)
            found = work.define(Compute(inputs[name], axes, made_of))
        sets.append(Output(result, found))
    others = program.without(Case, Reference, Schedule, Fusion, Signature, Outputs, Doc, Named, Define, Output, FailIf)
    kept = [c.replace(access="in") if isinstance(c, Buffer) else c for c in others.clauses
            if not isinstance(c, Buffer) or c.name in inputs]
    doc = Doc(Text(f"The gradients of {program.name} with respect to {', '.join(asked)}"))
    return canonical_values(TensorProgram(f"{program.name}_gradient", (
        doc, *_signature(program, inputs, seeds, results), Outputs(tuple(results.values())), *kept, *given.values(),
        *made.values(), *program.definitions, *work.table.definitions, *program.checks, *sets)))


def _inputs(program: TensorProgram) -> dict[str, str]:
    """The arrays and scalars that are read, with their element types."""
    found = {b.name: b.type for b in program.buffers.values() if b.access in ("in", "inout")}
    return found | {s.name: s.type for s in program.all(Scalar)}


def _result(program: TensorProgram, name: str, result: str) -> Buffer:
    """The array for the gradient with respect to an input."""
    buffer = program.buffers.get(name)
    if buffer is None:
        return Buffer(result, next(s.type for s in program.all(Scalar) if s.name == name), (), (), "out")
    return buffer.replace(name=result, access="out")


def _signature(program: TensorProgram, inputs: dict[str, str], seeds: dict[str, str],
               results: dict[str, str]) -> list[Signature]:
    """The declarations, with those of the gradients."""
    declared = program.first(Signature)
    if declared is None:
        return []
    texts = {m[0]: text for text in declared.tensors if (m := re.match(r"\w+", text))}
    return [Signature((*[texts[name] for name in texts if name in inputs],
                       *[Text(texts[name].replace(name, new, 1)) for name, new in (*seeds.items(), *results.items())]))]

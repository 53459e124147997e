"""The gradient of an operator as a program: made of its values, or of the body that its spec gives in [gradient].

    [gradient]
    lang = "python"
    code = "return grad_y * y"            # of exp

The body is over the inputs, the outputs (`y`) and the gradient with respect to each output of floats (`grad_y`). It
returns the gradients with respect to the inputs of floats, in their order. Attributes and sizes have their names.

A fast body may have loops, of which no derivative is known. Then `steps` is the same by operators that have gradients,
and derivatives of higher orders are made of it.
"""
from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import driver
from .attach import attach
from .core.dtypes import DTYPES, is_float
from .core.program import Attribute, Buffer, GradientBody, GradientSteps, Outputs, Scalar, Source
from .errors import error
from .frontend.bodies_in_steps import Step, steps_of
from .frontend.signature import MAX_NAME
from .frontend.spec_files import SpecText
from .gradients.gradient_program import gradient_program
from .loading import loaded
from .loop.affine import text_of
from .options import Options
from .tensor.canonical_values import canonical_values
from .tensor.nest_sources import without_callers_outputs
from .tensor.values import Output, TensorProgram

PREFIX = "grad_"
SUFFIX = "_gradient"                   # of the name of the operator


def gradient_of(program: TensorProgram, options: Options, wrt: Sequence[str] = (),
                by: type[GradientBody] | type[GradientSteps] = GradientBody) -> TensorProgram:
    """The program of the gradients with respect to inputs of floats: those of `wrt`, or all. `by`: which of the bodies
    of [gradient] computes them, if there is one.

    Its inputs are those of the program, its outputs where a body of [gradient] may read them, and `grad_Y` for each
    output of floats; its outputs are `grad_X` for each input. CatenError E676 where something has no derivative, E677
    where there is nothing to differentiate, and what is wrong with the body."""
    body = program.first(by)
    if body is None:
        return gradient_program(program, wrt)
    own = _own(program, options)
    (op,) = loaded([_by_hand(program, body)], own)
    values = driver.advance(op, "tensor", own)
    assert isinstance(values, TensorProgram)
    return _only(values, [PREFIX + name for name in wrt]) if wrt else values


def gradient_steps(program: TensorProgram, options: Options, wrt: Sequence[str] = ()) -> tuple[
        tuple[Step, TensorProgram | None], ...]:
    """The body of [gradient] for derivatives, in steps, each with its values, if it is no operator of the library.
    Steps may have derivatives where the whole has none. None where there is no such body, or it calls nothing that is a
    step."""
    body = program.first(GradientSteps) or program.first(GradientBody)
    if body is None:
        return ()
    own = _own(program, options)
    steps: list[tuple[Step, TensorProgram | None]] = []
    wanted = [PREFIX + name for name in wrt]
    for step in steps_of(_by_hand(program, body), own):
        values = None if step.program is None else driver.advance(attach(step.program, own), "tensor", own)
        assert values is None or isinstance(values, TensorProgram)
        if values is not None or step.operator or not wanted or step.gives[0] in wanted:
            steps.append((step, values))
    return tuple(steps)


def _own(program: TensorProgram, options: Options) -> Options:
    """The options for the body of a gradient."""
    return replace(options, opt=max(1, program.opt),
                   instances=(), case_instances=False, only=(), binds=(), strided=(), schedule=None)


def _by_hand(program: TensorProgram, body: GradientBody | GradientSteps) -> SpecText:
    """The gradient of an operator as a spec. E676 or E677 where it cannot have one."""
    given = [p for p in program.params if isinstance(p, Scalar) or (isinstance(p, Buffer) and p.access == "in")]
    made = [p for p in program.params if isinstance(p, Buffer) and p.access != "in"]
    results = [p for p in given if is_float(p.type)]
    if any(p.access != "out" for p in made):
        raise error("E676", f"{program.name} has no gradient: it changes an array in place", program.place(),
                    hint="a body in [gradient] is for operators with outputs of their own")
    seeds = [p for p in made if is_float(p.type)]
    if not results or not seeds:
        raise error("E677", f"{program.name} has no {'output' if results else 'input'} of floats to differentiate",
                    place=program.place())
    attributes = [f"{a.name} = {_toml(json.loads(a.value))}" for a in program.all(Attribute)]
    head = ["[composite]", f'name = "{program.name[:MAX_NAME - len(SUFFIX)]}{SUFFIX}"',
            f"attributes = {json.dumps(attributes)}",
            f"inputs = {json.dumps([*map(_declared, (*given, *made)), *[_declared(p, PREFIX) for p in seeds]])}",
            f"outputs = {json.dumps([_declared(p, PREFIX) for p in results])}", "[composite.implementation]",
            'lang = "python"']
    head += [""] * (body.line - len(head) - 2)                     # so that its errors are where it is written
    source = program.first(Source)
    return SpecText(source.file if source is not None else "<text>",
                    "\n".join([*head, "code = '''", f"{body.code}'''\n"]), "toml")


def _only(program: TensorProgram, names: Sequence[str]) -> TensorProgram:
    """The program with these of its outputs."""
    alone = without_callers_outputs(program)                       # a nest may begin from one that is left out
    kept = [c for c in alone.clauses
            if not (isinstance(c, Output) and c.name not in names)
            and not (isinstance(c, Buffer) and c.access == "out" and c.name not in names)]
    return canonical_values(program.replace(clauses=tuple([
        Outputs(tuple(names)) if isinstance(c, Outputs) else c for c in kept])))


def _declared(p: Any, prefix: str = "") -> str:
    """A declaration as a spec has it."""
    if isinstance(p, Scalar):
        return f"{prefix}{p.name}{{{DTYPES[p.type].numpy}}}[]"
    order = f"<{' '.join(map(str, p.order))}>" if p.order != tuple(range(len(p.shape))) else ""
    return f"{prefix}{p.name}{{{DTYPES[p.type].numpy}}}[{' '.join([text_of(e) for e in p.shape])}]{order}"


def _toml(value: Any) -> str:
    """A value of an attribute as a spec has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "none" if value is None else json.dumps(value)

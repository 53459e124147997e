"""Faults in the tests of a spec that show without a call: in the test code, and in the sizes of its cases."""
from __future__ import annotations

from ..core.program import Bind, Case, Program, Reference, Source
from ..errors import Place, gather
from ..frontend.op import OpProgram
from .lambda_text import LambdaText, check_parameters
from .sizes_and_scalars import case_values


def check_tests(program: Program) -> None:
    """CatenError with every fault in the [test] and the [[test.case]]s of an operator as written."""
    if isinstance(program, OpProgram):
        # a case of other sizes than -D fixes is right, and only cannot be run
        free = program.without(Bind)
        gather(lambda check: check(), [lambda: _check_reference(program),
                                       *[lambda c=c: case_values(free, c) for c in program.all(Case)]])


def _check_reference(op: OpProgram) -> None:
    reference, source = op.first(Reference), op.first(Source)
    if reference is None:
        return
    if reference.lang == "lisp":
        from ..frontend.lambdas import reference_program  # it imports the reader of loops
        reference_program(op)
        return
    text = LambdaText(reference.code, Place(source.file if source else "<spec>", reference.line, reference.column))
    check_parameters(text, op)
    text.check_names()

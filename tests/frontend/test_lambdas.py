"""Test lambdas in Lisp."""
from __future__ import annotations

import pytest

from caten.core.expr import Var
from caten.core.program import At, Buffer, Outputs, Reference, Scalar, Size, Source
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.lambdas import reference_program
from caten.frontend.op import Body, OpProgram
from caten.loop.statements import Aref, Setf

M, N = Var("M", "i64"), Var("N", "i64")
PARAMS = (Buffer("A", "f32", (M, N), (0, 1), "in"), Buffer("out_1", "f32", (M,), (0,), "out"), Scalar("f", "f32"), Size("M"), Size("N"))


def op(code: str, lang: str = "lisp") -> OpProgram:
    body = Body((Setf(Aref("out_1", (M,), "f32"), Var("f", "f32")),))
    return OpProgram("Rows", (*PARAMS, Source("rows.toml"), Outputs(("out_1",)), Reference(lang, code, 10, 5), At(1, 1, "old"), body))


CODE = "(lambda (A OUT-1 m n F)\n  (dotimes (i m)\n    (setf (aref out-1 i) 0)\n    (dotimes (j n) (incf (aref out-1 i) (* f (aref A i j))))))"


def test_a_lambda_is_an_operator_over_the_same_parameters() -> None:
    program = reference_program(op(CODE))
    assert isinstance(program, OpProgram)
    assert program.params == PARAMS
    assert program.first(Reference) is None
    assert " ".join(show(Body(program.body)).split()) == (
        "(body (for i 0 M 1 serial (setf (aref out_1 i) 0.0) (for j 0 N 1 serial (incf (aref out_1 i) (* f (aref A i j))))))")
    assert [(at.line, at.column, at.what) for at in program.all(At)][:2] == [(11, 3, "i"), (12, 11, "(aref out_1 i)")]


def test_outputs_need_not_be_parameters() -> None:
    assert reference_program(op("(lambda (A) (setf (aref out_1 0) (aref A 0 0)) nil)")).body == (
        reference_program(op("(lambda (a) (setf (aref out-1 0) (aref a 0 0)) (return out_1))")).body)


@pytest.mark.parametrize(("code", "expected"), [
    ("(lambda (A D m) (setf (aref out_1 0) 0))", "E823 10:16 the parameters of this lambda are (A D m), but the signature has (A out_1 f M N)"),
    ("(lambda (A a) (setf (aref out_1 0) 0))", "E823 10:16 the parameters of this lambda are (A a), but the signature has (A out_1 f M N)"),
    ("(setf (aref out_1 0) 0)", "E821 10:5 test code in Lisp is one (lambda (A B …) …)"),
    ("(lambda (A))", "E822 10:5 the body is empty"),
    ("(lambda (A)\n (setf (aref out_1 0) f))", "E220 11:23 there is no 'f' here"),
    ("(lambda (A) (call Sum A out_1))", "E232 10:23 there is no composite 'Sum'"),
])
def test_refusals_of_lambdas(code: str, expected: str) -> None:
    with pytest.raises(CatenError) as problem:
        reference_program(op(code))
    first = problem.value.diagnostics[0]
    assert first.place is not None
    assert first.place.file == "rows.toml"
    assert f"{first.code} {first.place.line}:{first.place.column} {first.message}" == expected


def test_an_operator_without_test_code() -> None:
    with pytest.raises(CatenError, match="E820: Rows has no test code to run"):
        reference_program(op(CODE).without(Reference))  # type: ignore[arg-type]   # the class is kept

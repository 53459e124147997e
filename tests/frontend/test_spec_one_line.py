"""Specs as one form: `(composite Name (inputs -> outputs where conditions) body)`."""
import pytest
from loading import lisp, only, refusals

from caten.core.text import show
from caten.frontend.composite import Declarations
from caten.frontend.one_line_spec import composites
from caten.frontend.spec import load
from caten.options import Options

ADD = "(composite Add ((A{float}[M, N], B{float}[M, N]) -> (C{float}[M, N]) where M > 0, N < 9) (dotimes (i M) (dotimes (j N) (setf (aref C i j) (+ (aref A i j) (aref B i j))))))"


def test_the_one_line_form():
    program = only(lisp(ADD))
    assert program.name == "Add"
    assert [show(p) for p in program.params] == ["(buffer A f32 (M N) (0 1) in)", "(buffer B f32 (M N) (0 1) in)", "(buffer C f32 (M N) (0 1) out)", "(size M)",
                                                 "(size N)", "(require (> M 0))", "(require (< N 9))"]
    assert f'(at 1 {ADD.index("(aref C") + 1} "(aref C i j)")' in show(program)


def test_the_name_may_be_left_out_and_outputs_returned():
    assert only(lisp("(composite ((A{int}[M]) -> (B{int}[M])) (dotimes (i M) (setf (aref B i) (aref A i))) (return B))")).name == "Main"


def test_conditions_in_parentheses_and_several_forms():
    one = "(composite {0} (() -> (B{{int}}[M]) (where M > 0)) (dotimes (i M) (setf (aref B i) 1)))"
    assert [p.name for p in load(lisp(one.format("One") + "\n" + one.format("Two")), Options())] == ["One", "Two"]


def test_a_one_line_form_becomes_what_the_toml_form_becomes():
    text = "(composite Gemm ((A{float}[M K]<0 1>(), B{float}[K N]<0 1>()) -> (C{float}[M N]<0 1>()))"
    one, = composites(lisp(text + " (setf (aref C 0 0) 1.0))"), Declarations(), Options())
    assert (one.sizes, one.outputs, [t.text for t in one.tensors]) == (("M", "K", "N"), ("C",), [
        "A{float}[M K]<0 1>()", "B{float}[K N]<0 1>()", "C{float}[M N]<0 1>()"])


@pytest.mark.parametrize(("signature", "outputs"), [
    ("(A{float}[M]) -> (A)", ["A"]),
    ("(A{float}[M]) -> ( A , )", ["A"]),
    ("(A{float}[M]) -> (B{float}[M], C{float} [M K] <1 0>)", ["B", "C"]),
    ("(A{float}[M], D{int}[]) -> (A B{float}[(* 2 M)](where M > 0)\n  C-1{int}[])", ["A", "B", "C_1"]),
])
def test_outputs_of_a_one_line_form(signature, outputs):
    one, = composites(lisp(f"(composite ({signature}) (setf (aref {outputs[0]} 0) 1.0))"), Declarations(), Options())
    assert list(one.outputs) == outputs


@pytest.mark.parametrize(("signature", "output"), [
    ("(C{float}[M]) -> (C{float}[M])", "C_out"),
    ("(C{float}[M] C_out{float}[M]) -> (C{float}[M])", "C_out_2"),
    ("(C{float}[C-OUT]) -> (C{float}[C-OUT])", "C_out_2"),
])
def test_an_output_declared_like_an_input_is_a_new_tensor(signature, output):
    one, = composites(lisp(f"(composite ({signature}) (return C))"), Declarations(), Options())
    assert one.outputs == (output,)
    assert (one.tensor("C").access, one.tensor(output).access, one.tensor(output).text[:len(output) + 1]) == ("in", "out", output + "{")


FORMS = [
    ("E019", "", 1, "no composite"),
    ("E023", "hello", 1, "expected (composite"),
    ("E023", "(composit)", 1, "expected (composite"),
    ("E023", "(composite)", 11, "expected the signature"),
    ("E023", "(composite Name)", 16, "expected the signature"),
    ("E023", "(composite (A{float}[M]) 3)", 12, "a signature is"),
    ("E023", "(composite ((A{float}[M]) -> (B{float}[M]) having M > 0) 3)", 44, "expected 'where'"),
    ("E023", "(composite ((A{float}[M]) -> (B{float}[M]) (where M > 0) 4) 3)", 58, "expected the end"),
    ("E105", "(composite ((A{Tee}[M]) -> (B{float}[M])) 3)", 16, "is not an element type"),
    ("E106", "(composite inf ((A{float}[M]) -> (B{float}[M])) 3)", 12, "constant"),
    ("E107", "(composite ((C{float}[M]) -> (c{float}[M])) 3)", 31, "declared twice"),
    ("E107", "(composite ((C{float}[M]) -> (D{float}[M] D{float}[M])) 3)", 43, "declared twice"),
    ("E115", "(composite ((A{float}[M]) -> ()) 3)", 12, "no outputs"),
    ("E201", "(composite", 1, "never closed"),
]


@pytest.mark.parametrize(("code", "text", "column", "message"), FORMS, ids=[f"{f[0]}-{f[1][:30]}" for f in FORMS])
def test_refusals_of_the_one_line_form(code, text, column, message):
    found = refusals(lisp(text))
    assert (found[0][0], found[0][2]) == (code, column)
    assert message in found[0][3]

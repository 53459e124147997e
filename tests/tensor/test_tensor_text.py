"""What the reader and the verifier say of a (tensor …) text that a person has written."""
from __future__ import annotations

import pytest

from caten.core.program import resolve
from caten.core.text import flat, form_of, read
from caten.errors import CatenError
from caten.tensor.tensor_verifier import verify
from caten.tensor.values import Define, TensorProgram


@pytest.mark.parametrize(("value", "message"), [
    ("(compute f32 ((i (size N))) 1.0)", "E212: .*the axis i does not range over numbers"),
    ("(compute f32 ((i N)) (size N))", "E212: .*'expr' holds"),
    ("(reduce nothing ((i N)) ((p N)) add true 1.0)", "E471: .*declared nothing"),
])
def test_a_value_that_is_none_is_refused(value: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        verify(resolve(read(f"(tensor T (size N) (buffer Y f32 (N) (0) out) (define v {value}))")[0]))


def program(expr: str) -> TensorProgram:
    text = f"(tensor T (size N) (buffer t0 f32 (N) (0) in) (buffer Y f32 (N) (0) out) (define v (compute f32 ((i N)) {expr})) (output Y v))"
    made: TensorProgram = resolve(read(text)[0])
    verify(made)
    return made


def shown(program: TensorProgram) -> str:
    (define,) = program.all(Define)
    return flat(form_of(define.value.to_form()[-1]))       # type: ignore[attr-defined]   # values have one


@pytest.mark.parametrize(("written", "printed"), [
    ("(* (+ (sin (* (read t0 i) 2.0)) 1.0) (+ (sin (* (read t0 i) 2.0)) 1.0))", "(let ((t1 (+ (sin (* (read t0 i) 2.0)) 1.0))) (* t1 t1))"),
    ("(let ((a (+ (sin (* (read t0 i) 2.0)) 1.0)) (b (* a a))) (- b (exp b)))", "(let ((t1 (+ (sin (* (read t0 i) 2.0)) 1.0)) (t2 (* t1 t1))) (- t2 (exp t2)))"),
    ("(let ((a (read t0 i))) (* a a))", "(* (read t0 i) (read t0 i))"),                      # short
    ("(let () 1.0)", "1.0"),
])
def test_a_part_that_occurs_several_times_prints_once(written: str, printed: str) -> None:
    """Its name is that of no array."""
    made = program(written)
    assert shown(made) == printed
    assert program(printed) is made


@pytest.mark.parametrize("expr", ["(let (a) 1.0)", "(let ((a)) a)", "(let ((a 1.0 2.0)) a)", "(let (((b) 1.0)) 1.0)"])
def test_a_let_that_names_nothing_is_refused(expr: str) -> None:
    with pytest.raises(CatenError, match=r"E212: .*malformed \(let …\)"):
        program(expr)


@pytest.mark.parametrize(("clauses", "message"), [
    ("(define v (compute f32 ((i M) (j N)) (pieces i ((read X i j)) M)))", "E471: v: 1 pieces with 1 bounds"),
    ("(define v (compute f32 ((i M) (j N)) (pieces i ((read X i j) 1.0))))", "E471: v: 2 pieces with 0 bounds"),
    ("(define v (compute f32 ((i M) (j N)) (pieces i () 5)))", "E471: v: 0 pieces with 1 bounds"),
    ("(define v (compute f32 ((i M) (j N)) (read X (inside 1.5 M 1) j)))", "E471: .*an index and its extent are i64"),
    ("(define v (compute f32 ((i M) (j N)) (read X (inside i 2.0 1) j)))", "E471: .*an index and its extent are i64"),
    ("(define v (compute f32 ((i M) (j N)) (read X i)))", "E471: .*type and rank of 'X'"),
    ("(define v (compute f32 ((i (read I 0)) (j N)) 1.0))", "E471: v: the extent .* is no i64 over sizes"),
    ("(define v (compute f32 ((i M) (j 2.0)) 1.0))", "E471: v: the extent 2.0 is no i64 over sizes"),
    ("(define v (compute f32 ((i M) (j N)) (aref X i j)))", r"E470: .*a value is read by \(read …\)"),
    ("(define v (nest () (out Y f32 (M N)))) (output Y v) (output Y v)", "E470: the output Y is set twice"),
    ("(define v (nest () (out Y f32 (N M)))) (output Y v)", r"E471: Y: f32 \(N M\), declared f32 \(M N\)"),
    ("(define v (nest () (out Y f32 (M (= M 1))))) (output Y v)", "E471: v: the extent .* is no i64 over sizes"),
    ("(define v (nest ((let v i64 1)) (out Y f32 (M N)))) (output Y v)", "E470: v is defined twice"),
    ("(define v (nest ((let q i64 1)) (out Y f32 (M N) q))) (output Y v)", "E470: .*'q', which is not defined"),
    ("(define v (nest () (out Y f32 (M N) I))) (output Y v)", r"E471: v: 'Y' begins as 'I': i64 \(N\), declared f32"),
])
def test_what_does_not_agree_is_a_diagnostic(clauses: str, message: str) -> None:
    text = f"""(tensor T (size M) (size N) (buffer X f32 (M N) (0 1) in) (buffer I i64 (N) (0) in)
      (buffer Y f32 (M N) (0 1) out) {clauses})"""
    with pytest.raises(CatenError, match=message):
        verify(resolve(read(text)[0]))

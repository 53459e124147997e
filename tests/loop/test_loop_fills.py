"""Outputs that are set everywhere, those that are filled with 0 before, and those that are refused."""
from __future__ import annotations

import pytest

from caten import loading
from caten.core.program import Program
from caten.core.text import flat, form_of
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.zero_fill import fill_outputs
from caten.options import Options

SIGNATURE = "x{float}[N], k{int}[N], a{float}[], c{int}[], U{float}[M N]"

SET_EVERYWHERE = [
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) 0))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) 0)) (dotimes (i N) (dotimes (j M) (incf (aref y i) (aref U j i))))"),
    ("y{float}[N]", "(loop (i (- N 1) -1 -1) (setf (aref y i) 0))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y (- (- N 1) i)) 0))"),
    ("y{float}[(* 4 M)]", "(dotimes (i M) (dotimes (j 4) (setf (aref y (+ (* 4 i) j)) 0)))"),
    ("y{float}[(* 4 M)]", "(dotimes (j 4) (dotimes (i M) (setf (aref y (+ (* 4 i) j)) 0)))"),
    ("y{float}[(* 2 M)]", "(dotimes (i M) (setf (aref y (* 2 i)) 0) (setf (aref y (+ (* 2 i) 1)) 1))"),
    ("y{float}[(* 2 M)]", "(dotimes (i M) (setf (aref y (* 2 i)) 0)) (dotimes (i M) (setf (aref y (+ (* 2 i) 1)) 1))"),
    ("y{float}[M N]", "(dotimes (i M) (dotimes (j N) (setf (aref y i j) 0)))"),
    ("y{float}[N M]", "(dotimes (i M) (dotimes (j N) (setf (aref y j i) 0)))"),
    ("y{float}[(* M N)]", "(dotimes (i M) (dotimes (j N) (setf (aref y (+ (* i N) j)) 0)))"),
    ("y{float}[(* M N)]", "(dotimes (j N) (dotimes (i M) (setf (aref y (+ (* i N) j)) 0)))"),
    ("y{float}[N](where N > 0)", "(setf (aref y 0) 0) (loop (i 1 N) (setf (aref y i) (+ (aref y (- i 1)) (aref x i))))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) (if (> i 0) (+ (aref y (- i 1)) (aref x i)) (aref x i))))"),
    ("y{float}[N]", "(dotimes (i N) (if (> (aref x i) 0) (setf (aref y i) 1) (setf (aref y i) 2)))"),
    ("y{float}[N]", "(dotimes (i N) (cond ((> (aref x i) 3) (setf (aref y i) 1)) ((> (aref x i) 0) (setf (aref y i) 3)) (t (setf (aref y i) 2))))"),
    ("y{float}[N]", "(dotimes (i N) (if (> i c) (setf (aref y i) 1) (setf (aref y i) 2)))"),
    ("y{float}[N]", "(if (> a 0) (dotimes (i N) (setf (aref y i) 1)) (dotimes (j N) (setf (aref y j) 2)))"),
    ("y{float}[N]", "(if (> c 0) (dotimes (i N) (setf (aref y i) 1)) (loop (j (- N 1) -1 -1) (setf (aref y j) 2)))"),
    ("y{float}[N]", "(dotimes (i N) (when (< i 3) (setf (aref y i) 1))) (dotimes (i N) (when (>= i 3) (setf (aref y i) 1)))"),
    ("y{float}[N]", "(dotimes (i N) (when (< i c) (setf (aref y i) 1)) (unless (< i c) (setf (aref y i) 1)))"),
    ("y{float}[N]", "(dotimes (i (floordiv N 2)) (setf (aref y i) 1)) (loop (i (floordiv N 2) N) (setf (aref y i) 1))"),
    ("y{float}[N]", "(dotimes (i (floordiv N 4)) (dotimes (j 4) (setf (aref y (+ (* 4 i) j)) 1))) (loop (i (* 4 (floordiv N 4)) N) (setf (aref y i) 1))"),
    ("y{float}[N]", "(dotimes (i (floordiv N 4)) (setf (aref y (* 4 i)) 1 (aref y (+ 1 (* 4 i))) 1 (aref y (+ 2 (* 4 i))) 1 (aref y (+ 3 (* 4 i))) 1)) (loop (i (* 4 (floordiv N 4)) N) (setf (aref y i) 1))"),
    ("y{float}[N]", "(loop (i 0 N 4) (loop (j i (min N (+ i 4))) (setf (aref y j) 1)))"),
    ("y{float}[N]", "(loop (i 0 N 4) (dotimes (j 4) (when (< (+ i j) N) (setf (aref y (+ i j)) 1))))"),
    ("y{float}[(* 4 M)]", "(loop (i 0 (* 4 M) 4) (dotimes (j 4) (setf (aref y (+ i j)) 1)))"),
    ("y{float}[M 4]", "(dotimes (i (* 4 M)) (setf (aref y (floordiv i 4) (mod i 4)) 1))"),
    ("y{float}[N N]", "(dotimes (i N) (dotimes (j i) (setf (aref y i j) 1)) (loop (j i N) (setf (aref y i j) 0)))"),
    ("y{float}[N N]", "(dotimes (i N) (dotimes (j N) (when (< j i) (setf (aref y i j) 1)))) (dotimes (i N) (loop (j i N) (setf (aref y i j) 0)))"),
    ("y{float}[N]", "(set b 0) (dotimes (i N) (setf (aref y b) 1) (incf b 1))"),
    ("y{float}[N]", "(dotimes (i N) (let ((b (- N i))) (let ((d (- b 1))) (setf (aref y d) 1))))"),
    ("y{float}[]", "(setf y 1)"),
    ("y{float}[]", "(if (> a 0) (setf y 1) (setf y 2))"),
    ("y{float}[]", "(setf y 0) (dotimes (i N) (incf y (aref x i)))"),
    ("y{float}[](where N > 0)", "(setf y (aref x 0)) (loop (i 1 N) (maxcf y (aref x i)))"),
    ("y{float}[N]", "(array t float (N)) (dotimes (i N) (setf (aref t i) (aref x i))) (dotimes (i N) (setf (aref y i) (aref t i)))"),
    ("y{float}[3]", "(setf (aref y 0) 1 (aref y 1) 2 (aref y 2) 3)"),
    ("y{float}[2 N]", "(dotimes (i N) (setf (aref y 0 i) 1 (aref y 1 i) 2))"),
    ("y{float}[(* 2 M) N]", "(dotimes (i M) (dotimes (j N) (dotimes (p 2) (setf (aref y (+ (* 2 i) p) j) 1))))"),
    ("y{float}[N]", "(dotimes (i N) (set s 0.0) (dotimes (j M) (incf s (aref U j i))) (setf (aref y i) s))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) (aref x i))) (dotimes (i N) (setf (aref y i) (+ (aref y i) (aref y (- (- N 1) i)))))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) 0) (mulcf (aref y i) 2))"),
    ("y{float}[(+ M N)]", "(dotimes (i N) (setf (aref y (+ i M)) 0)) (dotimes (i M) (setf (aref y i) 1))"),
    ("y{float}[(+ M 2) M]", "(dotimes (i M) (setf (aref y 0 i) 0 (aref y (+ M 1) i) 0)) (dotimes (i M) (dotimes (j M) (setf (aref y (+ i 1) j) 1)))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) 0)) (dotimes (i N) (incf (aref y (aref k i)) 1))"),
    ("y{float}[0]", "(dotimes (i 0) (setf (aref y i) 0))"),
]
FILLED = [
    ("y{float}[N]", "(dotimes (i N) (when (> (aref x i) 0) (setf (aref y i) 1)))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y (aref k i)) 1))"),
    ("y{float}[N]", "(dotimes (i M) (setf (aref y i) 1))"),
    ("y{float}[N]", "(dotimes (i M) (when (< i N) (setf (aref y i) 1)))"),
    ("y{float}[N N]", "(dotimes (i N) (setf (aref y i i) 1))"),
    ("y{float}[N]", "(dotimes (p (- M 1)) (dotimes (i N) (setf (aref y i) 1)))"),
    ("y{float}[N]", "(dotimes (i N) (dotimes (p c) (setf (aref y i) 1)))"),
    ("y{float}[]", "(when (> a 0) (setf y 1))"),
    ("y{float}[]", "(dotimes (i N) (setf y (aref x i)))"),
    ("y{float}[N]", "(dotimes (i N) (setf (aref y i) (if (> i 0) (aref y (- N i)) 0)))"),
    ("y{float}[N]", "(dotimes (i N) (when (> i 0) (incf (aref y i) 1)) (setf (aref y i) 0))"),
    ("y{float}[N]", "(loop (i 0 N 2) (setf (aref y i) 1))"),
    ("y{float}[(+ (* 3 M) N)]", "(dotimes (i M) (dotimes (j 3) (setf (aref y (+ (* 4 i) j)) 0)))"),
    ("y{float}[N N]", "(dotimes (i N) (loop (j 0 (+ i 1)) (setf (aref y i j) 1)))"),
    ("y{float}[N]", "(dotimes (i (min N 5)) (setf (aref y i) 1))"),
    ("y{float}[N]", "(loop (i c N) (setf (aref y i) 1))"),
    ("y{float}[N]", "(if (> a 0) (dotimes (i N) (setf (aref y i) 1)) (loop (j 1 N) (setf (aref y j) 2)))"),
    ("y{float}[N]", "(dotimes (i N) (if (> (aref x i) 0) (setf (aref y i) 1) (setf (aref y (- (- N 1) i)) 2)))"),
]
NEVER_SET = [
    ("y{float}[N]", "(dotimes (i (- N 1)) (setf (aref y i) 1))"),
    ("y{float}[N]", "(loop (i 1 N) (setf (aref y i) 1))"),
    ("y{float}[N]", "(loop (i 1 (- N 1)) (setf (aref y i) (aref x i)))"),
    ("y{float}[(* 2 M)]", "(dotimes (i M) (setf (aref y (* 2 i)) 0))"),
    ("y{float}[(* 4 M)]", "(dotimes (i M) (dotimes (j 3) (setf (aref y (+ (* 4 i) j)) 0)))"),
    ("y{float}[3]", "(setf (aref y 0) 1 (aref y 2) 3)"),
    ("y{float}[N]", "(setf (aref y 1) 1)"),
    ("y{float}[N]", "(dotimes (i N) (when (> (aref x i) 0) (when (> i 0) (setf (aref y i) 1))))"),
    ("y{float}[N N]", "(dotimes (i N) (dotimes (j i) (setf (aref y i j) 1)))"),
    ("y{float}[N]", "(dotimes (i 0) (setf (aref y i) 1))"),
    ("y{float}[M N]", "(dotimes (i M) (loop (j 1 N) (setf (aref y i j) 1)))"),
    ("y{float}[N]", "(dotimes (i N) (when (< i 0) (setf (aref y i) 1)))"),
]


def op(output: str, body: str, more: str = "") -> Program:
    return loading.load_programs(SpecText("t", f"(composite T (({SIGNATURE}) -> ({output})) {body}) {more}", "lisp"), Options())[0]


@pytest.mark.parametrize(("output", "body"), SET_EVERYWHERE)
def test_what_is_set_everywhere_costs_nothing(output: str, body: str) -> None:
    program = op(output, body)
    assert fill_outputs(program) is program


@pytest.mark.parametrize(("output", "body"), FILLED)
def test_what_is_not_proven_to_be_set_is_filled(output: str, body: str) -> None:
    program, filled = op(output, body), fill_outputs(op(output, body))
    assert isinstance(program, OpProgram)
    assert isinstance(filled, OpProgram)
    assert filled.body[1:] == program.body
    assert flat(form_of(filled.body[0])) in (
        "(setf (aref y) 0.0)", "(for y_0 0 N 1 serial (setf (aref y y_0) 0.0))", "(for y_0 0 N 1 serial (for y_1 0 N 1 serial (setf (aref y y_0 y_1) 0.0)))",
        "(for y_0 0 (+ (* 3 M) N) 1 serial (setf (aref y y_0) 0.0))")


@pytest.mark.parametrize(("output", "body"), NEVER_SET)
def test_what_is_never_set_is_refused(output: str, body: str) -> None:
    with pytest.raises(CatenError) as caught:
        fill_outputs(op(output, body))
    assert [d.code for d in caught.value.diagnostics] == ["E403"]


@pytest.mark.parametrize(("body", "message"), [
    ("(dotimes (i (- N 1)) (setf (aref y i) 1))", "no statement sets (aref y (- N 1)), an element of the output 'y'"),
    ("(loop (i 1 N) (setf (aref y i) 1))", "no statement sets (aref y 0), an element of the output 'y'"),
])
def test_the_element_is_named(body: str, message: str) -> None:
    with pytest.raises(CatenError) as caught:
        fill_outputs(op("y{float}[N]", body))
    assert caught.value.diagnostics[0].message == message


def test_a_fill_follows_the_order_of_the_array() -> None:
    filled = fill_outputs(op("y{complex64}[M N]<1 0>", "(dotimes (i N) (setf (aref y (aref k i) i) (cast complex64 a)))"))
    assert flat(form_of(filled.body[0])) == "(for y_1 0 N 1 serial (for y_0 0 M 1 serial (setf (aref y y_0 y_1) 0j:c64)))"


def test_inputs_that_are_written_keep_what_the_caller_gave() -> None:
    text = "(composite T ((y{float}[N]) -> (y)) (dotimes (i (- N 1)) (setf (aref y i) 0)))"
    program = loading.load_programs(SpecText("t", text, "lisp"), Options())[0]
    assert fill_outputs(program) is program


@pytest.mark.parametrize(("inner", "is_set"), [("(dotimes (i n) (setf (aref z i) (aref v i)))", True), ("(dotimes (i n) (when (< 0 (aref v i)) (setf (aref z i) 1)))", False)])
def test_a_called_operator_sets_what_its_body_sets(inner: str, is_set: bool) -> None:
    program = op("y{float}[N]", "(call Inner x y)", "(composite Inner ((v{float}[n]) -> (z{float}[n])) " + inner + ")")
    assert (fill_outputs(program) is program) == is_set


def test_long_chains_of_names_do_not_take_long() -> None:
    lets = "(let ((t0 (+ i c))) " + "".join([f"(let ((t{n} (* t{n - 1} t{n - 1}))) " for n in range(1, 20)]) + "(setf (aref y (mod t19 N)) 1)" + ")" * 20
    program = op("y{float}[N]", f"(dotimes (i N) {lets})")
    assert fill_outputs(program) is not program


@pytest.mark.slow
def test_many_stores_are_given_up(nightly: bool) -> None:
    stores = " ".join([f"(setf (aref y (mod (+ (* 7 {n}) c) N)) {n})" for n in range(300 if nightly else 40)])
    program = op("y{float}[N]", stores)
    assert fill_outputs(program) is not program

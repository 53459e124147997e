"""The simplifier on statements and floats: text in, text out."""
from __future__ import annotations

import pytest

from caten.core.program import resolve
from caten.core.text import flat, form_of, read
from caten.loop.context import Context
from caten.loop.simplify import simplify_program, simplify_statements

PARAMS = "(size M) (size N) (buffer X f32 (N) (0) inout) (buffer J i32 (N) (0) inout) (buffer A f32 (M N) (0 1) in)"


def simplified(body: str, facts: str = "") -> str:
    program = resolve(read(f"(loop t {PARAMS} {facts} (kernel t {body}))")[0])
    once = simplify_program(program)
    assert simplify_statements(once.kernels[0].body, Context.of(once)) == once.kernels[0].body
    return " ".join(flat(form_of(s)) for s in once.kernels[0].body)


@pytest.mark.parametrize(("body", "result"), [
    ("(for i 0 0 1 serial (setf (aref X i) 0.0))", ""),
    ("(for i 3 4 1 serial (setf (aref X (+ i 1)) 0.0))", "(setf (aref X 4) 0.0)"),
    ("(for i 5 4 -1 serial (setf (aref X i) 0.0))", "(setf (aref X 5) 0.0)"),
    ("(for i 0 N 1 serial (if (< i N) ((setf (aref X i) 0.0)) ((fail 1))))", "(for i 0 N 1 serial (setf (aref X i) 0.0))"),
    ("(for i 0 N 1 serial (if (< i 0) ((fail 1))))", ""),
    ("(fail 1) (setf (aref X 0) 1.0)", "(fail 1)"),
    ("(for i 0 N 1 serial (incf (aref J i) 0:i32))", ""),
    ("(for i 0 N 1 serial (incf (aref X i) 0.0))", "(for i 0 N 1 serial (incf (aref X i) 0.0))"),
    ("(for io 0 N 8 serial (for i io (min (+ io 8) N) 1 serial (setf (aref X (min i (- N 1))) 0.0)))",
     "(for io 0 N 8 serial (for i io (min (+ io 8) N) 1 serial (setf (aref X i) 0.0)))"),
    ("(for t 0 (* M N) 1 serial (setf (aref X (mod (+ (* N (floordiv t N)) (mod t N)) N)) 0.0))",
     "(for t 0 (* M N) 1 serial (setf (aref X (mod t N)) 0.0))"),
    ("(for i 0 8 1 serial (setf (aref X (+ (floordiv (+ (* 8 M) i) 8) (mod (+ (* 8 M) i) 8))) 0.0))",
     "(for i 0 8 1 serial (setf (aref X (+ M i)) 0.0))"),
    # an index is multiplied out, what is computed of elements is not where that is more to compute
    ("(for i 0 N 1 serial (setf (aref X (- (* (+ M 1) (+ i 1)) (* M i))) 0.0))", "(for i 0 N 1 serial (setf (aref X (+ (+ M i) 1)) 0.0))"),
    ("(for i 0 N 1 serial (setf (aref J i) (* (+ (aref J i) M32) (+ (aref J i) M32))))".replace("M32", "(cast i32 M)"),
     "(for i 0 N 1 serial (setf (aref J i) (* (+ (aref J i) (cast i32 M)) (+ (aref J i) (cast i32 M)))))"),
    ("(for i 0 N 1 serial (setf (aref J i) (- (+ (aref J i) 2:i32) (aref J i))))", "(for i 0 N 1 serial (setf (aref J i) 2:i32))"),
    # an index keeps the name of a loop that a condition says the iteration of, where no more than the number would come in its place
    ("(for i 0 N 1 serial (if (= i 2) ((setf (aref X (+ 1 (* 2 i))) (cast f32 (+ i M))))))",
     "(for i 0 N 1 serial (if (= i 2) ((setf (aref X (+ (* 2 i) 1)) (cast f32 (+ M 2))))))"),
    ("(for i 0 N 1 serial (if (= i 2) ((setf (aref X (max (- i 3) 0)) (aref A i (mod i 2))))))",
     "(for i 0 N 1 serial (if (= i 2) ((setf (aref X 0) (aref A i 0)))))"),
    ("(for i 0 N 1 serial (for j i (min N (+ i 1)) 1 serial (if (and (<= 2 i) (< i 3)) ((setf (aref X (- N j)) 0.0)))))",
     "(for i 0 N 1 serial (if (and (<= 2 i) (< i 3)) ((setf (aref X (- N i)) 0.0))))"),
    # both sides of `and` are computed: a read keeps the condition that it is under
    ("(for i 0 N 1 serial (setf (aref X i) (cast f32 (and (<= 1 i) (where (<= 1 i) (< (aref X (- i 1)) 2.0) false)))))",
     "(for i 0 N 1 serial (setf (aref X i) (cast f32 (and (<= 1 i) (where (<= 1 i) (< (aref X (- i 1)) 2.0) false)))))"),
    ("(for i 0 N 1 serial (setf (aref X i) (cast f32 (and (<= 1 i) (where (<= 1 i) (< i 7) false)))))",
     "(for i 0 N 1 serial (setf (aref X i) (cast f32 (and (<= 1 i) (< i 7)))))"),
])
def test_statements(body: str, result: str) -> None:
    assert simplified(body) == result


@pytest.mark.parametrize(("value", "result"), [
    ("(* x 1.0)", "x"), ("(/ x 1.0)", "x"), ("(- x 0.0)", "x"), ("(+ x -0.0)", "x"), ("(neg (neg x))", "x"), ("(where (< 1 0) 3.0 x)", "x"),
    ("(+ x 0.0)", "(+ x 0.0)"), ("(- x -0.0)", "(- x -0.0)"), ("(- x x)", "(- x x)"), ("(* x 0.0)", "(* x 0.0)"), ("(/ x x)", "(/ x x)"),
    ("(+ (+ x 1.0) 2.0)", "(+ (+ x 1.0) 2.0)"), ("(where (not (< x 1.0)) 1.0 2.0)", "(where (not (< x 1.0)) 1.0 2.0)"),
    ("(cast f32 (+ 1:i8 127:i8))", "-128.0"), ("(cast f32 16777217)", "(cast f32 16777217)"),
])
def test_floats_change_only_where_every_value_stays(value: str, result: str) -> None:
    assert simplified(f"(let x f32 (aref X 0)) (setf (aref X 0) {value})") == f"(let x f32 (aref X 0)) (setf (aref X 0) {result})"


def test_bound_sizes_become_numbers() -> None:
    assert simplified("(for i 0 N 1 serial (setf (aref X i) (cast f32 (* N M))))", "(bind N 4)") == (
        "(for i 0 4 1 serial (setf (aref X i) (cast f32 (* 4 M))))")


def test_a_counter_is_not_taken_for_its_first_value() -> None:
    body = "(local c i64 () register) (setf (aref c) 0) (for i 0 N 1 serial (if (< (aref c) 1) ((setf (aref X i) 0.0))) (incf (aref c) 1))"
    assert "(if " in simplified(body)
    reset = "(local c i64 () register) (setf (aref c) 0) (for i 0 N 1 serial (if (< (aref c) 1) ((setf (aref X i) 0.0))) (setf (aref c) 0))"
    assert "(incf " not in simplified(reset)

"""Statements of a body: text in, IR text out."""
from __future__ import annotations

import pytest
from lowering import ir, lowered

GEMM = "(dotimes (i M) (dotimes (j N) (dotimes (k K) (incf (aref C i j) (* (aref A i k) (aref B k j))))))"


def test_gemm() -> None:
    assert ir(GEMM, "A{float}[M K]; B{float}[K N]; C{float}[M N]", "C") == (
        "(for i 0 M 1 serial (for j 0 N 1 serial (for k 0 K 1 serial (incf (aref C i j) (* (aref A i k) (aref B k j))))))")


@pytest.mark.parametrize(("code", "expected"), [
    ("(loop (i 0 N 2) (setf (aref Y i) 0))", "(for i 0 N 2 serial (setf (aref Y i) 0.0))"),
    ("(loop (i 1 N) (setf (aref Y i) 0))", "(for i 1 N 1 serial (setf (aref Y i) 0.0))"),
    ("(loop (i (- N 1) -1 -1) (setf (aref Y i) 0))", "(for i (- N 1) -1 -1 serial (setf (aref Y i) 0.0))"),
    ("(loop (i k N k) (setf (aref Y i) 0))", "(for i (cast i64 k) N (cast i64 k) serial (setf (aref Y i) 0.0))"),
    ("(dotimes (i (floordiv N 2)) (setf (aref Y i) 0))", "(for i 0 (floordiv N 2) 1 serial (setf (aref Y i) 0.0))"),
    ("(setf (aref Y 0) 1 (aref Y 1) 2)", "(setf (aref Y 0) 1.0)\n(setf (aref Y 1) 2.0)"),
    ("(progn (setf (aref Y 0) 1) (setf (aref Y 1) 2))", "(setf (aref Y 0) 1.0)\n(setf (aref Y 1) 2.0)"),
    ("(setf (aref Y 0) 1) nil (return Y)", "(setf (aref Y 0) 1.0)"),
    ("(setf (aref Y 0) 1) Y", "(setf (aref Y 0) 1.0)"),
    ("(dotimes (i 2) (setf (aref Y i) 0)) (dotimes (i 2) (setf (aref Y i) 1))",
     "(for i 0 2 1 serial (setf (aref Y i) 0.0))\n(for i_2 0 2 1 serial (setf (aref Y i_2) 1.0))"),
])
def test_loops_and_sequences(code: str, expected: str) -> None:
    assert ir(code, "X{float}[N]; k{int32}[]") == expected


@pytest.mark.parametrize(("code", "expected"), [
    ("(incf (aref Y 0))", "(incf (aref Y 0) 1.0)"), ("(incf (aref Y 0) 2)", "(incf (aref Y 0) 2.0)"), ("(decf (aref Y 0))", "(incf (aref Y 0) -1.0)"),
    ("(decf (aref Y 0) x)", "(incf (aref Y 0) (neg x))"), ("(mulcf (aref Y 0) x)", "(incf (aref Y 0) x mul)"),
    ("(divcf (aref Y 0) x)", "(setf (aref Y 0) (/ (aref Y 0) x))"), ("(maxcf (aref Y 0) 3)", "(incf (aref Y 0) 3.0 max)"),
    ("(mincf (aref Y 0) x)", "(incf (aref Y 0) x min)"),
])
def test_updates(code: str, expected: str) -> None:
    assert ir(code, "x{float}[]; Y{float}[N]", "Y") == expected


def test_an_unsigned_element_is_decremented_by_the_negated_value() -> None:
    assert ir("(decf (aref Y 0) 2)", "Y{uint8}[N]", "Y") == "(incf (aref Y 0) (neg 2:u8))"


@pytest.mark.parametrize(("code", "expected"), [
    ("(if (< N 3) (setf (aref Y 0) 1))", "(if (< N 3) ((setf (aref Y 0) 1.0)))"),
    ("(if (< N 3) (setf (aref Y 0) 1) (setf (aref Y 0) 2))", "(if (< N 3) ((setf (aref Y 0) 1.0)) ((setf (aref Y 0) 2.0)))"),
    ("(if (< N 3) nil (setf (aref Y 0) 2))", "(if (< N 3) () ((setf (aref Y 0) 2.0)))"),
    ("(when (< N 3) (setf (aref Y 0) 1) (setf (aref Y 1) 1))", "(if (< N 3) ((setf (aref Y 0) 1.0) (setf (aref Y 1) 1.0)))"),
    ("(unless (< N 3) (setf (aref Y 0) 1))", "(if (not (< N 3)) ((setf (aref Y 0) 1.0)))"),
    ("(cond ((< N 3) (setf (aref Y 0) 1)) ((= N 3) (setf (aref Y 0) 2)) (t (setf (aref Y 0) 3)))",
     "(if (< N 3) ((setf (aref Y 0) 1.0)) ((if (= N 3) ((setf (aref Y 0) 2.0)) ((setf (aref Y 0) 3.0)))))"),
    ("(if t (setf (aref Y 0) 1))", "(setf (aref Y 0) 1.0)"),
])
def test_choices(code: str, expected: str) -> None:
    assert ir(code) == expected


@pytest.mark.parametrize(("code", "expected"), [
    # the type is that of all assignments
    ("(set acc 0) (dotimes (i N) (incf acc (aref X i))) (setf (aref Y 0) acc)",
     "(local acc f32 () register)\n(setf (aref acc) 0.0)\n(for i 0 N 1 serial (incf (aref acc) (aref X i)))\n(setf (aref Y 0) (aref acc))"),
    ("(set n 0) (dotimes (i N) (setf (aref Y n) 0) (incf n 1))",
     "(local n i64 () register)\n(setf (aref n) 0)\n(for i 0 N 1 serial (setf (aref Y (aref n)) 0.0) (incf (aref n) 1))"),
    ("(set a 0) (set b a) (set a 0.5) (setf (aref Y 0) b)",
     "(local a f32 () register)\n(setf (aref a) 0.0)\n(local b f32 () register)\n(setf (aref b) (aref a))\n(setf (aref a) 0.5)\n(setf (aref Y 0) (aref b))"),
    ("(set f (< N 3)) (when f (setf (aref Y 0) 1))",
     "(local f bool () register)\n(setf (aref f) (< N 3))\n(if (aref f) ((setf (aref Y 0) 1.0)))"),
    # a local of a loop is a new one in every iteration; the same name elsewhere is another local
    ("(dotimes (i N) (set a (aref X i)) (setf (aref Y i) a)) (set a 1) (setf (aref Y 0) a)",
     "(for i 0 N 1 serial (local a f32 () register) (setf (aref a) (aref X i)) (setf (aref Y i) (aref a)))\n"
     "(local a_2 i64 () register)\n(setf (aref a_2) 1)\n(setf (aref Y 0) (cast f32 (aref a_2)))"),
    # an inner list assigns what an outer one declared
    ("(set m-1 0) (dotimes (i N) (set M_1 (aref X i))) (setf (aref Y 0) m-1)",
     "(local m_1 f32 () register)\n(setf (aref m_1) 0.0)\n(for i 0 N 1 serial (setf (aref m_1) (aref X i)))\n(setf (aref Y 0) (aref m_1))"),
])
def test_locals(code: str, expected: str) -> None:
    assert ir(code) == expected


@pytest.mark.parametrize(("code", "expected"), [
    ("(let ((h 0.5) (b (* 2 N)) (c (aref X 0))) (setf (aref Y 0) (* h b c)))",
     "(let b i64 (* 2 N))\n(let c f32 (aref X 0))\n(setf (aref Y 0) (* (* 0.5 (cast f32 b)) c))"),
    ("(let ((c 0.0)) (dotimes (i N) (incf c (aref X i))) (setf (aref Y 0) c))",
     "(local c f32 () register)\n(setf (aref c) 0.0)\n(for i 0 N 1 serial (incf (aref c) (aref X i)))\n(setf (aref Y 0) (aref c))"),
    ("(let* ((a N) (b (+ a 1))) (setf (aref Y b) 0))", "(let a i64 N)\n(let b i64 (+ a 1))\n(setf (aref Y b) 0.0)"),
])
def test_lets(code: str, expected: str) -> None:
    assert ir(code) == expected


@pytest.mark.parametrize(("code", "expected"), [
    ("(array S float (4 2)) (setf (aref S 0 0) 1)",
     "(local S f32 (4 2) stack)\n(for S_0 0 4 1 serial (for S_1 0 2 1 serial (setf (aref S S_0 S_1) 0.0)))\n(setf (aref S 0 0) 1.0)"),
    ("(array S int8 (N)) (incf (aref S 0))",
     "(local S i8 (N) scratch)\n(for S_0 0 N 1 serial (setf (aref S S_0) 0:i8))\n(incf (aref S 0) 1:i8)"),
    ("(array S double (2049))", "(local S f64 (2049) scratch)\n(for S_0 0 2049 1 serial (setf (aref S S_0) 0.0:f64))"),
    ("(array S bool ()) (setf S t)", "(local S bool () register)\n(setf (aref S) false)\n(setf (aref S) true)"),
])
def test_local_arrays(code: str, expected: str) -> None:
    assert ir(code + "(setf (aref Y 0) 0)") == expected + "\n(setf (aref Y 0) 0.0)"


@pytest.mark.parametrize(("code", "expected"), [
    ("(setf s 0) (dotimes (i N) (incf S (aref X i)))", "(setf (aref s) 0.0)\n(for i 0 N 1 serial (incf (aref s) (aref X i)))"),
    ("(set s a)", "(setf (aref s) a)"), ("(setf (aref s) a)", "(setf (aref s) a)"), ("(return (* 2 a))", "(setf (aref s) (* 2.0 a))"),
])
def test_tensors_of_rank_0(code: str, expected: str) -> None:
    assert ir(code, "X{float}[N]; a{float}[]", "s{float}[]") == expected


def test_positions_are_those_of_the_text() -> None:
    found = lowered("(dotimes (i N)\n  (setf (aref Y i)\n        (aref X (aref J i))))\n", "X{float}[N]; J{int32}[N]")
    assert [(at.line, at.column, at.what) for at in found.positions] == [
        (1, 1, "i"), (2, 9, "(aref Y i)"), (3, 17, "(aref J i)"), (3, 9, "(aref X (cast i64 (aref J i)))")]

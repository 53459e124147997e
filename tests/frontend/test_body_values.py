"""Expressions of a body: text in, typed IR out."""
from __future__ import annotations

import pytest
from lowering import ir, value


@pytest.mark.parametrize(("expr", "expected"), [
    ("1", "1.0"), (".5", "0.5"), ("1.5e3", "1500.0"), ("1d0", "1.0"), ("pi", "3.141592653589793"), ("(- inf)", "-inf"), ("NaN", "nan"),
    ("s", "s"), ("S", "s"), ("(+ s)", "s"), ("(progn s)", "s"),
    ("(- s)", "(neg s)"), ("(/ s)", "(/ 1.0 s)"), ("(- 1 2 3)", "-4.0"), ("(- s 1 2)", "(- (- s 1.0) 2.0)"), ("(1+ s)", "(+ s 1.0)"),
    ("(max 0 s 1)", "(max (max 0.0 s) 1.0)"), ("(wmma s s 1)", "(fma s s 1.0)"), ("(clip s 0 1)", "(clip s 0.0 1.0)"), ("(pow s 2)", "(pow s 2.0)"),
    ("(SQRT 2)", "(sqrt 2.0)"), ("(sigmoid i)", "(sigmoid (cast f32 i))"), ("(atan2 s 1)", "(atan2 s 1.0)"), ("(abs (aref Z i))", "(abs (aref Z i))"),
    ("(where (< i 3) 1 0)", "(where (< i 3) 1.0 0.0)"), ("(where (< i 3) i s)", "(where (< i 3) (cast f32 i) s)"),
    ("(if (aref B i) 1 (aref x i))", "(where (aref B i) 1.0 (aref X i))"),
    ("(cond ((< i 1) 0) ((= i 1) s) (t 2))", "(where (< i 1) 0.0 (where (= i 1) s 2.0))"),
    ("(let ((x (* 2 i)) (y 0.5)) (* x y))", "(* (cast f32 (* 2 i)) 0.5)"), ("(let* ((x s) (y (* x x))) y)", "(* s s)"),
    ("(let ((s 1) (x s)) (+ s x))", "(+ 1.0 s)"),
    ("(cast float (aref J i))", "(cast f32 (aref J i))"), ("(bitcast float (aref J i))", "(bitcast f32 (aref J i))"),
])
def test_a_float_destination(expr: str, expected: str) -> None:
    assert value(expr) == expected


@pytest.mark.parametrize(("expr", "expected"), [
    ("i", "(cast f32 i)"), ("(* i 2)", "(cast f32 (* i 2))"),                 # computed exactly, converted once
    ("(* i 0.5)", "(* (cast f32 i) 0.5)"), ("(+ s i)", "(+ s (cast f32 i))"), ("(+ s (* 2 N))", "(+ s (cast f32 (* 2 N)))"),
    ("(/ i 2)", "(/ (cast f32 i) 2.0)"), ("(/ 1 3)", "(/ 1.0 3.0)"),          # among weak numbers, the destination decides
    ("(floordiv i 2)", "(cast f32 (floordiv i 2))"), ("(shl 1 3)", "(cast f32 (shl 1 3))"), ("(max 1 0)", "(max 1.0 0.0)"),
    ("(cast float (* i 2))", "(cast f32 (* i 2))"), ("(cast float (/ i 2))", "(/ (cast f32 i) 2.0)"), ("(cast float 1)", "1.0"),
])
def test_weak_numbers_take_the_type_they_meet(expr: str, expected: str) -> None:
    assert value(expr) == expected


@pytest.mark.parametrize(("out", "expr", "expected"), [
    ("int8", "1", "1:i8"), ("uint8", "(* 2 3 4)", "24:u8"), ("uint8", "(- N 1)", "(cast u8 (- N 1))"), ("int8", "(cast int8 300)", "(cast i8 300)"),
    ("int32", "(- (aref J i) 1)", "(- (aref J i) 1:i32)"), ("int32", "(mod i 3)", "(cast i32 (mod i 3))"), ("int32", "(lognot (aref J i))", "(not (aref J i))"),
    ("int32", "(logand (aref J i) #xFF)", "(and (aref J i) 255:i32)"), ("int32", "(* -0x10 #b101)", "-80:i32"), ("int32", "(xor k (aref J i))", "(xor k (aref J i))"),
    ("int32", "(bitcast int32 s)", "(bitcast i32 s)"), ("int32", "(bitcast int32 1.0)", "(bitcast i32 1.0)"),
    ("int", "(+ h i)", "(+ h i)"), ("int", "(cast int (* 0.5 i))", "(cast i64 (* 0.5 (cast f32 i)))"), ("int64", "(where (< i 3) i 0)", "(where (< i 3) i 0)"),
    ("uint64", "(cast uint64 18446744073709551615)", "18446744073709551615:u64"), ("uint64", "(cast uint64 -1)", "(cast u64 -1)"),
    ("double", "(/ 1 3)", "(/ 1.0:f64 3.0:f64)"), ("double", "(cast double s)", "(cast f64 s)"), ("double", "nan", "nan:f64"),
    ("complex64", "(* (aref Z i) 2)", "(* (aref Z i) 2+0j:c64)"), ("complex64", "(conj (aref Z i))", "(conj (aref Z i))"),
])
def test_other_destinations(out: str, expr: str, expected: str) -> None:
    assert value(expr, out=out) == expected


@pytest.mark.parametrize(("expr", "expected"), [
    ("t", "true"), ("nil", "false"), ("(< i 3)", "(< i 3)"), ("(< 0 i 5)", "(and (< 0 i) (< i 5))"), ("(/= 1 i N)", "(and (and (/= 1 i) (/= 1 N)) (/= i N))"),
    ("(>= s 0)", "(>= s 0.0)"), ("(= k i)", "(= k (cast i32 i))"), ("(< (* i 0.5) 3)", "(< (* (cast f32 i) 0.5) 3.0)"), ("(= t (aref B i))", "(= true (aref B i))"),
    ("(isnan (aref X i))", "(isnan (aref X i))"), ("(not (aref B i))", "(not (aref B i))"), ("(cast bool i)", "(cast bool i)"),
    ("(and (< i 3) (< 1 i))", "(and (< i 3) (< 1 i))"), ("(or (aref B i) (< i 3))", "(or (aref B i) (< i 3))"),
    ("(and (< i 3) (aref B i))", "(where (< i 3) (aref B i) false)"),         # the second one is read under the first alone
    ("(or (< i 3) (< 0 (aref X i)))", "(where (< i 3) true (< 0.0 (aref X i)))"),
])
def test_bools(expr: str, expected: str) -> None:
    assert value(expr, out="bool") == expected


@pytest.mark.parametrize(("expr", "expected"), [
    ("(aref X (+ i 1))", "(aref X (+ i 1))"), ("(aref X k)", "(aref X (cast i64 k))"), ("(aref X h)", "(aref X h)"),
    ("(aref X (aref J i))", "(aref X (cast i64 (aref J i)))"), ("(aref X (+ (aref J i) 1))", "(aref X (cast i64 (+ (aref J i) 1:i32)))"),
    ("(aref X (cast int (floor s)))", "(aref X (cast i64 (floor s)))"),
])
def test_indices_are_int64(expr: str, expected: str) -> None:
    assert value(expr) == expected


def test_the_only_float_type_of_a_signature_is_that_of_its_free_decimals() -> None:
    assert value("(where (< (* i 0.5) 1) 1 0)", "X{double}[N]", "int") == "(where (< (* (cast f64 i) 0.5:f64) 1.0:f64) 1 0)"
    assert value("(where (< (* i 0.5) 1) 1 0)", "X{int}[N]", "int") == "(where (< (* (cast f64 i) 0.5:f64) 1.0:f64) 1 0)"


@pytest.mark.parametrize(("inputs", "code", "expected"), [
    ("X{float}[M]", "(dotimes (i m) (setf (AREF y I) (Aref x i)))", "(for i 0 M 1 serial (setf (aref Y i) (aref X i)))"),
    ("X{float}[i]", "(dotimes (nth i) (setf (aref Y nth) (aref X nth)))", "(for nth 0 i 1 serial (setf (aref Y nth) (aref X nth)))"),
    ("X{float}[i]", "(dotimes (i i) (setf (aref Y i) i))", "(for i_2 0 i 1 serial (setf (aref Y i_2) (cast f32 i_2)))"),
    ("X{float}[N]", "(dotimes (n N) (setf (aref Y n) N))", "(for n 0 N 1 serial (setf (aref Y n) (cast f32 N)))"),
    ("X{float}[T]", "(dotimes (i T) (when (= i t) (cond ((< i 1) nil) (t (setf (aref Y i) 0)))))",
     "(for i 0 T 1 serial (if (= i T) ((if (< i 1) () ((setf (aref Y i) 0.0))))))"),
    ("x-size{int}[]", "(dotimes (k-1 X_SIZE) (setf (aref Y K_1) 0))", "(for k_1 0 x_size 1 serial (setf (aref Y k_1) 0.0))"),
    ("X{float}[N]", "(set y 1) (setf (aref Y 0) y)", "(local y i64 () register) (setf (aref y) 1) (setf (aref Y 0) (cast f32 (aref y)))"),
    ("X{float}[N]", "(dotimes (inf 3) (setf (aref Y inf) 0))", "(for inf_2 0 3 1 serial (setf (aref Y inf_2) 0.0))"),
])
def test_names(inputs: str, code: str, expected: str) -> None:
    assert ir(code, inputs, "Y{float}[4]").replace("\n", " ") == expected

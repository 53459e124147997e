"""`(call …)`: other composites, lowered in place."""
from __future__ import annotations

import pytest
from lowering import composite, ir, library, lowered, refusals

from caten.core.text import show

RELU = composite("(dotimes (i K) (setf (aref O i) (max (aref A i) 0)))", "A{float}[K]", "O{float}[K]", "Relu")
AXPY = composite("(dotimes (i N) (incf (aref O i) (* f (aref A i))))", "f{float}[]; A{float}[N]; O{float}[N]", "O", "Axpy")
DOT = composite("(setf s 0) (dotimes (i N) (incf s (* (aref A i) (aref B i)))) (return s)", "A{float}[N]; B{float}[N]", "s{float}[]", "Dot")
FIXED = composite("(dotimes (i 3) (setf (aref O i) (aref A i)))", "A{float}[3]", "O{float}[3]", "Fixed")
PAIRS = composite("(dotimes (i M) (setf (aref O i) (aref A i 0)))", "A{float}[M (* 2 M)]", "O{float}[M]", "Pairs")
COLUMN = composite("(setf (aref A 0 0) 0)", "A{float}[M N]<1 0>", "A", "Column")
LOST = composite("(setf (aref A 0) M)", "A{float}[(* M M)]", "A", "Lost")
HALF = composite("(setf (aref A 0) M)", "A{float}[(* 2 M)](where M > 0)", "A", "Half")
GIVEN = composite("(setf (aref A 0 0) M)", "A{float}[K (* 2 M)]", "A", "Given", where="M = (* 3 K)")
LARGE = composite("(setf (aref A 0) M)", "A{float}[M]", "A", "Large", where="10 < M")
TWICE = composite("(call Relu X Y) (call Relu X Y)", "X{float}[P]", "Y{float}[P]", "Twice")
LOOP = composite("(call Again X Y)", "X{float}[N]", "Y{float}[N]", "Again")
WRONG = composite("\n(setf (aref Y 0) zz)", "X{float}[N]", "Y{float}[N]", "Wrong")
LIB = library(RELU, AXPY, DOT, FIXED, PAIRS, COLUMN, LOST, HALF, GIVEN, LARGE, TWICE, LOOP, WRONG)


@pytest.mark.parametrize(("code", "expected"), [
    ("(call Relu X Y)", "(for i 0 N 1 serial (setf (aref Y i) (max (aref X i) 0.0)))"),
    ("(array T float (N)) (call relu X T) (dotimes (i N) (setf (aref Y i) (aref T i)))",
     "(local T f32 (N) scratch)\n(for T_0 0 N 1 serial (setf (aref T T_0) 0.0))\n(for i 0 N 1 serial (setf (aref T i) (max (aref X i) 0.0)))\n"
     "(for i_2 0 N 1 serial (setf (aref Y i_2) (aref T i_2)))"),
    ("(call Relu X Y) (call Axpy 2 X Y)",
     "(for i 0 N 1 serial (setf (aref Y i) (max (aref X i) 0.0)))\n(for i_2 0 N 1 serial (incf (aref Y i_2) (* 2.0 (aref X i_2))))"),
    ("(call Relu X Y) (call Axpy (aref X 0) X Y)",
     "(for i 0 N 1 serial (setf (aref Y i) (max (aref X i) 0.0)))\n(let f f32 (aref X 0))\n"
     "(for i_2 0 N 1 serial (incf (aref Y i_2) (* f (aref X i_2))))"),
    ("(set d 0) (call Dot X X d) (setf (aref Y 0) d)",
     "(local d f32 () register)\n(setf (aref d) 0.0)\n(setf (aref d) 0.0)\n"
     "(for i 0 N 1 serial (incf (aref d) (* (aref X i) (aref X i))))\n(setf (aref Y 0) (aref d))"),
    ("(call Twice X Y)", "(for i 0 N 1 serial (setf (aref Y i) (max (aref X i) 0.0)))\n(for i_2 0 N 1 serial (setf (aref Y i_2) (max (aref X i_2) 0.0)))"),
])
def test_inlined(code: str, expected: str) -> None:
    assert ir(code, lookup=LIB) == expected


@pytest.mark.parametrize(("code", "inputs", "outputs", "expected"), [
    ("(call Relu X Y)", "X{float}[N]", "Y{float}[N]", []),
    ("(call Relu X Y)", "X{float}[M]", "Y{float}[N]", ["(= M N)"]),
    ("(call Relu X Y)", "X{float}[M]", "Y{float}[4]", ["(= M 4)"]),
    ("(call Fixed X Y)", "X{float}[M]", "Y{float}[3]", ["(= 3 M)"]),
    ("(call Pairs X Y)", "X{float}[K N]", "Y{float}[K]", ["(= (* 2 K) N)"]),
    ("(call Given Y)", "Y{float}[N P]", "Y", ["(= (* 6 N) P)"]),
    ("(call Half Y)", "Y{float}[N]", "Y", ["(= (* 2 (floordiv N 2)) N)", "(> (floordiv N 2) 0)"]),
    ("(call Half Y)", "Y{float}[(* 6 N)]", "Y", ["(> (* 3 N) 0)"]),
])
def test_shapes_that_must_agree_are_requirements(code: str, inputs: str, outputs: str, expected: list[str]) -> None:
    assert [show(r) for r in lowered(code, inputs, outputs, LIB).requirements] == expected


@pytest.mark.parametrize(("code", "inputs", "expected"), [
    ("(call Nothing X Y)", "X{float}[N]", "E232 1:7 there is no composite 'Nothing' | include the file that defines it, or put Nothing.toml on the -I path"),
    ("(call Relu X)", "X{float}[N]", "E234 1:1 Relu takes 2 arguments, its inputs and then its other outputs, not 1 | write (call Relu A O)"),
    ("(call Relu (aref X 0) Y)", "X{float}[N]", "E234 1:12 the argument 'A' of Relu is a whole tensor, not an expression | name a tensor or a local array"),
    ("(call Relu 3 Y)", "X{float}[N]", "E234 1:12 the argument 'A' of Relu is a whole tensor, not an expression | name a tensor or a local array"),
    ("(call Relu N Y)", "X{float}[N]", "E234 1:12 the argument 'A' of Relu is a tensor, but 'N' is a number | name a tensor or a local array"),
    ("(call Relu Z Y)", "X{float}[N]", "E220 1:12 there is no 'Z' here | known here: X, Y, N; (set Z …) declares a local"),
    ("(call Relu X Y)", "X{double}[N]", "E314 1:12 the argument 'A' of Relu has the type float, but 'X' has double"),
    ("(call Relu X Y)", "X{float}[N 2]", "E314 1:12 the argument 'A' of Relu has the number of axes 1, but 'X' has 2"),
    ("(array T float (N N)) (call Column T)", "X{float}[N]", "E314 1:36 the argument 'A' of Column has the axis order <1 0>, but 'T' has <0 1>"),
    ("(set d t) (call Dot X X d)", "X{float}[N]", "E316 1:25 the local 'd' is bool, but this value is float | convert it: (cast bool …)"),
    ("(call Relu Y X)", "X{float}[N]", "E225 1:14 Relu writes 'O', but 'X' is an input and no output | list \"X\" among the outputs, or pass a local array"),
    ("(call Axpy 2 Y Y)", "X{float}[N]",
     "E241 1:16 'Y' is passed both as 'O', which Axpy writes, and as 'A' | pass a local array, (array T float (…)), and copy it"),
    ("(call Fixed X Y)", "X{float}[4]", "E315 1:13 'X' has 4 elements along an axis where 'A' of Fixed has 3"),
    ("(array T float (3 5)) (array R float (3)) (call Pairs T R)", "X{float}[N]",
     "E315 1:55 'T' has 5 elements along an axis where 'A' of Pairs has 6"),
    ("(array T float (3)) (call Large T)", "X{float}[N]", "E315 1:21 this call contradicts a condition of Large, (< 10 3)"),
    ("(call Lost Y)", "X{float}[N]",
     "E242 1:1 the size 'M' of Lost does not follow from the arguments of this call | declare a tensor of Lost with an axis that is 'M' alone"),
    ("(call Again X Y)", "X{float}[N]", "E233 1:7 Main calls Again calls Again: recursion is not possible | write a loop"),
    ("(call Wrong X Y)", "X{float}[N]", "E220 2:18 there is no 'zz' here | known here: X, Y, N; (set zz …) declares a local"),
    ("(call Axpy t X Y)", "X{float}[N]", "E310 1:12 the argument 'f' is float, but the value is bool | convert it: (cast float …)"),
])
def test_refusals_of_calls(code: str, inputs: str, expected: str) -> None:
    assert refusals(code, inputs, lookup=LIB)[0] == expected


def test_too_many_calls() -> None:
    members = [composite(f"(call C{n + 1} Y) (call C{n + 1} Y)", "Y{float}[N]", "Y", f"C{n}") for n in range(12)]
    leaf = composite("(setf (aref Y 0) 0)", "Y{float}[N]", "Y", "C12")
    assert refusals("(call C0 Y)", "Y{float}[N]", "Y", library(*members, leaf))[0].startswith("E239 1:14 more than 1000 composites are called")


def test_the_accesses_of_a_callee_in_another_file_are_those_of_the_call() -> None:
    assert {(at.line, at.column) for at in lowered("\n  (call Relu X Y)", lookup=LIB).positions} == {(2, 3)}

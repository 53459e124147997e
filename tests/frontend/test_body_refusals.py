"""What a body refuses: one test for each message, with its place and what to do."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from lowering import lowered, refusals

import caten.frontend
from caten.errors import CatenError

INPUTS = "X{float}[N]; A{float}[M N]; s{float}[]; J{int32}[N]; K{int8}[N]; B{bool}[N]; D{double}[N]; Z{complex64}[N]"

STATEMENTS = [
    ("(setf (aref Y 0) q)", "E220 1:18 there is no 'q' here | known here: X, A, s, J, K, B, D, Z, Y, N, …; (set q …) declares a local"),
    ("(set total 0) (setf (aref Y 0) totl)", "E220 1:32 there is no 'totl' here | did you mean 'total'?"),
    ("(setf q 1)", "E220 1:7 there is no 'q' here | (set q value) declares a local"),
    ("(dotimes (i N)\n (set v 1))\n(setf (aref Y 0) v)", "E220 3:18 there is no 'v' here: its scope is the inner statement list of line 2 | "
     "(set v …) before that statement"),
    ("(when (< 1 N) (set v 1)) (setf v 0)", "E220 1:32 there is no 'v' here: its scope is the inner statement list of line 1 | (set v value) declares a local"),
    ("(setf (aref Y 0) -inf)", "E220 1:18 there is no '-inf' here | (- inf) negates"),
    ("(dotimes (i N) (setf (aref Y i) -i))", "E220 1:33 there is no '-i' here | (- i) negates"),
    ("(setf (aref Y 0) _[)", "E220 1:18 there is no '_[' here | known here: X, A, s, J, K, B, D, Z, Y, N, …"),
    ("(setf (aref Y 0) X[0])", "E220 1:18 there is no 'X[0]' here | an element is (aref X i …)"),
    ("(setf (aref Y 0) #xFG)", "E223 1:18 '#xFG' is neither a name nor a number"),
    ("(setf (aref Y 0) 2.5f)", "E223 1:18 '2.5f' is neither a name nor a number | write 2.5: a number takes the type of what it meets"),
    ("(setf (aref Y 0) (s * 2))", "E221 1:18 there is no function or statement 's' | operators come first: (* s …)"),
    ("(setf (aref W 0) 1)", "E220 1:13 there is no 'W' here | known here: X, A, s, J, K, B, D, Z, Y, N, …; (set W …) declares a local"),
    ("(set-all Y 0)", "E221 1:1 there is no function or statement 'set-all' | did you mean 'set'?"),
    ("(for (i N) (setf (aref Y i) 0))", "E221 1:1 there is no function or statement 'for' | write (dotimes …)"),
    ("(setf (aref Y 0))", "E222 1:1 (setf …) takes at least 2 parts, not 1 | write (setf place value)"),
    ("(setf (aref Y 0) 1 2)", "E222 1:1 (setf …) takes pairs of a place and a value | write (setf place value)"),
    ("(mulcf (aref Y 0))", "E222 1:1 (mulcf …) takes 2 parts, not 1 | write (mulcf place value)"),
    ("(incf (aref Y 0) 1 2)", "E222 1:1 (incf …) takes 1 to 2 parts, not 3 | write (incf place value)"),
    ("(if (< 1 N) nil nil nil)", "E222 1:21 (if …) takes a condition, a statement and another one for when it does not hold | "
     "several statements are (progn …), or (when condition …)"),
    ("(set x)", "E222 1:1 (set …) takes 2 parts, not 1 | write (set x value)"),
    ("((setf (aref Y 0) 1))", "E223 1:1 expected (statement …) here | remove the extra parentheses; several statements are (progn …)"),
    ("()", "E223 1:1 expected (statement …) here | remove the extra parentheses; several statements are (progn …)"),
    ("(dotimes i N (setf (aref Y i) 0))", "E223 1:1 expected (i n) after dotimes | write (dotimes (i n) …)"),
    ("(loop for i from 0 to N)", "E223 1:1 expected (i from to by) after loop | write (loop (i from to by) …)"),
    ("(dotimes (1 N) nil)", "E236 1:11 '1' cannot be a name | a name has ASCII letters, digits, _ and -, and does not start with a digit"),
    ("(set \u0430 1)", "E236 1:6 '\\u0430' cannot be a name | a name has ASCII letters, digits, _ and -, and does not start with a digit"),
    ("(dotimes ((i) N) nil)", "E223 1:11 expected a name here | write a loop as (dotimes (i n) …)"),
    ("(set (aref Y 0) 1)", "E223 1:6 (set …) takes the name of a local | (setf place value) stores into a tensor"),
    ("(setf (+ 1 2) 1)", "E223 1:7 expected a place here, (aref C i …) or the name of a local | write (setf (aref C i …) value)"),
    ("(let (x 1) nil)", "E223 1:7 expected (name value) here | write (let ((x e) …) …)"),
    ("(let x 1)", "E223 1:6 expected a list of bindings here | write (let ((x e) …) …)"),
    ("(let ((x 1) (X 2)) nil)", "E237 1:13 'X' is bound twice in one (let …) | (let* …) binds one after the other"),
    ("(cond t)", "E223 1:7 expected a clause of (cond …) here | write (condition …)"),
    ("(array T (N) float)", "E223 1:1 expected a type and a list of extents | write (array S float (T))"),
    ("(+ 1 2)", "E224 1:1 the value of (+ …) is not used | store it, (setf place value), or name it, (set x value)"),
    ("X", "E224 1:1 expected a statement here | a statement is (setf …), (dotimes …), …"),
    ("(setf (aref X 0) 1)", "E225 1:7 'X' is an input and no output: it cannot be changed | list \"X\" among the outputs"),
    ("(incf s)", "E225 1:7 's' is an input and no output: it cannot be changed | list \"s\" among the outputs"),
    ("(set X 1)", "E225 1:6 'X' is a tensor: (set …) takes the name of a local | (setf (aref X …) value), or another name"),
    ("(dotimes (i N) (incf i))", "E226 1:22 'i' is a loop variable and cannot be assigned | take a local instead: (set x i)"),
    ("(dotimes (i N) (set i 1))", "E226 1:21 'i' is a loop variable and cannot be assigned | take another name for the local"),
    ("(incf N)", "E226 1:7 'N' is a size and cannot be assigned | take a local instead: (set x N)"),
    ("(setf pi 3)", "E226 1:7 'pi' is a constant and cannot be assigned"),
    ("(dotimes (i N) (setf (aref Y i) 0) (return Y))", "E229 1:36 (return …) may only stand at the end of a body | "
     "every output that is set is returned; leave it out"),
    ("(setf (aref Y 0) 0) (return Y Y)", "E229 1:21 2 values are returned for 1 output | write (return Y), or leave it out"),
    ("(setf (aref Y 0) 0) (return A)", "E229 1:29 the returned value is not the output 'Y' | set its elements, then write (return Y) or leave it out"),
    ("(return (+ X X))", "E235 1:9 the returned value is not the output 'Y' | "
     "set its elements, then write (return Y) or leave it out"),
    ("", "E230 1:1 the body is empty | write what the operator does: (dotimes (i M) (setf (aref C i) …))"),
    ("(dotimes (i N))", "E230 1:1 this loop has no statements | write (dotimes (i n) …)"),
    ("(loop (i 0 N 0) (setf (aref Y i) 0))", "E231 1:14 the step of this loop is 0 | a negative step counts down"),
    ("(setf Y (+ X 1))", "E235 1:7 'Y' is a whole tensor, where one number can be assigned | "
     "write its elements: (setf (aref Y i) …)"),
    ("(while (< 1 2) (setf (aref Y 0) 1))", "E240 1:1 there is no 'while': every loop runs a number of times that is known when it starts | "
     "loop a fixed number of times and choose with (where …)"),
    ("(set x 1) (divcf x 2)", "E303 1:11 (divcf …) on 'x' divides floats, but it is int64 | (setf place (floordiv place x)) rounds down"),
    ("(set b t) (incf b b)", "E304 1:11 (incf …) is not defined on bool"),
    ("(when s nil)", "E305 1:7 the condition of (when …) is a float, not a bool | compare it: (/= x 0)"),
    ("(dotimes (i s) nil)", "E306 1:13 the number of iterations is a float, not an integer | (floordiv a b) divides integers; (cast int x) converts"),
    ("(loop (i 0 N 0.5) nil)", "E306 1:14 the step of the loop is a decimal number, not an integer | (floordiv a b) divides integers; (cast int x) converts"),
    ("(setf (aref Y 0) (aref D 0))", "E310 1:18 'Y' is float, but the value is double | convert it: (cast float …)"),
    ("(setf (aref Y 0) 0) (incf (aref Y 0) (aref D 0))", "E310 1:38 (incf …) on 'Y' is float, but the value is double | convert it: (cast float …)"),
    ("(array T float (s))", "E306 1:17 this extent is a float, not an integer | (floordiv a b) divides integers; (cast int x) converts"),
    ("(dotimes (i N) (array T float (i)))", "E313 1:32 an extent of a local array may only use sizes and numbers | declare it as large as it can become"),
    ("(array T double (1099511627776 9))", "E313 1:17 the local array 'T' takes more than 2^46 bytes"),
    ("(array T float (1099511627776 1099511627776))", "E313 1:16 the local array 'T' takes more than 2^46 bytes"),
    ("(array T float (1099511627776 64 N))", "E313 1:16 the local array 'T' takes more than 2^46 bytes"),
    ("(array T float (-1))", "E313 1:17 an extent of -1 is not between 0 and 2^40"),
    ("(array T sparse (N))", "E309 1:10 'sparse': Sparse tensors are not supported yet"),
    ("(set a 1) (set a (< 1 2))", "E316 1:18 the local 'a' is int, but this value is bool | convert it: (cast int …)"),
    ("(set a (aref J 0)) (incf a 0.5)", "E302 1:28 the local 'a': a decimal number cannot become an int32 | "
     "convert the integer, (cast float …), or round the decimal, (cast int32 …)"),
]

VALUES = [
    ("(sine s)", "E221 1:33 there is no function or statement 'sine' | did you mean 'sin'?"),
    ("(** s 2)", "E221 1:33 there is no function or statement '**' | write (pow …)"),
    ("(sqrt s s)", "E222 1:33 (sqrt …) takes 1 part, not 2 | write (sqrt a)"),
    ("(< 1)", "E222 1:33 (< …) takes 2 to 100 parts, not 1 | write (< a b)"),
    ("(if (< i 3) 1)", "E222 1:33 (if …) takes 3 parts, not 2 | write (if condition a b)"),
    ("(cond ((< i 3) 1))", "E222 1:33 this (cond …) has no value when no clause holds | end it with (t value)"),
    ("(cond ((< i 3)) (t 1))", "E222 1:39 as a value, a clause of (cond …) has a condition and one value | write (condition value)"),
    ("((+ 1 2))", "E223 1:33 expected (function operand …) here | remove the extra parentheses"),
    ('"1"', "E223 1:33 a string has no meaning in a body"),
    ("1.2.3", "E223 1:33 '1.2.3' is neither a name nor a number"),
    ("'x", "E223 1:33 \"'x\" is neither a name nor a number"),
    ("(aref (X) i)", "E223 1:39 expected the name of a tensor here | write (aref A i …)"),
    ("(cast s float)", "E223 1:33 the type comes first in (cast …) | write (cast float …)"),
    ("(setf s 1)", "E224 1:33 (setf …) is a statement, not a value"),
    ("(+ X 1)", "E235 1:36 'X' is a whole tensor, where a number is needed | read one element of it: (aref X i)"),
    ("(+ s (aref D i))", "E301 1:38 (+ …) has operands of different types, float and double | convert one of them: (cast float …)"),
    ("(+ 1 (aref B i))", "E301 1:38 (+ …) has a number where a bool is expected | compare it, (/= x 0), or write t or nil"),
    ("(* 0.5 (aref J i))", "E302 1:40 (* …): a decimal number cannot become an int32 | "
     "convert the integer, (cast float …), or round the decimal, (cast int32 …)"),
    ("(/ (aref J i) 2)", "E303 1:33 / divides floats, but its operands are int32 | "
     "(floordiv a b) rounds down; (/ (cast float a) (cast float b)) keeps the fraction"),
    ("(sqrt (aref J i))", "E304 1:33 (sqrt …) is not defined on int32 | convert it first: (cast float x)"),
    ("(shl 0.5 1)", "E304 1:33 (shl …) is not defined on decimal numbers"),
    ("(max (aref Z i) 1)", "E304 1:33 (max …) is not defined on complex64 | convert it first: (cast int x)"),
    ("(where i 1 0)", "E305 1:40 the condition of (where …) is an integer, not a bool | compare it: (/= x 0)"),
    ("(aref X s)", "E306 1:41 this index of 'X' is a float, not an integer | (floordiv a b) divides integers; (cast int x) converts"),
    ("(aref A i)", "E307 1:33 'A' has 2 axes, [M N], but 1 index is given | write one index for each axis, separated by spaces: (aref A i j)"),
    ("(aref X i i)", "E307 1:33 'X' has 1 axis, [N], but 2 indices are given | write one index for each axis, separated by spaces: (aref X i)"),
    ("(cast float (+ (aref K i) 300))", "E308 1:59 300 is beyond the range of int8, -128 to 127 | use a wider type, or cast it explicitly"),
    ("1e39", "E308 1:33 1e+39 is beyond the range of float | write inf for infinity, or use double"),
    ("1e999", "E308 1:33 1e999 is beyond the range of double | write inf for infinity"),
    ("9" * 500, "E308 1:33 this number has 500 digits"),
    ("9" * 300, "E308 1:33 this number (about 2^997) is beyond the range of float | write inf for infinity, or use double"),
    ("(cast uint32 18446744073709551615)", "E308 1:46 18446744073709551615 is beyond the range of uint32, 0 to 4294967295 | use a wider type, or cast it explicitly"),
    ("(cast int64 18446744073709551615)",
     "E308 1:45 18446744073709551615 is beyond the range of int64, -9223372036854775808 to 9223372036854775807 | use a wider type, or cast it explicitly"),
    ("(cast flaot s)", "E309 1:39 'flaot' is not an element type | did you mean 'float'?"),
    ("(aref s i)", "E311 1:39 's' is a number, not a tensor | read it by its name alone: s"),
    ("(cast float (bitcast int64 s))", "E312 1:45 (bitcast …) cannot read the bits of float as int64 | "
     "both need the same size, and neither may be bool; (cast …) converts by value"),
]


@pytest.mark.parametrize(("code", "expected"), STATEMENTS)
def test_statements(code: str, expected: str) -> None:
    assert refusals(code, INPUTS)[0] == expected


@pytest.mark.parametrize(("expr", "expected"), VALUES)
def test_values(expr: str, expected: str) -> None:
    assert refusals(f"(dotimes (i N) (setf (aref Y i) {expr}))", INPUTS)[0] == expected


@pytest.mark.parametrize(("code", "expected"), [
    ("(dotimes (i N) (incf (aref Y i)))", "E227 1:22 this (incf …) reads the output 'Y', which is no input, before anything sets it | "
     "(setf (aref Y i) 0) first, or list it among the inputs too if it comes from the caller"),
    ("(set x (aref Y 0))", "E227 1:8 this reads the output 'Y', which is no input, before anything sets it | "
     "(setf (aref Y i) 0) first, or list it among the inputs too if it comes from the caller"),
    ("(set x 1)", "E228 1:1 the output 'Y' is never written | write its elements with (setf …), or take it off the outputs"),
])
def test_outputs(code: str, expected: str) -> None:
    assert refusals(code, INPUTS) == [expected]


def test_an_output_that_is_an_input_is_written_too() -> None:
    assert refusals("(set x 1)", "Y{float}[N]", "Y")[0].startswith("E228 ")


def test_every_statement_is_read_whatever_the_others_are() -> None:
    found = refusals("(setf (aref X 0) 1)\n(set a q)\n(setf (aref Y 0) a)\n(when s (setf (aref Y 0) r))\n(dotimes (i N) (incf i) (foo))\n(array T sparse (N))\n"
                     "(setf (aref T 0) 1)", INPUTS)
    assert [line.split(" ", 2)[:2] for line in found] == [
        ["E225", "1:7"], ["E220", "2:8"], ["E305", "4:7"], ["E220", "4:26"], ["E226", "5:22"], ["E221", "5:25"], ["E309", "6:10"]]


@pytest.mark.parametrize(("code", "message"), [
    ("(setf (aref Y " + "(mod " * 101 + "N" + " 7)" * 101 + ") s)", "this expression nests deeper than 100 operators"),
    ("(setf (aref Y 0) " + "(where (< (aref X 0) s) (sqrt " * 51 + "(aref X 1)" + ") s)" * 51 + ")", "this expression nests deeper than 100 operators"),
    ("(setf (aref Y 0) (let* ((x1 N) " + " ".join(f"(x{n + 1} (* x{n} x{n}))" for n in range(1, 40)) + ") x40))",
     "this expression has more than 20000 operators"),
    ("(when (< 1 N) " * 65 + "(setf (aref Y 0) 0)" + ")" * 65, "statements are nested deeper than 64"),
    ("(progn " * 200 + "(setf (aref Y 0) 0)" + ")" * 200, "parentheses are nested deeper than 160"),
])
def test_limits(code: str, message: str) -> None:
    assert refusals(code, INPUTS)[0].split(" ", 2)[2].startswith(message)


@pytest.mark.parametrize("code", ["(dotimes (i N) " * 62 + "(setf (aref Y 0) s)" + ")" * 62, "(setf (aref Y 0) " + "(- " * 98 + "s" + ")" * 99])
def test_within_the_limits(code: str) -> None:
    assert lowered(code, INPUTS).stmts


def test_types_that_depend_on_each_other_in_a_chain() -> None:
    code = " ".join(f"(set x{k} 0)" for k in range(100)) + "(dotimes (i N)" + " ".join(f"(set x{k} x{k - 1})" for k in range(99, 0, -1)) + "(set x0 s))"
    assert refusals(code, INPUTS) == [
        "E317 1:1 the types of the locals depend on each other in too long a chain | cast some of them explicitly"]


def test_every_code_has_a_page_and_a_test() -> None:
    folder = Path(caten.frontend.__file__).parent
    raised = {code for path in folder.rglob("*.py") for code in re.findall(r'"(E2[2-9]\d|E3\d\d|E82\d)"', path.read_text())}
    pages = {path.stem for path in (folder.parent / "explanations").glob("E*.md")}
    here = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    assert not raised - pages
    assert not {code for code in raised if code not in here}
    assert {p for p in pages if re.match(r"E2[2-9]|E3|E82", p)} == raised


def test_a_refusal_is_a_caten_error_with_every_diagnostic() -> None:
    with pytest.raises(CatenError) as problem:
        lowered("(foo) (bar)", INPUTS)
    assert len(problem.value.diagnostics) == 2

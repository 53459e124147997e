"""What `(return …)` does: values go to the outputs by position."""
from __future__ import annotations

import pytest
from lowering import composite, ir, library, lowered, refusals


@pytest.mark.parametrize(("code", "expected"), [
    ("(return X)", "(for Y_0 0 N 1 serial (setf (aref Y Y_0) (aref X Y_0)))"),
    ("(array T float (3)) (return T)", "(for Y_0 0 N 1 serial (setf (aref Y Y_0) (aref T Y_0)))"),
    ("(setf (aref Y 0) 1) (return Y)", "(setf (aref Y 0) 1.0)"),
    ("(setf (aref Y 0) 1) Y", "(setf (aref Y 0) 1.0)"),
])
def test_a_returned_array_is_copied_to_the_output(code: str, expected: str) -> None:
    assert ir(code).splitlines()[-1] == expected


def test_shapes_that_may_differ_become_a_condition() -> None:
    assert [repr(c) for c in lowered("(return X)", "X{float}[M]", "Y{float}[N]").requirements] == ["(= N M)"]


def test_all_values_are_computed_before_any_is_stored() -> None:
    assert ir("(return b a)", "a{float}[]; b{float}[]", "a; b").splitlines() == [
        "(let a_2 f32 (aref b))", "(let b_2 f32 (aref a))", "(setf (aref a) a_2)", "(setf (aref b) b_2)"]


def test_a_called_body_returns_to_the_arguments_of_the_call() -> None:
    twice = composite("(return (* 2 x))", "x{float}[]", "y{float}[]", "Twice")
    assert "(setf (aref z) (* 2.0 x_2))" in ir("(call Twice x z)", "x{float}[]", "z{float}[]", library(twice))


@pytest.mark.parametrize(("code", "expected"), [
    ("(return A)", "E229 1:9 the returned value is not the output 'Y'"),
    ("(return 1)", "E229 1:9 the returned value is not the output 'Y'"),
    ("(return I)", "E310 1:9 the output 'Y' is float, but the value is int64"),
])
def test_what_an_output_cannot_take_is_refused(code: str, expected: str) -> None:
    assert refusals(code, "A{float}[M N]; I{int}[N]")[0].startswith(expected)


def test_outputs_that_change_places_are_refused() -> None:
    assert refusals("(return B A)", "A{float}[N]; B{float}[N]", "A; B")[0].startswith("E229")


def test_shapes_that_differ_always_are_refused() -> None:
    assert refusals("(return X)", "X{float}[3]", "Y{float}[4]")[0].startswith("E315 1:9 the output 'Y' has 4 elements along an axis where 'X' has 3")

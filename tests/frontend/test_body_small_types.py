"""What bodies say about 16-bit floats and integers of 4 bits: conversions around arithmetic, sums in float32, refusals."""
from __future__ import annotations

import pytest

from caten.core.program import Program
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend import spec
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options

SIGNATURE = "((A{half}[M K], B{bf16}[K], q{int4}[K], n{uint4}[], I{int}[M], C{half}[M K], s{half}[], y{half}[M]) -> (C, s, y))"

WRITTEN = "(setf (aref C 0 0) (aref C 0 0)) (setf s s) (setf (aref y 0) (aref y 0))"          # every output is


def op(body: str) -> Program:
    text = f"(composite Main {SIGNATURE} {body} {WRITTEN})"
    return spec.load(SpecText("small.lisp", text, "lisp"), Options())[0]


def lines(body: str) -> list[str]:
    program = op(body)
    assert isinstance(program, OpProgram)
    return [line.strip() for s in program.body[:-3] for line in show(s, 1 << 20).splitlines()]


def text(body: str) -> str:
    return " ".join(lines(body))


def refused(body: str) -> str:
    with pytest.raises(CatenError) as problem:
        op(body)
    return f"{problem.value.diagnostics[0].code} {problem.value.diagnostics[0].message}"


X, Y = "(aref A 0 0)", "(aref C 0 0)"


@pytest.mark.parametrize(("value", "expected"), [
    (f"(+ {X} {X})", "(cast f16 (+ (cast f32 (aref A 0 0)) (cast f32 (aref A 0 0))))"),
    (f"(* 0.1 {X})", "(cast f16 (* 0.0999755859375 (cast f32 (aref A 0 0))))"),                 # the literal is rounded, too
    (f"(exp (* {X} {X}))", "(cast f16 (exp (cast f32 (cast f16 (* (cast f32 (aref A 0 0)) (cast f32 (aref A 0 0)))))))"),
    (f"(where (< {X} 1) {X} 0)", "(where (< (cast f32 (aref A 0 0)) 1.0) (aref A 0 0) 0.0:f16)"),
    ("(cast half (aref B 0))", "(cast f16 (aref B 0))"),
    ("0.1", "0.1:f16"),
    ("(cast half (aref q 0))", "(cast f16 (aref q 0))"),
])
def test_values(value: str, expected: str) -> None:
    assert text(f"(setf {Y} {value})") == f"(setf (aref C 0 0) {expected})"


def test_a_sum_is_a_float32_until_its_loop_ends() -> None:
    assert lines("(dotimes (i M) (dotimes (j K) (incf (aref y i) (* (aref A i j) (aref A i j)))))") == [
        "(for i 0 M 1 serial", "(local y_wide f32 () register)", "(setf (aref y_wide) (cast f32 (aref y i)))", "(for j 0 K 1 serial",
        "(incf (aref y_wide) (* (cast f32 (aref A i j)) (cast f32 (aref A i j)))))", "(setf (aref y i) (cast f16 (aref y_wide))))"]


def test_what_moves_inside_of_the_loop_has_a_float32_for_each_place() -> None:
    found = text("(dotimes (p 3) (dotimes (i M) (incf (aref y i) (aref A i 0))))")
    assert "(local y_wide f32 (M) scratch)" in found
    assert "(incf (aref y_wide i) (cast f32 (aref A i 0)))" in found
    assert "(setf (aref y y_0_2) (cast f16 (aref y_wide y_0_2)))" in found


@pytest.mark.parametrize("body", [
    "(dotimes (i M) (incf (aref y i) 1))",                                                       # every place once
    "(dotimes (i M) (incf (aref y (aref I i)) 1))",                                              # a place that the loop moves
    "(dotimes (i M) (incf (aref y 0) (aref A i 0)) (setf (aref C i 0) (aref y 0)))",             # the array is read, too
    "(dotimes (i M) (when (< (+ i 1) M) (incf (aref y 3) 1)))",                                  # a place that may not exist
])
def test_everything_else_is_rounded_at_each_step(body: str) -> None:
    assert "_wide" not in text(body)
    assert "(cast f16 (+ (cast f32 (aref y" in text(body)


def test_a_place_of_an_index_is_taken_only_where_the_loop_runs() -> None:
    assert "(if (< 0 K) ((local y_wide f32 () register) (setf (aref y_wide) (cast f32 (aref y (aref I i))))" in text(
        "(dotimes (i M) (dotimes (j K) (incf (aref y (aref I i)) 1)))").replace("( (", "((")


def test_a_local_is_summed_in_float32_too() -> None:
    found = text("(set t0 (cast half 0)) (dotimes (i M) (incf t0 (aref A i 0))) (setf s t0)")
    assert "(incf (aref t0_wide) (cast f32 (aref A i 0)))" in found


@pytest.mark.parametrize(("body", "expected"), [
    ("(setf s (+ (aref A 0 0) (aref B 0)))", "E301 (+ …) has operands of different types, half and bfloat16"),
    ("(setf s 65520)", "E308 65520 is beyond the range of half"),
    ("(setf s (cast half (* (aref q 0) 2)))", "E304 (* …) is not defined on int4, which is for storage"),
    ("(setf s (cast half (where (< n 3) 1 2)))", "E304 (< …) is not defined on uint4, which is for storage"),
    ("(setf s (aref q 0))", "E310 's' is half, but the value is int4"),
])
def test_refusals(body: str, expected: str) -> None:
    assert refused(body) == expected

"""The reference meaning of statements: loop text in, arrays out."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.core.program import Program, resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.semantics.interpret import run


def program(clauses: str, kind: str = "loop") -> Program:
    text = f"({kind} T {clauses})"
    result = resolve(read(text)[0])
    assert isinstance(result, Program)
    return result


GEMM = """(size M) (size K) (size N) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)
  (BODY (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j)))))))"""


@pytest.mark.parametrize(("kind", "body"), [("op", "body"), ("loop", "kernel T")])
def test_gemm_at_both_levels(kind: str, body: str) -> None:
    gemm = program(GEMM.replace("BODY", body), kind)
    assert kind == "loop" or isinstance(gemm, OpProgram)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (3, 5)).astype(np.float32), rng.integers(-4, 5, (5, 4)).astype(np.float32)
    c = np.ones((3, 4), np.float32)
    assert run(gemm, {"M": 3, "K": 5, "N": 4, "A": a, "B": b, "C": c}) == 0
    assert np.array_equal(c, 1 + a @ b)


def one(body: str, dtype: str = "f32", **more: Any) -> Any:
    """Run statements that set the five elements of Y."""
    y = np.zeros(5, {"f32": np.float32, "i8": np.int8, "i64": np.int64, "bool": np.bool_, "f64": np.float64}[dtype])
    x = np.arange(1, 6).astype(y.dtype)
    p = program(f"(buffer X {dtype} (5) (0) in) (buffer Y {dtype} (5) (0) inout) (kernel T {body})")
    order = more.pop("order", "forward")
    assert run(p, {"X": x, "Y": y}, order) == 0
    return y


def test_floats_round_in_their_own_type() -> None:
    y = one("(for i 0 5 1 serial (setf (aref Y i) (+ 16777216.0 1.0)))")
    assert y[0] == 16777216.0


def test_integers_wrap() -> None:
    assert list(one("(for i 0 5 1 serial (setf (aref Y i) (* (aref X i) 100:i8)))", "i8")) == [100, -56, 44, -112, -12]


def test_a_block_is_transposed() -> None:
    p = program("""(buffer X f32 (5 3 7) (0 1 2) in) (buffer Y f32 (8 6) (1 0) inout)
      (kernel T (transpose (vref Y 4 (1 2) 0) 1 (vref X 2 (1 1 3)) 0))""")
    x, y = np.arange(105, dtype=np.float32).reshape(5, 3, 7), np.zeros((8, 6), np.float32)
    assert run(p, {"X": x, "Y": y}) == 0
    expected = np.zeros_like(y)
    expected[1:5, 2:4] = x[1:5, 1, 3:5]
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("at", ["(5 0)", "(-1 0)", "(0 3)"])
def test_a_block_outside_its_array_is_an_error(at: str) -> None:
    p = program(f"(buffer X f32 (8 4) (0 1) in) (buffer Y f32 (2 4) (0 1) inout) (kernel T (transpose (vref Y 4 (0 0)) 0 (vref X 2 {at}) 0))")
    with pytest.raises(CatenError) as caught:
        run(p, {"X": np.zeros((8, 4), np.float32), "Y": np.zeros((2, 4), np.float32)})
    assert caught.value.diagnostics[0].code == "E485"


def test_loops_count_down_and_skip() -> None:
    assert list(one("(for i 4 0 -2 serial (setf (aref Y i) 7.0)) (for i2 3 3 1 serial (setf (aref Y 0) 9.0))")) == [0, 0, 7, 0, 7]


def test_let_local_and_combining_stores() -> None:
    y = one("(local s f32 () register) (setf (aref s) 0.0) (for i 0 5 1 serial (let x f32 (aref X i)) (incf (aref s) x) (incf (aref Y i) x max))"
            "(incf (aref Y 0) (aref s))")
    assert list(y) == [16, 2, 3, 4, 5]


def test_an_uninitialised_local_shows() -> None:
    assert np.isnan(one("(local s f32 (2) stack) (setf (aref Y 0) (aref s 1))")[0])
    assert one("(local s i8 (2) stack) (setf (aref Y 0) (aref s 1))", "i8")[0] == 127
    assert np.isnan(one("(for i 0 2 1 serial (local s f32 () stack) (if (= i 0) ((setf (aref s) 1.0))) (setf (aref Y i) (aref s)))")[1])


def test_arms_of_where_and_if_are_lazy() -> None:
    y = one("(for i 0 5 1 serial (setf (aref Y i) (where (< i 4) (aref X (+ i 1)) 0.0)) (if (< 4 i) ((setf (aref Y i) (aref X 9))) ()))")
    assert list(y) == [2, 3, 4, 5, 0]


def test_gather() -> None:
    y = one("(for i 0 5 1 serial (setf (aref Y i) (aref X (- 5 (cast i64 (aref X i))))))")
    assert list(y) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(("access", "index"), [("(aref X 5)", r"\(5,\)"), ("(aref X -1)", r"\(-1,\)"), ("(fold add (vref X 2 (4)))", r"\(4,\)"),
                                               ("(fold add (vref X 2 (-1)))", r"\(-1,\)"),
                                               ("(fold add (vref X 4 (3) -1 (< (ramp 4 3 1) (splat 4 6))))", r"\(3,\)"),
                                               ("(fold add (vref X 4 (2) -1 (< (ramp 4 3 -1) (splat 4 2))))", r"\(2,\)")])
def test_an_access_outside_is_an_error_that_names_it(access: str, index: str) -> None:
    with pytest.raises(CatenError, match=rf"E485: the access \(.ref X .*\) is outside its array: index {index}, shape \(5,\)"):
        one(f"(setf (aref Y 0) {access})")


def test_writing_outside_is_an_error() -> None:
    with pytest.raises(CatenError, match="E485: the access \\(aref Y -1\\)"):
        one("(setf (aref Y -1) 0.0)")


def test_a_step_of_zero_is_an_error() -> None:
    with pytest.raises(CatenError, match="E485: the loop over i has a step of 0"):
        one("(for i 0 3 0 serial (setf (aref Y i) 0.0))")


def test_vectors() -> None:
    assert list(one("(setf (vref Y 4 (0)) (+ (vref X 4 (1)) (splat 4 10.0)))")) == [12, 13, 14, 15, 0]
    assert list(one("(setf (vref Y 4 (1)) (shuffle (vref X 4 (0)) 3 2 1 0))")) == [0, 4, 3, 2, 1]
    assert list(one("(setf (vref Y 4 (0)) (cast f32 (ramp 4 3 -1)))")) == [3, 2, 1, 0, 0]
    assert list(one("(incf (vref Y 4 (0)) (where (< (ramp 4 0 1) (splat 4 2)) (vref X 4 (0)) (splat 4 -1.0)))")) == [1, 2, -1, -1, 0]


def test_masked_lanes_are_neither_read_nor_written() -> None:
    y = one("(setf (vref Y 4 (3) -1 (< (ramp 4 3 1) (splat 4 5))) (+ (vref X 4 (3) -1 (< (ramp 4 3 1) (splat 4 5))) (splat 4 1.0)))")
    assert list(y) == [0, 0, 0, 5, 6]
    assert one("(setf (aref Y 0) (fold add (vref X 4 (3) -1 (< (ramp 4 3 1) (splat 4 5)))))")[0] == 9
    assert list(one("(setf (vref Y 4 (9) -1 (< (ramp 4 9 1) (splat 4 5))) (splat 4 1.0))")) == [0] * 5


def test_a_mask_may_leave_out_any_lanes() -> None:
    last = "(< (ramp 4 3 -1) (splat 4 2))"
    assert list(one(f"(setf (vref Y 4 (0) -1 {last}) (vref X 4 (1)))")) == [0, 0, 4, 5, 0]
    assert one(f"(setf (aref Y 0) (fold add (vref X 4 (-2) -1 {last})))")[0] == 3


def test_a_vector_may_overlap_the_one_it_is_stored_to() -> None:
    assert list(one("(for i 0 5 1 serial (setf (aref Y i) (aref X i))) (setf (vref Y 4 (1)) (vref Y 4 (0)))")) == [1, 1, 2, 3, 4]


def test_a_vector_along_the_first_axis() -> None:
    p = program("(buffer X f32 (4 2) (0 1) in) (buffer Y f32 (4) (0) out) (kernel T (setf (vref Y 4 (0)) (vref X 4 (0 1) 0)))")
    y = np.zeros(4, np.float32)
    run(p, {"X": np.arange(8, dtype=np.float32).reshape(4, 2), "Y": y})
    assert list(y) == [1, 3, 5, 7]


def test_fold_combines_halves() -> None:
    x = np.array([1e8, 1, -1e8, 1], np.float32)               # (x0 + x2) + (x1 + x3) = 2; from left to right it would be 1
    p = program("(buffer X f32 (4) (0) in) (buffer Y f32 () () out) (kernel T (setf (aref Y) (fold add (vref X 4 (0)))))")
    y = np.zeros((), np.float32)
    run(p, {"X": x, "Y": y})
    assert y == 2


def test_parallel_loops_may_run_backwards() -> None:
    body = "(for i 0 5 1 parallel (setf (aref Y 0) (aref X i)))"
    assert one(body)[0] == 5
    assert one(body, order="reverse")[0] == 1
    assert one(body.replace("parallel", "serial"), order="reverse")[0] == 5


def test_failures_and_checks() -> None:
    p = program("(size M) (buffer Y f32 (M) (0) out) (ensure 1 (< M 4))"
                "(kernel T (for i 0 M 1 serial (if (= i 2) ((fail 2))) (setf (aref Y i) 1.0)))")
    y = np.zeros(3, np.float32)
    assert run(p, {"M": 3, "Y": y}) == 2
    assert list(y) == [1, 1, 0]
    assert run(p, {"M": 4, "Y": np.zeros(4, np.float32)}) == 1
    assert run(p, {"M": 0, "Y": np.zeros(0, np.float32)}) == 0


def test_global_locals_stand_between_kernels() -> None:
    p = program("(buffer Y f32 () () out) (local t f32 (2) global) (kernel a (setf (aref t 1) 3.0)) (kernel b (setf (aref Y) (aref t 1)))")
    y = np.zeros((), np.float32)
    assert run(p, {"Y": y}) == 0
    assert y == 3


def test_scalars_conversions_and_bits() -> None:
    p = program("""(scalar a f32) (scalar n i8) (buffer Y i32 (4) (0) out)
      (kernel T (setf (aref Y 0) (cast i32 a)) (setf (aref Y 1) (bitcast i32 1.0)) (setf (aref Y 2) (cast i32 (+ n 1:i8)))
                (setf (aref Y 3) (cast i32 (cast f32 9007199254740993))))""")
    y = np.zeros(4, np.int32)
    assert run(p, {"a": 1e20, "n": 127, "Y": y}) == 0
    assert list(y) == [2147483647, 0x3F800000, -128, 2147483647]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"M": 2}, "E486: the argument Y is missing"),
    ({"M": 2, "Y": np.zeros(3, np.float32)}, r"E486: the argument Y must be an array of float32 \(2,\), not float32 \(3,\)"),
    ({"M": 2, "Y": np.zeros(2)}, r"not float64 \(2,\)"),
    ({"M": 2, "Y": [0, 0]}, "not list"),
    ({"M": 1, "Y": np.zeros(1, np.float32)}, r"E486: the condition \(= M 2\) does not hold"),
])
def test_arguments_must_agree_with_the_declarations(arguments: dict[str, Any], message: str) -> None:
    p = program("(size M) (require (= M 2)) (buffer Y f32 (M) (0) out) (kernel T (setf (aref Y 0) 1.0))")
    with pytest.raises(CatenError, match=message):
        run(p, arguments)

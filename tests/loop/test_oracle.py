"""The float64 reference with bounds: it holds what float32 really does, in any order, and no more than a few times that."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.core.expr import Op
from caten.core.program import Program, resolve
from caten.core.scalars import OPERATORS
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.loop.statements import Aref
from caten.semantics.comparison import Comparison, check, widened
from caten.semantics.interpret import run
from caten.semantics.oracle import bounded


def program(clauses: str) -> Program:
    result = resolve(read(f"(op T {clauses})")[0])
    assert isinstance(result, OpProgram)
    return result


def compare(p: Program, arguments: dict[str, Any], output: str = "Y") -> tuple[Comparison, dict[str, Any]]:
    """The program in its declared types against its bounded form."""
    oracle = bounded(p)
    assert resolve(read(show(oracle))[0]) is oracle                 # ordinary, printable, typed
    wide = widened(p, arguments)
    own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    assert run(p, own) == run(oracle, wide) == 0
    dtype = p.buffers[output].type
    return check(own[output], wide[output], wide.get(f"{output}__bound"), wide[f"{output}__loose"], dtype), wide


def elementwise(expr: str, x: Any, dtype: str = "f32", out: str = "f32", y: Any = None) -> tuple[Comparison, dict[str, Any]]:
    x = np.asarray(x, np.float32 if dtype == "f32" else np.float64)
    y = np.ones_like(x) if y is None else np.asarray(y, x.dtype)
    p = program(f"(size N) (buffer A {dtype} (N) (0) in) (buffer B {dtype} (N) (0) in) (buffer Y {out} (N) (0) out)"
                f"(body (for i 0 N 1 serial (let x {dtype} (aref A i)) (let y {dtype} (aref B i)) (setf (aref Y i) {expr})))")
    zeros = np.zeros(len(x), {"f32": np.float32, "f64": np.float64, "i32": np.int32, "bool": np.bool_}[out])
    return compare(p, {"N": len(x), "A": x, "B": y, "Y": zeros})


GEMM = """(size M) (size K) (size N) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer Y f32 (M N) (0 1) inout)
  (body (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref Y i j) (* (aref A i p) (aref B p j)))))))"""


def gemm_arguments(m: int, k: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {"M": m, "K": k, "N": n, "A": rng.standard_normal((m, k)).astype(np.float32), "B": rng.standard_normal((k, n)).astype(np.float32),
            "Y": rng.standard_normal((m, n)).astype(np.float32)}


def test_gemm_is_within_its_bound_in_any_order() -> None:
    p, arguments = program(GEMM), gemm_arguments(5, 40, 6)
    result, wide = compare(p, arguments)
    assert result.passed
    assert result.loose == 0
    assert 0 < result.ratio < 1
    a, b, y = arguments["A"], arguments["B"], arguments["Y"]
    assert np.allclose(wide["Y"], y.astype(float) + a.astype(float) @ b.astype(float), rtol=1e-13)
    summed = 40 * 2.0**-24 * (np.abs(y) + np.abs(a) @ np.abs(b))
    assert np.all(wide["Y__bound"] > summed / 4)
    assert np.all(wide["Y__bound"] < 2 * summed)
    backwards = y.copy()
    for q in reversed(range(40)):
        backwards += np.outer(a[:, q], b[q])
    assert check(backwards, wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed


def test_a_wrong_result_fails() -> None:
    p, arguments = program(GEMM), gemm_arguments(3, 8, 3)
    wide = widened(p, arguments)
    run(bounded(p), wide)
    wrong = wide["Y"].astype(np.float32)
    wrong[1, 2] += np.float32(1e-4)
    result = check(wrong, wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32")
    assert not result.passed
    assert result.worst == (1, 2)


UNARY = [fn for fn, row in OPERATORS.items() if row.arity == 1 and row.accepts("float") and fn not in ("isnan", "isinf", "not")]


@pytest.mark.parametrize("fn", UNARY)
def test_every_function_is_bounded_after_a_rounding(fn: str) -> None:
    x = np.concatenate([np.linspace(-3, 3, 61), [0.0, 1e-30, 80.0, -80.0, 1e20]])
    result, _ = elementwise(f"({OPERATORS[fn].spelling} (* 1.1 x))", x)
    assert result.passed
    assert result.loose <= 8


@pytest.mark.parametrize("fn", ["add", "sub", "mul", "div", "max", "min", "fmax", "fmin", "pow", "hypot", "atan2", "mod", "floordiv", "truncmod", "truncdiv"])
def test_functions_of_two_operands(fn: str) -> None:
    rng = np.random.default_rng(3)
    result, _ = elementwise(f"({OPERATORS[fn].spelling} (* 1.1 x) (+ y 0.3))", rng.standard_normal(100) * 4, y=rng.standard_normal(100))
    assert result.passed
    assert result.loose <= 5


def test_sigmoid_and_softplus_of_float64() -> None:
    result, wide = elementwise("(+ (sigmoid x) (log1p (exp x)))", np.linspace(-20, 20, 41), "f64", "f64")
    assert result.passed
    assert np.all(wide["Y__bound"] < 1e-13)


def test_floor_within_the_bound_of_a_jump_is_widened() -> None:
    result, wide = elementwise("(floor (/ x (* y 0.1)))", [0.3, 0.7, 0.55])
    assert result.passed
    assert list(wide["Y__bound"] >= 1) == [True, True, False]


def test_a_cast_to_integer_at_a_jump_is_loose() -> None:
    result, _ = elementwise("(cast i32 (/ x (* y 0.1)))", [0.3, 0.7, 0.55], out="i32")
    assert result.passed
    assert result.loose == 2


def test_a_comparison_at_its_edge_is_loose_and_a_choice_by_it_is_widened() -> None:
    x = np.float32([0.1, 0.5])
    result, _ = elementwise("(< (* x 10.0) 1.0)", x, out="bool")
    assert (result.passed, result.loose) == (True, 1)
    result, wide = elementwise("(where (< (* x 10.0) 1.0) 3.0 4.0)", x)
    assert (result.passed, result.loose) == (True, 0)
    assert list(wide["Y__bound"]) == [1, 0]
    result, _ = elementwise("(where (< x 0.1) 3.0 4.0)", x)                    # nothing was rounded: no doubt
    assert (result.passed, result.loose, result.ratio) == (True, 0, 0)


@pytest.mark.slow
@pytest.mark.slice(6)
@pytest.mark.parametrize("fn", [fn for fn in (*UNARY, "div", "pow", "hypot", "atan2", "mul", "max") if fn != "tan"])     # poles in between
def test_a_function_of_an_undecided_choice_covers_both_sides(fn: str) -> None:
    """tanh 12 is 1 in float32, and below 1 in float64. The slope at one side says little of the distance to the other."""
    rng = np.random.default_rng(5)
    for yes, no, other in rng.uniform(0.1, 0.9, (20, 3)) if fn in ("asin", "acos", "atanh") else rng.uniform(1.1, 4, (20, 3)):
        choice = f"(where (< (tanh x) 1.0) {yes} {no})"
        second = f" {other}" if OPERATORS[fn].arity == 2 else ""
        result, _ = elementwise(f"({OPERATORS[fn].spelling} {choice}{second})", [12.0])
        assert result.passed, f"{fn} of {yes} or {no}{second}: {result.ratio}"
        if second:
            assert elementwise(f"({OPERATORS[fn].spelling}{second} {choice})", [12.0])[0].passed


def test_a_branch_at_its_edge_covers_both_sides() -> None:
    body = "(setf (aref Y i) 1.0) (if (< (* x 10.0) 1.0) ((setf (aref Y i) 3.0)) ((setf (aref Y i) 4.0) (incf (aref Y i) 1.0)))"
    p = program("(buffer A f32 (2) (0) in) (buffer Y f32 (2) (0) out) (body (for i 0 2 1 serial (let x f32 (aref A i)) " + body + "))")
    wide = widened(p, {"A": np.float32([0.1, 0.5]), "Y": np.zeros(2, np.float32)})
    run(bounded(p), wide)
    for possible in (3.0, 5.0):
        assert check(np.float32([possible, 5.0]), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed
    assert not check(np.float32([5.0, 3.0]), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed


def test_a_near_tie_of_argmax_is_loose_in_its_index_only() -> None:
    p = program("""(buffer A f32 (3) (0) in) (buffer Y f32 () () out) (buffer I i64 () () out)
      (body (setf (aref Y) -inf) (setf (aref I) 0)
            (for i 0 3 1 serial (let x f32 (* (aref A i) 1.1)) (if (< (aref Y) x) ((setf (aref Y) x) (setf (aref I) i)))))""")
    zeros = {"Y": np.zeros((), np.float32), "I": np.zeros((), np.int64)}
    near = np.float32(2) + np.float32(2.0**-22)
    result, wide = compare(p, {"A": np.float32([1, 2, near]), **zeros}, "I")
    assert (result.passed, result.loose) == (True, 1)
    assert wide["Y__loose"] == 0
    assert wide["Y__bound"] < 1e-5
    result, _ = compare(p, {"A": np.float32([1, 2, 3]), **zeros}, "I")
    assert (result.passed, result.loose) == (True, 0)


def test_a_sum_written_as_an_assignment_is_bounded_in_any_order() -> None:
    p = program("""(size N) (buffer A f32 (N) (0) in) (buffer Y f32 () () out)
      (body (local s f32 () register) (setf (aref s) 0.0) (for i 0 N 1 serial (setf (aref s) (+ (aref s) (aref A i)))) (setf (aref Y) (aref s)))""")
    a = np.float32([1e8, 1, -1e8, 1] * 4)
    wide = widened(p, {"N": 16, "A": a, "Y": np.zeros((), np.float32)})
    assert run(bounded(p), wide) == 0
    assert wide["Y"] == 8
    assert check(np.float32(a[::2].sum() + a[1::2].sum()), wide["Y"], wide["Y__bound"], wide["Y__loose"], "f32").passed


def test_arms_stay_lazy() -> None:
    p = program("""(size N) (buffer A f32 (N) (0) in) (buffer Y f32 (N) (0) out)
      (body (for i 0 N 1 serial (setf (aref Y i) (where (and (< (+ i 1) N) (< 1.0 (* 1.1 (aref A i)))) (* 2.0 (aref A (+ i 1))) 7.0))))""")
    result, _ = compare(p, {"N": 4, "A": np.float32([1, 0, 2, 3]), "Y": np.zeros(4, np.float32)})
    assert result.passed


@pytest.mark.parametrize("body", [
    "(if c ((if (not (< 0 N)) ((fail 1))) (setf (aref Y 0) (aref I 0))))",
    "(if (not c) () ((if (not (< 0 N)) ((fail 1))) (setf (aref Y 0) (aref I (mod 3 N)))))",
    "(if c ((for i 0 3 1 serial (setf (aref Y i) (where (< (aref I i) 1:i32) (aref I i) 2:i32)))))",
    "(if c ((if (= N 0) ((fail 1))) (for i 0 9 N serial (setf (aref Y 0) 1:i32))))",
    "(if c ((for i 0 9 N serial (setf (aref Y 0) 1:i32))))",
    "(if c ((let n i64 9) (if (< N n) ((fail 1))) (for i 0 1000000000000 1 serial (setf (aref Y 0) 1:i32))))",
    "(setf (aref Y 0) (where c (aref I 0) 1:i32))",
    "(setf (aref Y 0) (where (not c) 1:i32 (aref I (cast i64 (aref I 0)))))",
    "(setf (aref Y 0) (cast i32 (where c (* 2.0 (cast f32 (aref I 0))) 1.0)))",
    "(if c ((if (not (< 3 N)) ((fail 1))) (setf (aref Y (+ N 3)) 7:i32) (incf (aref Y (+ N 3)) 7:i32)))",
    "(if c ((setf (aref Y (+ N 3)) 7:i32) (incf (aref Y (+ N 3)) 7:i32)))",
    "(if c ((local T f32 (N) scratch) (setf (aref T 0) 1.0) (incf (aref T 0) 2.0) (setf (aref Y 0) (cast i32 (aref T 0)))))",
])
def test_the_side_that_is_not_taken_stays_inside_its_arrays(body: str) -> None:
    p = program("(size N) (buffer X f32 () () in) (buffer I i32 (N) (0) in) (buffer Y i32 (3) (0) inout)"
                f"(body (let c bool (< (* 1.1 (aref X)) 2.2)) {body})")                      # c is false, but only just
    result, _ = compare(p, {"N": 0, "X": np.array(2, np.float32), "I": np.zeros(0, np.int32), "Y": np.zeros(3, np.int32)})
    assert result.passed


def test_overflow_of_the_declared_type_is_infinite() -> None:
    result, wide = elementwise("(/ 1.0 (exp x))", [100.0, 1.0, -100.0])
    assert result.passed
    assert wide["Y"][0] == 0
    assert np.isinf(wide["Y"][2])


def test_literals_and_casts_round_as_declared() -> None:
    _, wide = elementwise("(+ (* 0.0 x) 0.1)", [1.0])
    assert wide["Y"][0] == float(np.float32(0.1))
    _, wide = elementwise("(cast f64 (cast f32 0.1:f64))", [1.0], out="f64")
    assert wide["Y"][0] == float(np.float32(0.1))
    assert wide["Y__bound"][0] == 0


def test_integers_wrap_and_stay_exact() -> None:
    p = program("(buffer Y i8 (3) (0) inout) (body (for i 0 3 1 serial (incf (aref Y i) 100:i8)))")
    result, wide = compare(p, {"Y": np.int8([100, 1, -100])})
    assert result.passed
    assert list(wide["Y"]) == [-56, 101, 0]


def test_scalars_failures_and_complex_numbers() -> None:
    p = program("""(scalar a c64) (buffer Z c64 (2) (0) in) (buffer Y f32 (2) (0) out)
      (body (for i 0 2 1 serial (setf (aref Y i) (abs (* a (+ (aref Z i) a))))))""")
    result, wide = compare(p, {"a": 1 + 2j, "Z": np.complex64([3 - 1j, 0.1]), "Y": np.zeros(2, np.float32)})
    assert result.passed
    assert wide["Y__bound"][0] > 0
    q = program("(size N) (buffer Y f32 (N) (0) out) (ensure 1 (< N 3)) (body (if (= N 2) ((fail 4))) (setf (aref Y 0) 1.0))")
    for n, code in ((3, 1), (2, 4), (1, 0)):
        assert run(bounded(q), widened(q, {"N": n, "Y": np.zeros(n, np.float32)})) == code


def test_a_vector_is_refused() -> None:
    with pytest.raises(CatenError, match=r"E485: the oracle does not know \(fold"):
        bounded(program("(buffer A f32 (4) (0) in) (buffer Y f32 () () out) (body (setf (aref Y) (fold add (vref A 4 (0)))))"))


@pytest.mark.parametrize(("result", "reference", "passed"), [
    ([np.nan], [np.nan], True), ([np.nan], [1.0], False), ([1.0], [np.nan], False), ([np.inf], [np.inf], True), ([np.inf], [-np.inf], False),
    ([np.inf], [1e39], True), ([1.0], [1.0 + 1e-8], True), ([1.0 + 2.0**-22], [1.0], False), ([0.0], [0.0], True),
])
def test_check_of_special_values(result: list[float], reference: list[float], passed: bool) -> None:
    assert check(np.float32(result), np.array(reference), np.zeros(1), np.zeros(1, np.uint8), "f32").passed is passed


def test_check_of_integers_marks_and_nothing() -> None:
    assert not check(np.int32([1, 2]), np.int32([1, 3]), None, np.uint8([0, 0]), "i32").passed
    assert check(np.int32([1, 2]), np.int32([1, 3]), None, np.uint8([0, 1]), "i32") == Comparison(0.0, None, True, 1, 1)
    assert check(np.zeros(0, np.float32), np.zeros(0), np.zeros(0), None, "f32").passed


def test_accesses_keep_their_arrays() -> None:
    oracle = bounded(program(GEMM))
    assert {n.buffer for n in oracle.unique() if isinstance(n, Aref)} == {"A", "B", "Y", "Y__bound", "Y__above", "Y__below"}
    assert not any(isinstance(n, Op) and n.fn == "where" and n.dtype == "i64" for n in oracle.unique())

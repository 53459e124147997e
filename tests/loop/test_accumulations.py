"""However an accumulation is written, it becomes the same statement; what only looks like one stays as it is; results stay the same."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from op_bodies import body_text, checked_program

from caten.core.program import InOrder, Opt
from caten.frontend.op import OpProgram
from caten.loop.accumulations import normalise
from caten.semantics import interpret

SIGNATURE = 'inputs = ["x{float}[N]", "U{float}[M N]", "k{int32}[N]", "b{bool}[N]", "h{float16}[N]", "c{int64}[]", "z{float}[]"{more}]\noutputs = ["{out}"]'


def program(out: str, code: str, in_order: bool = False, more: str = "") -> OpProgram:
    """The operator of a body with one output, its checks added."""
    signature = SIGNATURE.replace("{more}", f', "{more}"' if more else "").replace("{out}", out)
    return checked_program(f'[composite]\nname = "W"\n{signature}\n[implementation]\ncode = """{code}"""\n', in_order)


S = "s{float}[]"
SAME = {
    "sum": [(S, f"(setf s 0) (dotimes (i N) {step})") for step in (
        "(incf s (aref x i))", "(setf s (+ s (aref x i)))", "(setf s (+ (aref x i) s))")],
    "difference": [(S, f"(setf s 0) (dotimes (i N) {step})") for step in ("(decf s (aref x i))", "(setf s (- s (aref x i)))")],
    "sum of several": [(S, f"(setf s 0) (dotimes (i N) {step})") for step in (
        "(incf s (- (* z (aref x i)) (aref U 0 i)))", "(setf s (- (+ s (* z (aref x i))) (aref U 0 i)))",
        "(setf s (- (+ (* z (aref x i)) s) (aref U 0 i)))")],
    "product": [(S, f"(setf s 1) (dotimes (i N) {step})") for step in ("(mulcf s (aref x i))", "(setf s (* s (aref x i)))", "(setf s (* (aref x i) s))")],
    "maximum": [(S, f"(setf s (- inf)) (dotimes (i N) {step})") for step in (
        "(maxcf s (aref x i))", "(setf s (max s (aref x i)))", "(setf s (max (aref x i) s))")],
    "greatest": [(S, f"(setf s (- inf)) (dotimes (i N) {step})") for step in (
        "(when (> (aref x i) s) (setf s (aref x i)))", "(when (< s (aref x i)) (setf s (aref x i)))", "(setf s (if (> (aref x i) s) (aref x i) s))",
        "(if (>= (aref x i) s) (setf s (aref x i)))")],
    "least": [(S, f"(setf s inf) (dotimes (i N) {step})") for step in (
        "(when (< (aref x i) s) (setf s (aref x i)))", "(when (>= s (aref x i)) (setf s (aref x i)))")],
    "greatest integer": [("s{int32}[]", f"(setf s -9) (dotimes (i N) {step})") for step in (
        "(maxcf s (aref k i))", "(when (> (aref k i) s) (setf s (aref k i)))", "(setf s (if (> s (aref k i)) s (aref k i)))",
        "(unless (<= (aref k i) s) (setf s (aref k i)))")],
    "count": [("s{int64}[]", f"(setf s 0) (dotimes (i N) {step})") for step in (
        "(when (> (aref x i) z) (incf s))", "(when (> (aref x i) z) (setf s (+ s 1)))", "(setf s (if (> (aref x i) z) (+ 1 s) s))")],
    "first peeled": [("y{float}[M]{where}", code) for code in (
        "(dotimes (i M) (setf (aref y i) 0) (dotimes (j N) (incf (aref y i) (aref U i j))))",
        "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 1 N) (incf (aref y i) (aref U i j))))",
        "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 1 N) (setf (aref y i) (+ (aref U i j) (aref y i)))))",
        "(dotimes (i M) (dotimes (j N) (if (= j 0) (setf (aref y i) (aref U i j)) (incf (aref y i) (aref U i j)))))",
        "(dotimes (i M) (dotimes (j N) (if (> j 0) (incf (aref y i) (aref U i j)) (setf (aref y i) (aref U i 0)))))",
        "(dotimes (i M) (dotimes (j N) (if (< j 1) (setf (aref y i) (aref U i 0)) (setf (aref y i) (+ (aref y i) (aref U i j))))))")],
    "first iteration with a condition": [("y{float}[M](where N > 0)", code) for code in (
        "(dotimes (i M) (setf (aref y i) 0) (dotimes (j N) (incf (aref y i) (aref U i j))))",
        "(dotimes (i M) (dotimes (j N) (when (= j 0) (setf (aref y i) 0)) (incf (aref y i) (aref U i j))))",
        "(dotimes (i M) (dotimes (j N) (if (> j 0) (incf (aref y i) (aref U i j)) (setf (aref y i) (aref U i j)))))",
        "(dotimes (i M) (dotimes (j N) (setf (aref y i) (if (= j 0) (aref U i j) (+ (aref y i) (aref U i j))))))",
        "(dotimes (i M) (dotimes (j N) (setf (aref y i) (+ (aref U i j) (if (< 0 j) (aref y i) 0)))))")],
    "first row of columns": [("y{float}[M](where M = N)", code) for code in (
        "(dotimes (j_2 N) (setf (aref y j_2) 0)) (dotimes (i M) (dotimes (j N) (incf (aref y j) (aref U i j))))",
        "(dotimes (i M) (dotimes (j N) (when (= i 0) (setf (aref y j) 0)) (incf (aref y j) (aref U i j))))",
        "(dotimes (i M) (dotimes (j N) (if (= i 0) (setf (aref y j) (aref U i j)) (incf (aref y j) (aref U i j)))))",
        "(dotimes (i M) (dotimes (j N) (setf (aref y j) (if (= i 0) (aref U i j) (+ (aref y j) (aref U i j))))))")],
    "first iteration sets what holds": [(S, f"(set t 0.0) (dotimes (i N) {step}) (setf s t)") for step in (
        "(incf t (aref x i))", "(when (= i 0) (set t 0.0)) (incf t (aref x i))",
        "(if (= i 0) (set t (aref x i)) (set t (+ t (aref x i))))")],
    "nothing under the other condition": [(S, f"(set t 0.0) (dotimes (i N) {step}) (setf s t)") for step in (
        "(when (> (aref x i) z) (incf t (aref x i)))",
        "(if (> (aref x i) z) (set t (+ t (aref x i))) (set t t))")],
    "first of a maximum": [("y{float}[M](where N > 0)", code) for code in (
        "(dotimes (i M) (set t (- inf)) (dotimes (j N) (maxcf t (aref U i j))) (setf (aref y i) t))",
        "(dotimes (i M) (set t (aref U i 0)) (loop (j 1 N) (maxcf t (aref U i j))) (setf (aref y i) t))",
        "(dotimes (i M) (set t (aref U i 0)) (loop (j 1 N) (set t (max (aref U i j) t))) (setf (aref y i) t))")],
}
SAME["first peeled"] = [(out.replace("{where}", "(where N > 0)"), code) for out, code in SAME["first peeled"]]


@pytest.mark.parametrize("group", SAME)
def test_spellings_of_one_accumulation_become_one_text(group: str) -> None:
    made = [body_text(normalise(program(out, code))) for out, code in SAME[group]]
    assert len(set(made)) == 1, "\n".join(made)
    assert "incf" in made[0]


@pytest.mark.parametrize("code", [
    "(setf s 0) (dotimes (i N) (setf s (+ s (* s (aref x i)))))",                 # reads its own total
    "(setf s 0) (dotimes (i N) (setf s (+ s s)))",
    "(setf s 0) (dotimes (i N) (setf s (- (aref x i) s)))",
    "(setf s 1) (dotimes (i N) (setf s (/ s (aref x i))))",
    "(setf s 0) (dotimes (i N) (unless (<= (aref x i) s) (setf s (aref x i))))",   # takes NaN, and then everything
    "(setf s 0) (dotimes (i N) (when (> (aref x i) s) (setf s (+ 1 (aref x i)))))",
    "(setf s 0) (dotimes (i N) (when (= (aref x i) s) (setf s (aref x i))))",
])
def test_what_only_looks_like_an_accumulation_stays(code: str) -> None:
    made = program(S, code)
    assert body_text(normalise(made)) == body_text(made)


@pytest.mark.parametrize("code", [
    "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 1 N) (incf (aref y i) (* z (aref U i j)))))",           # another first element
    "(dotimes (i M) (setf (aref y i) (aref U i 1)) (loop (j 1 N) (incf (aref y i) (aref U i j))))",
    "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 2 N) (incf (aref y i) (aref U i j))))",
    "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 1 N) (incf (aref y i) (+ (aref U i j) (aref y i)))))",
    "(dotimes (i M) (setf (aref y i) (aref U i 0)) (setf (aref y i) (/ 2 (aref y i))) (loop (j 1 N) (incf (aref y i) (aref U i j))))",
    "(dotimes (i M) (dotimes (j N) (if (= j 1) (setf (aref y i) (aref U i j)) (incf (aref y i) (aref U i j)))))",
    "(dotimes (i M) (dotimes (j N) (if (> (aref x j) 0) (setf (aref y i) (aref U i j)) (incf (aref y i) (aref U i j)))))",
    "(dotimes (i M) (dotimes (j N) (if (= j 0) (setf (aref y i) (* 2 (aref U i j))) (incf (aref y i) (aref U i j)))))",
    "(dotimes (i M) (dotimes (j N) (incf (aref y i) (aref U i j)) (when (= j 0) (setf (aref y i) 0))))",             # used before
    "(dotimes (i M) (dotimes (j N) (when (= j 1) (setf (aref y i) 0)) (incf (aref y i) (aref U i j))))",
    "(dotimes (i M) (dotimes (j N) (when (= j 0) (setf (aref y i) (aref y 0))) (incf (aref y i) (aref U i j))))",
    "(dotimes (i M) (dotimes (j N) (when (= i 0) (setf (aref y 0) 0)) (incf (aref y 0) (aref U i j))))",           # once for each j
    "(dotimes (i M) (dotimes (j i) (when (= i 2) (setf (aref y j) 0)) (incf (aref y j) (aref U i j))))",
    "(dotimes (i M) (dotimes (j (- M 1)) (when (= i 0) (setf (aref y j) 0)) (incf (aref y j) (aref y (+ j 1)))))",
    "(dotimes (i M) (dotimes (j (- M i)) (when (= i 0) (setf (aref y j) 0)) (incf (aref y j) (aref U i j))))",         # other elements in each
])
def test_first_iterations_that_are_others_stay(code: str) -> None:
    made = program("y", code, more="y{float}[M]")
    assert body_text(normalise(made)) == body_text(made)


def test_a_first_element_that_may_not_be_there_stays() -> None:
    made = program("y", "(dotimes (i M) (setf (aref y i) (aref x 0)) (loop (j c N) (incf (aref y i) (aref x (- j c)))))", more="y{float}[M]")
    assert body_text(normalise(made)) == body_text(made)


def test_an_array_that_the_caller_gave_is_set_only_where_the_loop_runs() -> None:
    code = "(dotimes (i M) (dotimes (j N) (if (= j 0) (setf (aref y i) (aref U i j)) (incf (aref y i) (aref U i j)))))"
    assert body_text(normalise(program("y", code, more="y{float}[M]"))).startswith("(if (< 0 N) ((for i 0 M 1 serial (setf (aref y i) 0.0)")
    assert body_text(normalise(program("y{float}[M]", code))).startswith("(for i 0 M 1 serial (setf (aref y i) 0.0)")


def test_a_loop_whose_length_changes_around_it_sets_only_where_it_runs() -> None:
    """Its second run has no iteration, and leaves what the first one made."""
    made = program("y{float}[]", "(set n 2) (dotimes (r 2) (dotimes (q n) (if (= q 0) (setf y z) (incf y z))) (set n 0))")
    results = []
    for each in (made, normalise(made)):
        given = arguments(made, 1, 3, 1)
        assert interpret.run(each, given) == 0
        results.append(given["y"].item())
    assert results == [1.0, 1.0]


def test_a_name_that_nothing_uses_is_read_in_no_further_iteration() -> None:
    code = "(dotimes (i M) (setf (aref y i) (aref U i 0)) (loop (j 1 N) (let ((b (aref x (- j 1)))) (incf (aref y i) (aref U i j)))))"
    made = program("y", code, more="y{float}[M]")
    assert body_text(normalise(made)) == body_text(made)


def test_an_iteration_before_the_first_that_would_add_nothing_is_not_run() -> None:
    """What it would add cancels, but is read where nothing is."""
    made = program("s{uint32}[]", "(setf s 0) (loop (i 0 N) (incf s (- (aref w i) (aref w i))))", more="w{uint32}[N]")
    assert "(for i 0 N" in body_text(normalise(made))


def test_sums_of_16_bit_floats_round_where_they_are_written() -> None:
    made = program("s{float16}[]", "(setf s 0) (dotimes (i N) (setf s (+ s (aref h i))))")
    assert body_text(normalise(made)) == body_text(made)


def test_at_O0_everything_stays() -> None:
    plain = program(*SAME["sum"][1]).without(Opt).adding(Opt(0))
    assert normalise(plain) is plain


def test_at_O1_float_sums_keep_their_operations() -> None:
    several, one = [program(*SAME[group][1]).without(Opt).adding(Opt(1)) for group in ("sum of several", "sum")]
    assert body_text(normalise(several)) == body_text(several)
    assert "incf" in body_text(normalise(one))


def test_a_counter_that_the_loop_ends_with_is_counted_once() -> None:
    """What is known where the loop begins holds there, and not after the statements before it once more."""
    code = "(set n 1) (when (> c 0) (incf n 1) (setf (aref y 0) (aref x 2)) (loop (j 3 n) (incf (aref y 0) (aref x j))))"
    assert "(for j 3 (aref n)" in body_text(normalise(program("y", code, more="y{float}[N]")))


def test_in_order_float_sums_are_no_accumulations_and_others_are() -> None:
    made = normalise(program(S, "(setf s 0) (dotimes (i N) (incf s (aref x i)))", in_order=True))
    assert made.first(InOrder) is not None
    assert "incf" not in body_text(made)
    assert "(setf (aref s) (+ (aref s) (aref x i)))" in body_text(made)
    for group in ("maximum", "greatest integer", "count"):
        assert "incf" in body_text(normalise(program(*SAME[group][1], in_order=True)))


VALUES = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38, -1e-40], np.float32)


def arguments(op: OpProgram, m: int, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {
        "M": m, "N": n, "x": rng.choice(VALUES, n), "U": rng.choice(VALUES[:4 if seed % 2 else 9], (m, n)), "k": rng.integers(-9, 9, n).astype(np.int32),
        "b": rng.integers(0, 2, n).astype(bool), "h": rng.standard_normal(n).astype(np.float16), "c": np.int64(1), "z": np.float32(0.5)}
    for b in op.buffers.values():
        if b.name not in given:
            dtype = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "f16": np.float16}[b.type]
            given[b.name] = rng.integers(0, 4, (m,) if b.shape else ()).astype(dtype)
    return given


@pytest.mark.slice(2)
@pytest.mark.parametrize("group", SAME)
@pytest.mark.slow
def test_results_are_those_of_the_program_as_written(group: str) -> None:
    """Bit for bit but for the sign of zero, NaN and infinities included, where no sum is reassociated; also at sizes at which loops are empty."""
    for (out, code), (m, n), seed in product(SAME[group], [(3, 5), (2, 1), (1, 0)], range(6)):
        if n == 0 and ("(where N > 0)" in out or "(aref U 0 i)" in code):
            continue
        made = program(out, code)
        given = arguments(made, n if "(where M = N)" in out else m, n, seed)
        name = out.split("{")[0]
        results = []
        for each in (made, normalise(made)):
            own = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in given.items()}
            with np.errstate(all="ignore"):
                assert interpret.run(each, own) == 0
            results.append(own[name])
        tolerance = 1e-6 if group == "sum of several" else 0
        np.testing.assert_allclose(results[1], results[0], rtol=tolerance, err_msg=f"{code} at {m}, {n}")

"""A condition on a loop's own variable, around all that the loop does, becomes its range; any other stays; results stay the same."""
from __future__ import annotations

import random

import numpy as np
import pytest
from op_bodies import body_text, checked_program

from caten.frontend.op import OpProgram
from caten.loop.accumulations import normalise
from caten.semantics import interpret

HEAD = '[composite]\nname = "T"\ninputs = ["X{float}[M N]", "k{int32}[M]"]\noutputs = ["Y{float}[M N]"]\n[implementation]\n'
STORE = "(setf (aref Y i j) (+ (aref X i j) 1))"


def program(code: str) -> OpProgram:
    return checked_program(f'{HEAD}code = """{code}"""\n')


def normal(code: str) -> str:
    return body_text(normalise(program(code)))


def nest(cond: str, inner: str = STORE) -> str:
    return f"(dotimes (i M) (dotimes (j N) (when {cond} {inner})))"


@pytest.mark.parametrize(("conditional", "bounded"), [
    (nest("(> i 0)"), f"(loop (i 1 M) (dotimes (j N) {STORE}))"),
    (nest("(<= 2 j)"), f"(dotimes (i M) (loop (j 2 N) {STORE}))"),
    (nest("(and (> i 0) (< i (- M 1)) (> j 0) (< j (- N 1)))"), f"(loop (i 1 (- M 1)) (loop (j 1 (- N 1)) {STORE}))"),
    (nest("(and (< 1 (+ i 3)) (<= j (- N 2)))"), f"(dotimes (i M) (loop (j 0 (- N 1)) {STORE}))"),
    (nest("(< (+ j 1) N)"), f"(dotimes (i M) (loop (j 0 (- N 1)) {STORE}))"),
    (nest("(and (>= i 0) (< j N))"), f"(dotimes (i M) (dotimes (j N) {STORE}))"),
    (nest("(and (> i 0) (< (aref X i j) 2))"), f"(loop (i 1 M) (dotimes (j N) (when (< (aref X i j) 2) {STORE})))"),
    (nest("(and (< 3 (* 2 i)) (<= (* 3 i) 12))"), f"(loop (i 2 M) (dotimes (j N) (when (<= (* 3 i) 12) {STORE})))"),
    (nest("(<= 4 (* 2 j))"), f"(dotimes (i M) (loop (j 2 N) {STORE}))"),
    (nest("(and (< i j) (> j 1))"), f"(dotimes (i M) (loop (j 2 N) (when (< i j) {STORE})))"),
])
def test_what_a_condition_says_of_a_loop_is_its_range(conditional: str, bounded: str) -> None:
    assert normal(conditional) == normal(bounded)


@pytest.mark.parametrize("code", [
    nest("(< i N)"),                                            # M or N may be the smaller one
    nest("(< M (* 2 i))"),
    nest("(< (aref X i 0) 1)"),
    nest("(< i (aref k 0))"),
    nest("(< (* i i) M)"),
    nest("(= i 3)"),
    nest("(> (+ i 9223372036854775807) 0)"),                    # which wraps, but where i is 0
    nest("(<= i 9223372036854775807)"),                         # always so, and one more is no number
    f"(dotimes (i M) (dotimes (j N) (if (> i 0) {STORE} (setf (aref Y i j) 2))))",
    f"(dotimes (i M) (dotimes (j N) (setf (aref Y i j) 3) (when (> i 0) {STORE})))",
    f"(loop (i 0 M 2) (dotimes (j N) (when (> i 1) {STORE})))",
])
def test_other_conditions_stay(code: str) -> None:
    made = program(code)
    assert body_text(normalise(made)) == body_text(made)


@pytest.mark.parametrize("seed", range(60))
def test_results_stay_the_same(seed: int) -> None:
    rng = random.Random(seed)
    conditions = []
    for _ in range(rng.randint(1, 3)):
        var, size = rng.choice((("i", "M"), ("j", "N"), ("i", "N")))
        other = rng.choice((str(rng.randint(-2, 3)), size, f"(- {size} {rng.randint(0, 3)})", f"(- {rng.randint(0, 3)} {var})"))
        sides = [rng.choice((var, f"(+ {var} {rng.randint(1, 3)})", f"(- 2 {var})")), other]
        rng.shuffle(sides)
        conditions.append(f"({rng.choice(('<', '<=', '>', '>='))} {sides[0]} {sides[1]})")
    cond = conditions[0] if len(conditions) == 1 else f"(and {' '.join(conditions)})"
    made = program(nest(cond))
    for m, n in ((0, 3), (1, 1), (2, 4), (4, 2), (5, 5)):
        results = []
        for each in (made, normalise(made)):
            given = {"X": np.arange(m * n, dtype=np.float32).reshape(m, n), "k": np.zeros(m, np.int32), "Y": np.full((m, n), 7, np.float32), "M": m, "N": n}
            assert interpret.run(each, given) == 0
            results.append(given["Y"])
        np.testing.assert_array_equal(results[1], results[0], err_msg=cond)

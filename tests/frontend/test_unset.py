"""An output that is no input may be read only where a statement can have set it."""
from __future__ import annotations

import pytest
from lowering import composite, library, lowered, refusals

SIGNATURE = "x{float}[N]; L{float}[N N]; s{float}[]; k{int}[]"


@pytest.mark.parametrize("code", [
    "(dotimes (i N) (setf (aref Y i) (+ 1 (aref Y i))))",
    "(dotimes (i N) (divcf (aref Y i) 2))",
    "(dotimes (i N) (incf (aref Y i)))",
    "(dotimes (i N) (setf (aref Y i) (+ (aref Y (mod (+ i 1) N)) (aref x i))))",
    "(dotimes (i N) (when (< 0 i) (setf (aref Y i) (+ 1 (aref Y i)))))",
    "(dotimes (i N) (when (< 0 k) (set a (aref Y i))) (setf (aref Y i) 1))",
    "(dotimes (i N) (dotimes (j N) (set a (aref Y j))) (setf (aref Y i) 1))",
    "(dotimes (i N) (setf (aref Y i) (where (< 0 s) (aref Y i) 0)))",
    "(when (< 0 (aref Y 0)) (setf (aref Y 0) 0))",
    "(dotimes (i N) (set a (aref Y i))) (dotimes (i N) (setf (aref Y i) 1))",
    "(loop (i 1 N) (setf (aref Y i) (+ (aref Y (- i 1)) (aref x i))))",
])
def test_a_read_before_anything_is_set_is_refused(code: str) -> None:
    assert [line[:4] for line in refusals(code, SIGNATURE)] == ["E227"]


def test_the_hint_spells_an_output_without_axes_by_its_name() -> None:
    (line,) = refusals("(dotimes (i N) (incf total (aref X i)))", "X{float}[N]", "total{float}[]")
    assert line.endswith(" | (setf total 0) first, or list it among the inputs too if it comes from the caller")


@pytest.mark.parametrize("code", [
    "(setf (aref Y 0) 1) (loop (i 1 N) (setf (aref Y i) (+ (aref Y (- i 1)) (aref x i))))",
    "(dotimes (i N) (setf (aref Y i) (+ (aref x i) (where (= i 0) 0 (aref Y (- i 1))))))",
    "(dotimes (i N) (when (< 0 i) (incf (aref Y (- i 1)))) (setf (aref Y i) (aref x i)))",
    "(dotimes (i N) (set a 0) (dotimes (j i) (incf a (* (aref L i j) (aref Y j)))) (setf (aref Y i) (- (aref x i) a)))",
    "(dotimes (i N) (if (= i 0) (setf (aref Y i) 0) (setf (aref Y i) (+ 1 (aref Y (- i 1))))))",
    "(dotimes (i N) (if (< 0 i) (setf (aref Y i) (+ 1 (aref Y (- i 1)))) (setf (aref Y i) 0)))",
    "(dotimes (i N) (setf (aref Y i) 0)) (dotimes (i N) (incf (aref Y i) (aref Y (- N i 1))))",
    "(dotimes (i N) (setf (aref Y i) 0) (mulcf (aref Y i) 2))",
])
def test_a_read_that_an_earlier_statement_or_iteration_may_have_set_is_accepted(code: str) -> None:
    assert lowered(code, SIGNATURE)


def test_the_place_is_that_of_the_read() -> None:
    assert refusals("(dotimes (i N) (setf (aref Y i) (+ 1 (aref Y i))))", SIGNATURE)[0].startswith(
        "E227 1:38 this reads the output 'Y', which is no input, before anything sets it")


NEXT = library(composite("(dotimes (i N) (incf (aref Y i)))", "Y{float}[N]", "Y", "Next"))


def test_a_call_that_reads_what_nothing_set_is_refused_at_the_call() -> None:
    assert refusals("(call Next Y)", SIGNATURE, lookup=NEXT)[0].startswith("E227 1:12 this call of Next reads the output 'Y'")


def test_a_call_may_change_what_was_set_before() -> None:
    assert lowered("(dotimes (i N) (setf (aref Y i) 0)) (call Next Y)", SIGNATURE, lookup=NEXT)

"""What a formula computes again along an axis on which it does not depend is a value of its own; what could fail or costs little is not."""
from __future__ import annotations

import warnings

import pytest
from test_raising import definitions

import caten
from caten import driver, loading
from caten.core.expr import Op
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Compute, TensorProgram

ROW = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) {e})))"
MOVED = {
    "of columns": ("(* (aref C i j) (exp (aref x j)))", ["(define v0 (compute f32 ((i N)) (exp (read x i))))",
                                                        "(define v1 (compute f32 ((i M) (j N)) (* (read C i j) (read v0 j))))"]),
    "the largest part": ("(* (aref C i j) (exp (sin (aref x j))))", ["(define v0 (compute f32 ((i N)) (exp (sin (read x i)))))",
                                                                    "(define v1 (compute f32 ((i M) (j N)) (* (read C i j) (read v0 j))))"]),
    "the condition of a choice": ("(where (< (exp (aref x j)) 2.0) (aref C i j) 0.0)", [
        "(define v0 (compute bool ((i N)) (< (exp (read x i)) 2.0)))",
        "(define v1 (compute f32 ((i M) (j N)) (where (read v0 j) (read C i j) 0.0)))"]),
    "under a condition": ("(where (< (aref C i j) 0.0) (exp (aref x j)) (aref C i j))", [
        "(define v0 (compute f32 ((i N)) (exp (read x i))))",
        "(define v1 (compute f32 ((i M) (j N)) (where (< (read C i j) 0.0) (read v0 j) (read C i j))))"]),
}
STAY = {
    "cheap": "(* (aref C i j) (+ (aref x j) 1.0))",
    "depends on all axes": "(exp (+ (aref C i j) (aref x j)))",
    "depends on no axis": "(* (aref C i j) (exp (aref x 0)))",
    "at another index": "(* (aref C i j) (exp (aref x (- (- N j) 1))))",
    "an index that is loaded": "(* (aref C i j) (exp (aref x (min (max (aref k j) 0) (- N 1)))))",
    "integers": "(* (aref C i j) (cast f32 (mod (floordiv (aref k j) (max (aref k j) 1)) 7)))",
}


@pytest.mark.parametrize("name", MOVED)
def test_an_invariant_is_a_value(name: str) -> None:
    e, expected = MOVED[name]
    assert definitions(ROW.format(e=e)) == expected


@pytest.mark.parametrize("name", STAY)
def test_what_stays_in_the_formula(name: str) -> None:
    assert len(definitions(ROW.format(e=STAY[name]))) == 1


def test_what_a_map_is_read_for_is_part_of_it() -> None:
    body = "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) (exp (aref x j))))" + ROW.format(e="(* (aref C i j) (sqrt (+ (aref t j) 1.0)))")
    assert definitions(body) == ["(define v0 (compute f32 ((i N)) (sqrt (+ (exp (read x i)) 1.0))))",
                                 "(define v1 (compute f32 ((i M) (j N)) (* (read C i j) (read v0 j))))"]


def test_a_map_that_only_a_reduction_reads_has_the_order_in_which_it_reads() -> None:
    body = "(local t f32 (N M) scratch) (for j 0 N 1 serial (for i 0 M 1 serial (setf (aref t j i) (exp (aref C i j)))))" \
           "(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref t j i) (aref A i p))))))"
    assert "(define v0 (compute f32 ((i M) (j N)) (exp (read C i j))))" in definitions(body)


def test_of_a_reduction_and_twice() -> None:
    body = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref y j) (* (aref C i j) (exp (aref x j))))))"
    assert len(definitions(body)) == 3
    both = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (* (aref C i j) (exp (aref x j))))))" + body
    assert sum(["exp" in d for d in definitions(both)]) == 1


def test_no_axis_of_one() -> None:
    body = "(for i 0 1 1 serial (for j 0 N 1 serial (setf (aref Z i j) (* (aref Z i j) (exp (aref x j))))))"
    assert len(definitions(body, "(buffer Z f32 (1 N) (0 1) inout)")) == 1


def test_nested_invariants() -> None:
    body = "(local t f32 (M N K) scratch) (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (setf (aref t i j p) (* (aref A i p) (exp (* (exp (aref x j)) (aref C i j))))))))" \
           "(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (aref t i j p)))))"
    found = definitions(body)
    assert sum(["(exp" in d for d in found]) == 2, found


GUARDED = """[composite]
name = "Guarded"
inputs = ["T{int}[K N W2 W3 W4]", "q{int}[K N 3 L w]", "z{int}[K K M 8 L]", "a{int64}[]", "b{int64}[]", "c{int64}[]", "d{int64}[]", "e{int64}[]"]
outputs = ["z"]
[implementation]
code = \"\"\"
(dotimes (v L) (dotimes (x M) (dotimes (g N) (dotimes (y 8) (dotimes (h K) (dotimes (u 3) (dotimes (f K) (dotimes (s w) (dotimes (t L)
  (incf (aref z h f x y t) (* (if (and (<= 0 t W4) (<= 0 a (- W2 1)) (< -1 (+ (- y 3) v)) (< (- (+ (- y 3) v) W3) 0))
    (aref T h g (+ (* a x) (- (* b u) c)) (+ (- y 3) v) (+ (* t d) (- (* s e) c))) 0) (aref q f g u v s))))))))))))
\"\"\"
"""


def test_an_index_that_floats_give_is_a_value_of_its_own() -> None:
    """Where an image is read between its pixels: the place of a column is not computed for each line again."""
    (op,) = loading.loaded([SpecText("p.toml", '''[composite]
name = "P"
inputs = ["X{float}[H W]", "x{float}[N]"]
outputs = ["Y{float}[H N]"]
[implementation]
lang = "python"
code = "return X[:, np.floor(np.clip(x * 0.5 + 0.25, 0, 100) * 3 - 1).astype(np.int64)] * 2"
''')], Options())
    program = driver.advance(op, "tensor", Options())
    assert isinstance(program, TensorProgram)
    places = [d for d in program.definitions if any(isinstance(n, Op) and n.fn == "floor" for n in d.value.unique())]
    assert [len(d.value.axes) for d in places if isinstance(d.value, Compute)] == [1]


@pytest.mark.slow
def test_a_condition_on_the_axes_stays_where_it_shows_that_an_element_exists() -> None:
    """Stored in an array and read back, it would show nothing, and the program would not be verified."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator = caten.compile(GUARDED)
    assert operator.schedule

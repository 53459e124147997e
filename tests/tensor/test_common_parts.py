"""What several values compute is a value of its own, if it costs less to store it: as when a variable held it."""
from __future__ import annotations

import numpy as np
import pytest
from test_structure_families import values_of

import caten
from caten.frontend.spec_files import SpecText
from caten.tensor import canonical_values


def spec(body: str, inputs: str = '"X{float}[M N]", "R{float}[M N]", "W{float}[N K]"', outputs: str = '"Y{float}[M N]", "Z{float}[M N]"') -> SpecText:
    lang = "lisp" if body.lstrip().startswith("(") else "python"
    return SpecText("t.toml", f'[composite]\nname = "T"\ninputs = [{inputs}]\noutputs = [{outputs}]\n[implementation]\nlang = "{lang}"\ncode = """\n{body}\n"""\n', "toml")


def values(*args: str) -> list[str]:
    return [" ".join(str(d).split()) for d in values_of(spec(*args)).definitions]


Y = '"X{float}[M N]", "R{float}[M N]"', '"Y{float}[M N]"'
SOFTMAX = """(dotimes (i M)
  (set top (- inf))
  (dotimes (j N) (setf top (max top (aref X i j))))
  (set s 0.0)
  (dotimes (j N) (incf s (exp (- (aref X i j) top))))
  (dotimes (j N) (setf (aref Y i j) (/ (exp (- (aref X i j) top)) s))))"""


def test_a_softmax_computes_each_exponential_once() -> None:
    top, e, total, y = values(SOFTMAX, *Y)
    assert e.startswith("(define v1 (compute f32 ((i M) (j N)) (exp (- (read X i j)")
    assert "add true (read v1 i p)" in total
    assert "(/ (read v1 i j) (read v2 i))" in y
    assert values("top = X.max(axis=1, keepdims=True)\ne = np.exp(X - top)\nreturn e / e.sum(axis=1, keepdims=True)", *Y) == [top, e, total, y]


def test_a_part_is_found_in_whatever_order_the_loops_are() -> None:
    """And in an output that is stored anyway."""
    body = """(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (exp (* (aref X i j) (aref R i j))))))
(dotimes (j N) (dotimes (i M) (setf (aref Z i j) (+ (sin (exp (* (aref X i j) (aref R i j)))) 1.0))))"""
    e, z = values(body)
    assert "(exp (* (read X i j) (read R i j)))" in e
    assert "(+ (sin (read v0 i j)) 1.0)" in z


def test_small_parts_come_first() -> None:
    """The sum of two arrays is read by three values; the difference costs less than an array."""
    body = """(dotimes (i M)
  (set s 0.0) (dotimes (j N) (incf s (+ (aref X i j) (aref R i j))))
  (set v 0.0) (dotimes (j N) (incf v (* (- (+ (aref X i j) (aref R i j)) s) (- (+ (aref X i j) (aref R i j)) s))))
  (dotimes (j N) (setf (aref Y i j) (* v (- (+ (aref X i j) (aref R i j)) s)))))"""
    found = values(body, *Y)
    assert found[0] == "(define v0 (compute f32 ((i M) (j N)) (+ (read X i j) (read R i j))))"
    assert sum("(read X" in d for d in found) == 1
    assert found == values("t = X + R\nd = t - t.sum(axis=1, keepdims=True)\nreturn d * (d * d).sum(axis=1, keepdims=True)", *Y)[:1] + found[1:]


def test_a_part_that_is_always_in_a_larger_one_is_none() -> None:
    """`min(x, r)` is two arrays, but x r min(x, r) + 1 is one reader: the outputs that have it in common."""
    body = """(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (+ (* (aref X i j) (min (aref X i j) (aref R i j))) 1.0))))
(dotimes (i M) (dotimes (j N) (setf (aref Z i j) (* 2.0 (+ (* (aref X i j) (min (aref X i j) (aref R i j))) 1.0)))))"""
    assert len(values(body)) == 2


def test_an_operand_of_a_contraction_is_stored() -> None:
    body = "(dotimes (i M) (dotimes (k K) (setf (aref Z i k) 0.0)))\n(dotimes (i M) (dotimes (k K) (dotimes (j N) (incf (aref Z i k) (* {} (aref W j k))))))"
    outputs = '"X{float}[M N]", "R{float}[M N]", "W{float}[N K]"', '"Z{float}[M K]"'
    for operand in ("(+ (aref X i j) (aref R i j))", "(where (< (+ 2.0 (aref X i j)) 1.0) 1.0 0.25)"):
        assert [" compute " in f" {d.replace('(', ' ')}" for d in values(body.format(operand), *outputs)] == [True, False]
    assert len(values(body.format("(* 2.0 (aref X i j))"), *outputs)) == 1


def test_what_a_condition_leaves_out_and_what_may_be_outside_stays() -> None:
    """The exponentials of half of the elements; elements beside the last."""
    half = """(dotimes (i M)
  (set s 0.0)
  (dotimes (j N) (if (<= j i) (incf s (exp (aref X i j)))))
  (setf (aref z i) s)
  (set t 0.0)
  (dotimes (j N) (if (<= j i) (incf t (* 2.0 (exp (aref X i j))))))
  (setf (aref y i) t))"""
    assert len(values(half, '"X{float}[M N]"', '"y{float}[M]", "z{float}[M]"')) == 2
    beside = """(dotimes (i M) (setf (aref y i) (exp (aref x (+ i 1)))))
(dotimes (i M) (setf (aref z i) (+ 1.0 (exp (aref x (+ i 1))))))"""
    assert sum("exp" in d for d in values(beside, '"x{float}[(+ M 1)]"', '"y{float}[M]", "z{float}[M]"')) == 2


def test_conditions_stay_where_they_are() -> None:
    """They say where accesses are inside of arrays, which a value read in their place would not."""
    body = """(dotimes (i M) (dotimes (j N)
  (if (or (< (aref X i j) (aref R i j)) (> (* (aref X i j) (aref X i j)) (aref R i j))) (setf (aref Y i j) (exp (aref X i j))) (setf (aref Y i j) 0.0))
  (if (or (< (aref X i j) (aref R i j)) (> (* (aref X i j) (aref X i j)) (aref R i j))) (setf (aref Z i j) (sin (aref R i j))) (setf (aref Z i j) 1.0))))"""
    found = values_of(spec(body)).definitions
    assert "bool" not in [d.value.type for d in found]


@pytest.mark.slow
def test_a_part_is_read_transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by an output whose axes are in the other order, the part is read transposed."""
    body = "(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (+ (exp (* (aref X i j) (aref R i j))) 1.0)) (setf (aref Z j i) (sin (exp (* (aref X i j) (aref R i j)))))))"
    text = spec(body, '"X{float}[M N]", "R{float}[M N]"', '"Y{float}[M N]", "Z{float}[N M]"')
    assert sum("exp" in str(d) for d in values_of(text).definitions) == 1
    rng = np.random.default_rng(1)
    x, r = rng.standard_normal((2, 5, 7)).astype(np.float32)
    y, z = caten.compile(text.text, runtime="gcc")(x, r)
    assert np.allclose(y, np.exp(x * r) + 1, rtol=1e-5)
    assert np.allclose(z, np.sin(np.exp(x * r)).T, rtol=1e-4, atol=1e-5)
    with monkeypatch.context() as m:
        m.setattr(canonical_values, "with_common_parts", lambda program, kept, names: program)
        assert sum("exp" in str(d) for d in values_of(text).definitions) == 2

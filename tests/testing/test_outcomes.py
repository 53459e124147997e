"""Verdicts of test runs: `ok` says that something was compared."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.compiler import Built, build
from caten.core.expr import FALSE, TRUE
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.semantics import comparison, error_tracking, rounding_bounds
from caten.testing import runner
from caten.testing.outcomes import OutputReport, Report
from caten.testing.reference import Expected

OPTIONS = Options(runtime="numpy", use_cache=False)
SOFTMAX = """
(array z float (M N))
(dotimes (i M)
  (dotimes (j N) (setf (aref z i j) (if (aref mask i j) (aref X i j) (- inf))))
  (set m (- inf))
  (dotimes (j N) (maxcf m (aref z i j)))
  (set s 0.0)
  (dotimes (j N)
    (setf (aref Y i j) (exp (- (aref z i j) m)))
    (incf s (aref Y i j)))
  (dotimes (j N) (divcf (aref Y i j) s)))"""
FLASH = """
(dotimes (i M)
  (set m (- inf))
  (set l 0.0)
  (dotimes (e E) (setf (aref O i e) 0))
  (dotimes (j N)
    (set s 0.0)
    (dotimes (d D) (incf s (* (aref Q i d) (aref K j d))))
    (let* ((mn (max m s)) (c (exp (- m mn))) (p (exp (- s mn))))
      (setf l (+ (* l c) p))
      (setf m mn)
      (dotimes (e E)
        (setf (aref O i e) (+ (* c (aref O i e)) (* p (aref V j e)))))))
  (dotimes (e E) (divcf (aref O i e) l)))"""
LOGSUMEXP = """
(dotimes (i M)
  (set m (- inf))
  (set s 0.0)
  (dotimes (j N)
    (let ((n (max m (aref X i j))))
      (setf s (+ (* s (exp (- m n))) (exp (- (aref X i j) n))))
      (setf m n)))
  (setf (aref Y i) (+ m (log s))))"""
EDGE = "(dotimes (i N) (set m (- inf)) (setf (aref y i) (+ (aref x i) (exp (- m (aref x i))))))"
CORRELATION = """
(dotimes (i (+ (- N T) 1))
  (setf (aref y i) 0)
  (dotimes (k T) (incf (aref y i) (* (aref x (+ i k)) (aref h k)))))"""
ATTENTION = "lambda Q, K, V: (lambda P: (P / P.sum(-1, keepdims=True)) @ V)(np.exp(Q @ K.T - (Q @ K.T).max(-1, keepdims=True)))"
SLIDING = "lambda x, h: x[np.arange(len(x) - len(h) + 1)[:, None] + np.arange(len(h))[None, :]] @ h"
# Inputs, output, body, reference.
SPECS: dict[str, tuple[list[str], str, str, str]] = {
    "masked softmax": (["X{float}[M N]", "mask{bool}[M N]"], "Y{float}[M N]", SOFTMAX,
                       "lambda X, mask: (lambda e: e / e.sum(1, keepdims=True))(np.where(mask, np.exp(X), 0))"),
    "flash attention": (["Q{float}[M D]", "K{float}[N D](where N > 0)", "V{float}[N E]"], "O{float}[M E]", FLASH, ATTENTION),
    "log of a sum of exponentials": (["X{float}[M N](where N > 0)"], "Y{float}[M]", LOGSUMEXP, "lambda X: np.log(np.exp(X).sum(1))"),
    "exponential of minus infinity": (["x{float}[N]"], "y{float}[N]", EDGE, "lambda x: x"),
    "correlation": (["x{float}[N]", "h{float}[T](where T <= N + 1)"], "y{float}[(+ (- N T) 1)]", CORRELATION, SLIDING),
    "filter": (["x{int16}[N](where N = L + T - 1, T > 0)", "h{int16}[T]"], "y{int32}[L]",
               CORRELATION.replace("(+ (- N T) 1)", "L").replace("(* (aref x (+ i k)) (aref h k))", "(* (cast int32 (aref x (+ i k))) (cast int32 (aref h k)))"),
               SLIDING),
}


def text_of(spec: tuple[list[str], str, str, str], cases: str) -> str:
    inputs, output, body, reference = spec
    return (f'[composite]\nname = "F"\ninputs = {inputs}\noutputs = ["{output}"]\n[implementation]\ncode = """{body}"""\n'
            f'[test]\ncode = """{reference}"""\n{cases}').replace("'", '"')


def built(spec: tuple[list[str], str, str, str], cases: str = "") -> Built:
    return build([SpecText("f.toml", text_of(spec, cases), "toml")], OPTIONS)


def reports(spec: tuple[list[str], str, str, str], cases: str = "") -> list[runner.Report]:
    return runner.run_cases(built(spec, cases), OPTIONS)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", SPECS)
def test_a_right_reference_is_ok_and_three_times_it_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, output, body, reference = SPECS[name]
    bounds: list[Any] = []
    right = comparison.check
    monkeypatch.setattr(comparison, "check", lambda *a: bounds.append(a[2]) or right(*a))
    found, = reports(SPECS[name])
    assert (found.status, found.outputs[0].loose) == ("ok", 0), found.lines()
    assert found.outputs[0].compared == found.outputs[0].elements > 0
    assert np.isfinite(bounds[0]).all()
    other = reference.replace("lambda", "lambda", 1).replace(": ", ": 3 * (", 1) + ")"
    found, = reports((inputs, output, body, other))
    assert found.status == "wrong", found.lines()


@pytest.mark.parametrize(("ratio", "said"), [
    (0.0, "ok: no error beyond the last digit, compared"), (0.01, "ok: largest error less than 1 % of the tolerance, compared"),
    (0.14, "ok: largest error 7 % of the tolerance, compared"), (2.0, "ok: largest error 100 % of the tolerance, compared"),
    (5.0, "WRONG: largest error 2.5 times the tolerance, compared"), (np.inf, "WRONG, compared"),
])
def test_how_large_an_error_is_in_words(ratio: float, said: str) -> None:
    """`ratio` is of the bound; the tolerance is twice that."""
    output = OutputReport("Y", ratio <= 2, ratio, (0,), 0, "")
    assert Report("F", "", {}, "ok" if output.passed else "wrong", "the case's arrays", (output,)).lines() == [f"F(): {said} with the case's arrays"]


def test_sizes_without_elements_are_vacuous_unless_the_case_means_them() -> None:
    case = "[[test.case]]\nname = 'none'\nsizes = { N = 5, T = 6 }\n"
    found, = reports(SPECS["correlation"], case)
    assert (found.status, found.passed, found.diagnostics[0].code) == ("vacuous", False, "E837")
    assert found.lines() == ["F [none](N=5, T=6): VACUOUS: nothing was compared: y has no element"]
    assert 'expect = "empty"' in (found.diagnostics[0].hint or "")
    place = found.diagnostics[0].place
    assert place is not None
    assert text_of(SPECS["correlation"], case).split("\n")[place.line - 1] == "[[test.case]]"
    found, = reports(SPECS["correlation"], case + "expect = 'empty'\n")
    assert (found.status, found.diagnostics) == ("ok", ())
    assert found.lines() == ["F [none](N=5, T=6): ok: y has no element, as the case expects; nothing else is there to compare"]
    found, = reports(SPECS["correlation"], "[[test.case]]\nsizes = { N = 5, T = 5 }\nexpect = 'empty'\n")
    assert found.status == "wrong"
    assert "every output has some" in found.lines()[0]


def test_of_several_outputs_each_is_compared_unless_it_is_meant_to_be_empty() -> None:
    spec = (["x{float}[N]"], 'y{float}[N]", "s{float}[]', "(setf s 1) (dotimes (i N) (setf (aref y i) (aref x i)))", "lambda x: (x, 1)")
    case = "[[test.case]]\nsizes = { N = 0 }\n"
    assert [r.status for r in reports(spec, case + case + "expect = 'empty'")] == ["vacuous", "ok"]
    wrong = (*spec[:3], "lambda x: (x, 2)")
    assert [r.status for r in reports(wrong, case + "expect = 'empty'")] == ["wrong"]


def test_elements_that_all_lie_on_an_edge_are_vacuous_and_many_are_told() -> None:
    spec = (["x{float}[N]"], "y{int32}[N]", "(dotimes (i N) (setf (aref y i) (cast int32 (* 10.0 (aref x i)))))", "lambda x: np.trunc(10 * x)")

    def of(*x: float) -> runner.Report:
        return reports(spec, f"[[test.case]]\nsizes = {{ N = {len(x)} }}\ninput = {{ x = {list(x)} }}")[0]
    found = of(0.1, 0.2)
    assert (found.status, found.outputs[0].loose) == ("vacuous", 2)
    assert "all 2 elements of y lie on an edge" in found.lines()[0]
    assert "decisions" in (found.diagnostics[0].hint or "")
    found = of(0.1, 0.2, 0.25)
    assert found.passed
    assert found.lines()[1] == "  y: 2 of 3 elements lie on an edge, where any value passes: more than half of it is not tested"
    assert of(0.1, 0.25).lines()[1] == "  y: 1 of 2 elements lie on an edge, where any value passes"
    assert of(0.25, 0.55).lines()[1:] == []


def test_sizes_that_nobody_gave_and_that_do_not_exist_fail() -> None:
    """That operator alone: others are tested."""
    found, = reports((["x{float}[N]"], "y{float}[(- N N)]", "(dotimes (i (- N N)) (setf (aref y i) 0))", "lambda x: x[:0]"))
    assert (found.status, found.passed, found.diagnostics[0].code) == ("failed", False, "E667")
    assert "give every output an element" in found.diagnostics[0].message


def test_a_run_without_elements_fails_however_it_is_asked_for() -> None:
    """Also --test "N=0", where there is no case that could mean it."""
    found, = runner.run_at(built(SPECS["exponential of minus infinity"]), {"N": 0}, OPTIONS)
    assert (found.status, found.passed, found.as_json()["status"]) == ("vacuous", False, "vacuous")
    assert [(o["elements"], o["compared"]) for o in found.as_json()["outputs"]] == [(0, 0)]


# -- planted faults

def test_a_bound_that_is_nan_makes_no_wrong_result_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: an infinity has a rounding error, which is infinite, and a slope of 0 times that is NaN."""
    monkeypatch.setattr(rounding_bounds, "finite_size", rounding_bounds.size)
    monkeypatch.setattr(rounding_bounds, "is_finite", lambda x: TRUE)
    monkeypatch.setattr(rounding_bounds, "_is_exact_zero", lambda *_: FALSE)
    monkeypatch.setattr(error_tracking, "settled", lambda magnitude, bound, greatest: bound)
    inputs, output, body, reference = SPECS["exponential of minus infinity"]
    found, = reports((inputs, output, body, reference.replace(": ", ": 3 * ")))
    assert found.status == "wrong"


def test_a_reference_whose_bounds_say_nothing_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: every bound is infinite."""
    right = runner.expected_of

    def unbounded(*args: Any) -> Expected:
        e = right(*args)
        return Expected(e.what, e.values, {n: np.full(v.shape, np.inf) for n, v in e.values.items()}, e.loose)
    monkeypatch.setattr(runner, "expected_of", unbounded)
    assert [r.status for r in reports(SPECS["exponential of minus infinity"])] == ["vacuous"]

"""Test runs: a right kernel passes, a wrong one does not, and the report says why."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caten.compiler import Built, build
from caten.core.program import Buffer
from caten.errors import CatenError, NothingMatched, UsageError
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import data, reference, runner
from caten.testing.sizes_and_scalars import match_settings

SPEC = '''
[composite]
name = "Scale"
inputs = ["x{float}[N]", "ix{int32}[R]"]
outputs = ["y{float}[R]"]
[implementation]
code = """
(dotimes (i R)
  (setf (aref y i) (* 2.0 (aref x (aref ix i)))))
"""
[test]
code = """REFERENCE"""
'''
OPTIONS = Options(runtime="numpy", use_cache=False)


def built(code: str = "lambda x, ix: 2 * x[ix]", extra: str = "", folder: Path | None = None) -> Built:
    text = SPEC.replace("REFERENCE", code) + extra
    name = str(folder / "scale.toml") if folder else "scale.toml"
    return build([SpecText(name, text, "toml")], OPTIONS)


def run(made: Built) -> runner.Report:
    return runner.run_at(made, match_settings([("N", 7), ("R", 5)], made.ops), OPTIONS)[0]


def test_a_right_kernel_passes_and_is_timed() -> None:
    report = run(built())
    assert report.passed
    assert report.seconds
    assert "ok: no error beyond the last digit, compared with the spec's [test]" in report.lines()[0]
    assert report.as_json()["status"] == "ok"


def test_a_reference_that_differs_is_reported_with_the_worst_element() -> None:
    report = run(built("lambda x, ix: 2.001 * x[ix]"))
    assert report.status == "wrong"
    assert "the reference says" in "\n".join(report.lines())


def test_work_may_depend_on_contents() -> None:
    code = "(dotimes (i R) (setf (aref y i) 0.0) (dotimes (j (max 0 (min N (aref ix i)))) (incf (aref y i) (aref x j))))"
    head, rest = SPEC.split("(dotimes", 1)
    text = head + code + rest[rest.index('\n"""'):].replace("REFERENCE", "lambda x, ix: np.array([x[:max(0, k)].sum() for k in ix], x.dtype)")
    report = run(build([SpecText("ragged.toml", text, "toml")], OPTIONS))
    assert report.passed
    assert report.flops == 0


def test_a_lisp_reference() -> None:
    assert run(built("(lambda (x ix y n r) (dotimes (i R) (setf (aref y i) (+ (aref x (aref ix i)) (aref x (aref ix i))))))")).passed


@pytest.mark.slice(4)
@pytest.mark.parametrize(("code", "expected"), [
    ("lambda x, q: x", "E807"), ("lambda x: x", "E808"), ("lambda x: (x, x)", "E808"), ("lambda x: np.load(x)", "E804"),
    ("lambda x: [0 for i in range(10 ** 12)]", "E806"), ("lambda x: 'a'", "E808"), ("lambda x: 2 ** 10_000", "E808"), ("lambda x: [[1.0], x]", "E808"),
])
def test_a_reference_that_cannot_be_used(code: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "CPU", 1)
    monkeypatch.setattr(reference, "MEMORY", 1 << 28)
    with pytest.raises(CatenError) as caught:
        run(built(code))
    assert caught.value.diagnostics[0].code in (expected, "E805")


WINDOW = """
[composite]
name = "Window"
inputs = ["x{float}[N]", "h{float}[T]"]
outputs = ["y{float}[(+ (- N T) 1)]"]
[implementation]
code = "(dotimes (i (+ (- N T) 1)) (setf (aref y i) (* (aref x i) (aref h 0))))"
[test]
code = "lambda x, h: x[:len(x) - len(h) + 1] * h[0]"
[[test.case]]
name = "too short"
sizes = { N = 3, T = 6 }
EXPECT
"""


@pytest.mark.parametrize(("expect", "status"), [
    ("", "failed"), ('expect = { error = "does not hold" }', "ok"), ('expect = { error = "no memory" }', "wrong"), ('expect = "empty"', "failed")])
def test_sizes_that_no_array_can_have_are_a_failure_of_the_case(expect: str, status: str) -> None:
    made = build([SpecText("window.toml", WINDOW.replace("EXPECT", expect), "toml")], OPTIONS)
    (report,) = runner.run_cases(made, OPTIONS)
    assert (report.status, [d.code for d in report.diagnostics]) == (status, ["E711"] if status == "failed" else [])
    assert status == "ok" or "(>= (+ (- N T) 1) 0) does not hold" in report.lines()[0]


def test_a_case_whose_reference_leaves_an_array_fails_alone() -> None:
    options = replace(OPTIONS, unchecked=True)
    cases = "".join([f"[[test.case]]\nname = \"{name}\"\nsizes = {{ N = 2, R = 1 }}\ninput = {{ x = [1.0, 2.0], ix = [{ix}] }}\n"
                     for name, ix in (("outside", -1), ("inside", 1))])
    made = build([SpecText("scale.toml", SPEC.replace("REFERENCE", "lambda x, ix: 2 * x[ix]") + cases, "toml")], options)
    outside, inside = runner.run_cases(made, options)
    assert inside.passed
    assert (outside.status, outside.diagnostics[0].code) == ("failed", "E485")
    assert "without -fno-bounds-check" in (outside.diagnostics[0].hint or "")


def test_bounds_as_large_as_the_values_are_said_to_show_little() -> None:
    step = SPEC.replace("(* 2.0 (aref x (aref ix i)))", "(if (< (* (aref x (aref ix i)) 3.3) (* 1.1 (* 3 (aref x (aref ix i))))) 1 1000)")
    made = build([SpecText("step.toml", step.replace("REFERENCE", "lambda x, ix: 500 + 0 * x[ix]"), "toml")], OPTIONS)
    assert "say" in run(made).lines()[1]
    assert len(run(built()).lines()) == 2                 # the second is the time


LATE = """
[composite]
name = "Late"
inputs = ["x{float}[N]", "s{int}[]", "t{float}[]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) 0)) BODY"
[test]
code = "lambda x, s, t: 0 * x"
"""


@pytest.mark.parametrize(("body", "reached"), [
    ("(loop (i 50 N) (setf (aref y i) (aref x i)))", True), ("(dotimes (i (floordiv N 20)) (incf (aref y i) (aref x i)))", True),
    ("(loop (i 0 (min s N)) (setf (aref y i) (aref x i)))", True), ("(dotimes (i N) (when (> t 100) (setf (aref y i) (aref x i))))", False)])
def test_default_sizes_reach_every_statement(body: str, reached: bool) -> None:
    """The test code is wrong wherever the second statement is run; where it never is, the report says so."""
    (report,) = runner.run_cases(build([SpecText("late.toml", LATE.replace("BODY", body), "toml")], OPTIONS), OPTIONS)
    assert report.status == ("wrong" if reached else "ok")
    assert report.unreached == (() if reached else ("y in line 7",))
    assert any("never stored to: y in line 7" in line for line in report.lines()) is not reached


def test_integers_beyond_int64_stay_integers() -> None:
    spec = (SPEC.replace("x{float}[N]", "x{uint64}[N]").replace("y{float}[R]", "y{uint64}[R]").replace("(* 2.0 (aref x (aref ix i)))", "(aref x (aref ix i))")
            .replace("REFERENCE", "lambda x, ix: x[ix]"))
    case = "[[test.case]]\nsizes = { N = 2, R = 2 }\ninput = { x = [18446744073709551614, 9007199254740993], ix = [1, 0] }\n"
    (report,) = runner.run_cases(build([SpecText("scale.toml", spec + case, "toml")], OPTIONS), OPTIONS)
    assert report.passed, report


def test_cases_files_tags_and_expected_failures(tmp_path: Path) -> None:
    x, k = np.array([1.0, 2.0, 3.0], np.float32), np.array([2, 0], np.int32)
    np.savez(tmp_path / "in.npz", x=x, ix=k)
    np.savez(tmp_path / "out.npz", y=2 * x[k])
    extra = """
[[test.case]]
name = "files"
sizes = { N = 3, R = 2 }
input = "in.npz"
expect = "out.npz"
tags = ["quick"]
[[test.case]]
name = "inline"
sizes = { N = 3, R = 2 }
input = { x = [1.0, 2.0, 3.0], ix = [2, 0] }
[[test.case]]
name = "outside"
sizes = { N = 3, R = 2 }
input = { x = [1.0, 2.0, 3.0], ix = [3, 0] }
expect = { error = "outside" }
"""
    made = built(extra=extra, folder=tmp_path)
    assert [(r.case, r.status) for r in runner.run_cases(made, OPTIONS)] == [("files", "ok"), ("inline", "ok"), ("outside", "ok")]
    assert [r.case for r in runner.run_cases(made, OPTIONS, tags=("quick",))] == ["files"]
    assert [r.case for r in runner.run_cases(made, OPTIONS, names=("inline",))] == ["inline"]
    for selection in ({"names": ("nope",)}, {"tags": ("nope",)}):
        with pytest.raises(NothingMatched):
            runner.run_cases(made, OPTIONS, **selection)  # type: ignore[arg-type]
    np.savez(tmp_path / "out.npz", y=3 * x[k])
    assert [r.status for r in runner.run_cases(made, OPTIONS, names=("files",))] == ["wrong"]


def test_a_call_that_should_fail_and_does_not_is_wrong(tmp_path: Path) -> None:
    extra = '[[test.case]]\nname = "fine"\nsizes = { N = 3, R = 2 }\nexpect = { error = "outside" }\n'
    report = runner.run_cases(built(extra=extra), OPTIONS)[0]
    assert report.status == "wrong"
    assert "succeeded" in "\n".join(report.lines())


def test_a_kernel_that_crashes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    monkeypatch.setattr(runner, "_kernel", lambda *a: os.kill(os.getpid(), 9))
    report = run(built())
    assert report.status == "crash"
    assert "SIGKILL" in report.lines()[0]


def test_settings_are_checked() -> None:
    op = built().ops[0]
    for given in ([("N", 7)], [("N", 7), ("R", -1)], [("N", 7), ("R", 1.5)], [("N", 7), ("R", 1), ("Z", 1)]):
        with pytest.raises(UsageError):
            match_settings(given, [op])
    assert match_settings([("n", 7), ("r", 5)], [op])["N"] == 7


def test_drawn_data_depends_on_the_seed_and_nothing_else() -> None:
    op = built().ops[0]
    assert isinstance(op, OpProgram)
    a, b, c = (data.arguments(op, {"N": 50, "R": 40}, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a["x"], b["x"])
    assert (a["x"] != c["x"]).any()
    assert np.abs(a["x"]).max() < 1
    assert a["ix"].min() >= 0
    assert a["ix"].max() < 50                                           # it indexes x
    assert np.isnan(a["y"]).all()                                      # poisoned
    np.testing.assert_array_equal(data.arguments(op, {"N": 50, "R": 4}, 1)["x"], a["x"])


def test_arrays_lie_in_the_declared_order() -> None:
    column = Buffer("A", "f32", (), (1, 0), "in")
    assert data.laid_out(column, (3, 5)).flags.f_contiguous
    assert data.laid_out(replace_order(column), (2, 3, 4)).strides == (4, 8, 24)


def replace_order(b: Buffer) -> Buffer:
    return b.replace(order=(2, 1, 0))


def test_a_report_of_a_timed_run_can_be_compared() -> None:
    report = run(built())
    assert replace(report, seconds=None).lines() == report.lines()[:1]


def test_without_cases_sizes_are_chosen_that_satisfy_the_conditions() -> None:
    text = SPEC.replace("REFERENCE", "lambda x, ix: 2 * x[ix]").replace("[test]", '[test]\nrequirements = ["N = (* 2 R)"]')
    made = build([SpecText("scale.toml", text, "toml")], OPTIONS)
    report = runner.run_cases(made, OPTIONS)[0]
    assert report.passed
    assert report.arguments["N"] == 2 * report.arguments["R"]

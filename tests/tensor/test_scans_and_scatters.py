"""Running totals and accumulations at computed indices: raised to `scan` and `scatter`, and lowered to loops again."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_fused_text import is_lowered_alike, kernels
from test_raising import definitions, op

from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.loop.statements import For
from caten.semantics import interpret
from caten.tensor.boundaries import line_of
from caten.tensor.fused_text import fused
from caten.tensor.fusion import boundaries_of, kernels_of
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.tensor_verifier import verify
from caten.tensor.values import FusedKernel

SIZES = {"M": 3, "N": 7, "K": 2}
SCALAR = "(local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial {})"
ROWS = "(for i 0 M 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial {}))"
INTO_C = "(incf (aref s) (aref C i j)) (setf (aref C i j) (aref s))"
# body -> its definitions, and the number of kernels
SCANS: dict[str, tuple[str, list[str], int]] = {
    "inclusive": (SCALAR.format("(incf (aref s) (aref x j)) (setf (aref y j) (aref s))"),
                  ["(scan f32 ((i N)) i add inclusive up true (read x i))"], 1),
    "exclusive": (SCALAR.format("(setf (aref y j) (aref s)) (incf (aref s) (aref x j))"),
                  ["(scan f32 ((i N)) i add exclusive up true (read x i))"], 1),
    "in place": (ROWS.format(INTO_C), ["(scan f32 ((i M) (j N)) j add inclusive up true (read C i j))"], 1),
    "exclusive, in place": (ROWS.format("(let old f32 (aref C i j)) (setf (aref C i j) (aref s)) (incf (aref s) old)"),
                            ["(scan f32 ((i M) (j N)) j add exclusive up true (read C i j))"], 1),
    "down by the index": (SCALAR.format("(incf (aref s) (aref x (- (- N j) 1)) max) (setf (aref y (- (- N j) 1)) (aref s))"),
                          ["(scan f32 ((i N)) i max inclusive down true (read x i))",
                           "(compute f32 ((i N)) (max (read v0 i) 0.0))"], 1),
    "down by the step": ("(local s f32 () register) (setf (aref s) 0.0) (for j (- N 1) -1 -1 serial (setf (aref y j) (aref s)) (incf (aref s) (aref x j)))",
                         ["(scan f32 ((i N)) i add exclusive down true (read x i))"], 1),
    "along the first axis": (
        "(for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0) (for i 0 M 1 serial (incf (aref s) (aref C i j)) (setf (aref C i j) (aref s))))",
        ["(scan f32 ((i M) (j N)) i add inclusive up true (read C i j))"], 1),
    "in an array": (
        """(local s f32 (N) scratch) (for j 0 N 1 serial (setf (aref s j) (aref x j)))
           (for i 0 M 1 serial (for j_2 0 N 1 serial (incf (aref s j_2) (aref C i j_2)) (setf (aref C i j_2) (aref s j_2))))""",
        ["(scan f32 ((i M) (j N)) i add inclusive up true (read C i j))", "(compute f32 ((i M) (j N)) (+ (read v0 i j) (read x j)))"], 1),
    "of some elements": (SCALAR.format("(if (< 0.5 (aref x j)) ((incf (aref s) (aref x j)))) (setf (aref y j) (aref s))"),
                         ["(scan f32 ((i N)) i add inclusive up (< 0.5 (read x i)) (read x i))"], 1),
    "maps before and behind": (
        ROWS.format("(incf (aref s) (* 2.0 (aref C i j))) (setf (aref C i j) (+ (aref y j) (sin (aref s))))"),
        ["(scan f32 ((i M) (j N)) j add inclusive up true (* (read C i j) 2.0))",
         "(compute f32 ((i M) (j N)) (+ (sin (read v0 i j)) (read y j)))"], 1),
    "divided by the total": (
        SCALAR.format("(incf (aref s) (aref x j)) (setf (aref y j) (aref s))") + "(for k2 0 N 1 serial (setf (aref y k2) (/ (aref y k2) (aref s))))",
        ["(scan f32 ((i N)) i add inclusive up true (read x i))", "(reduce f32 () ((p N)) add true (read x p))",
         "(compute f32 ((i N)) (/ (read v0 i) (read v1)))"], 2),
}
SCATTERS: dict[str, tuple[str, list[str], int]] = {
    "at an index that is read": ("(for i 0 N 1 serial (incf (aref y (max 0 (min (- N 1) (aref k i)))) (aref x i)))",
                                 ["(scatter f32 y (N) ((i N)) add ((max (min (- N 1) (read k i)) 0)) true (read x i))"], 1),
    "where several iterations meet": ("(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref y (floordiv j 2)) (aref C i j) max)))",
                                      ["(scatter f32 y (N) ((i M) (j N)) max ((floordiv j 2)) true (read C i j))"], 1),
    "into what a loop has set": (
        "(for i 0 N 1 serial (setf (aref y i) 0.0)) (for i_2 0 N 1 serial (if (< (aref x i_2) 0.5) ((incf (aref y (max 0 (min (- N 1) (aref k i_2)))) 1.0))))",
        ["(compute f32 ((i N)) 0.0)", "(scatter f32 v0 (N) ((i N)) add ((max (min (- N 1) (read k i)) 0)) (< (read x i) 0.5) 1.0)"], 2),
    "of rows": ("(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref C (floordiv i 2) j) (aref y j))))",
                ["(scatter f32 C (M N) ((i M) (j N)) add ((floordiv i 2) j) true (read y j))"], 1),
    "of its own elements": ("(for i 0 N 1 serial (setf (aref y i) (+ 1.0 (aref y i)))) (for i_2 0 N 1 serial (setf (aref y i_2) (* 2.0 (aref y i_2)))) "
                            "(for i_3 0 N 1 serial (incf (aref y (max 0 (min (- N 1) (aref k i_3)))) (aref x i_3)))",
                            ["(compute f32 ((i N)) (* (+ (read y i) 1.0) 2.0))", "(scatter f32 v0 (N) ((i N)) add ((max (min (- N 1) (read k i)) 0)) true (read x i))"], 2),
}
STAYS = {
    "two accumulations": SCALAR.format("(incf (aref s) (aref x j)) (setf (aref y j) (aref s)) (incf (aref s) 1.0)"),
    "a recurrence": SCALAR.format("(incf (aref s) (* (aref s) (aref x j))) (setf (aref y j) (aref s))"),
    "a sum that goes on": SCALAR.format("(incf (aref s) (aref x j)) (if (< 1.0 (aref s)) ((incf (aref y j) 1.0)))").replace(
        "(incf (aref s) (aref x j))", "(if (< (aref s) 1.0) ((incf (aref s) (aref x j))))"),
    "a reset": "(local s f32 (N) scratch) (for j 0 N 1 serial (setf (aref s j) 0.0)) (for i 0 M 1 serial (for j_2 0 N 1 serial "
               "(incf (aref s j_2) (aref C i j_2)) (setf (aref C i j_2) (aref s j_2)) (if (< 1.0 (aref s j_2)) ((setf (aref s j_2) 0.0)))))",
    "an array of each iteration that is not set": "(for i 0 M 1 serial (local s f32 (N) scratch) (for j 0 N 1 serial (incf (aref s (floordiv j 2)) 1.0)) (for j_2 0 N 1 serial (setf (aref C i j_2) 1.0)))",
    "bins that are set in between": "(for i 0 N 1 serial (incf (aref y (max 0 (min (- N 1) (aref k i)))) 1.0) (setf (aref y i) 0.0))",
    "bins that are read by the index": "(for i 0 N 1 serial (incf (aref y (max 0 (min (- N 1) (aref k i)))) (aref y i)))",
    "two scatters": "(for i 0 N 1 serial (incf (aref y (max 0 (min (- N 1) (aref k i)))) 1.0) (incf (aref y (max 0 (min (- N 1) (aref k i)))) (aref x i)))",
    "a store at an index that is read": "(for i 0 N 1 serial (setf (aref y (max 0 (min (- N 1) (aref k i)))) (aref x i)))",
}


def results(program: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    values: dict[str, Any] = dict(SIZES)
    for name, shape in {"A": "MK", "B": "KN", "C": "MN", "x": "N", "y": "N"}.items():
        values[name] = rng.random([SIZES[n] for n in shape], np.float32)
    values["k"] = rng.integers(0, SIZES["M"], SIZES["N"])
    assert interpret.run(program, values) == 0
    return {name: values[name] for name in ("C", "y")}


@pytest.mark.parametrize("name", [*SCANS, *SCATTERS])
def test_raised_and_lowered(name: str) -> None:
    body, expected, count = (SCANS | SCATTERS)[name]
    assert definitions(body) == [f"(define v{n} {text})" for n, text in enumerate(expected)]
    program = raise_op(op(body))
    assert len(kernels_of(program)) == count
    assert is_lowered_alike(program)
    assert fused(program).all(FusedKernel)[-1].form == ("scatter" if name in SCATTERS else "scan")
    before, after = results(op(body)), results(lower(program))
    for each, want in before.items():
        np.testing.assert_allclose(after[each], want, rtol=2e-6)


@pytest.mark.parametrize(("start", "scatters", "expected"), [
    ("(aref C i j)", "(for j_2 0 N 1 serial (incf (aref s (floordiv j_2 2)) (aref x j_2)))",
     ["(compute f32 ((i M) (j N)) (read C i j))", "(scatter f32 v0 (M N) ((i M) (j N)) add (i (floordiv j 2)) true (read x j))"]),
    ("0.0", "(for j_2 0 N 1 serial (incf (aref s (floordiv j_2 2)) (aref C i j_2))) (for j_4 0 N 1 serial (incf (aref s (floordiv j_4 3)) 1.0 max))",
     ["(compute f32 ((i M) (j N)) 0.0)", "(scatter f32 v0 (M N) ((i M) (j N)) add (i (floordiv j 2)) true (read C i j))",
      "(scatter f32 v1 (M N) ((i M) (j N)) max (i (floordiv j 3)) true 1.0)"]),
])
def test_a_scatter_to_an_array_of_each_iteration_has_its_loop_as_an_axis(start: str, scatters: str, expected: list[str]) -> None:
    body = f"""(for i 0 M 1 serial (local s f32 (N) scratch) (for j 0 N 1 serial (setf (aref s j) {start})) {scatters}
               (for j_3 0 N 1 serial (setf (aref C i j_3) (aref s j_3))))"""
    last = f"(compute f32 ((i M) (j N)) (read v{len(expected) - 1} i j))"
    assert definitions(body) == [f"(define v{n} {text})" for n, text in enumerate((*expected, last))]
    before, after = results(op(body)), results(lower(raise_op(op(body))))
    np.testing.assert_allclose(after["C"], before["C"], rtol=2e-6)


@pytest.mark.parametrize("why", STAYS)
def test_stays_a_nest(why: str) -> None:
    assert "(nest " in definitions(STAYS[why])[-1]
    before, after = results(op(STAYS[why])), results(lower(raise_op(op(STAYS[why]))))
    for each, want in before.items():
        np.testing.assert_array_equal(after[each], want)


@pytest.mark.parametrize("name", [n for n in SCANS if n != "divided by the total"])
def test_a_scan_and_its_maps_are_one_loop_along_its_axis(name: str) -> None:
    program = lower(raise_op(op(SCANS[name][0])))
    loops = [n for n in program.kernels[0].walk() if isinstance(n, For)]
    assert len(loops) == (2 if "M)" in SCANS[name][1][0] else 1)


def test_a_loop_that_runs_down_over_independent_elements_is_a_map() -> None:
    up, down = ("(for i 0 N 1 serial (setf (aref y i) (aref x i)))",
                "(for i 0 N 1 serial (setf (aref y (- (- N 1) i)) (aref x (- (- N 1) i))))")
    assert definitions(up) == definitions(down)


def test_why_a_scan_and_a_scatter_end_a_kernel() -> None:
    twice = SCALAR.format("(incf (aref s) (aref x j)) (setf (aref y j) (aref s))") + (
        " (local t f32 () register) (setf (aref t) 0.0) (for k2 0 N 1 serial (incf (aref t) (aref y k2)) (setf (aref y k2) (aref t)))")
    assert [line_of(b) for b in boundaries_of(raise_op(op(twice)))] == ["v0 | v1: a scan shares a kernel with maps only"]
    assert [line_of(b) for b in boundaries_of(raise_op(op(SCATTERS["into what a loop has set"][0])))] == [
        "v0 | v1: a scatter is a kernel by itself"]


def test_the_axis_of_a_scan_is_no_outer_loop() -> None:
    text = "(group k0 (outer (i N)) (form scan) (define v1 (scan f32 ((i N) (j N)) i add inclusive up true (read x j))))"
    with pytest.raises(CatenError, match="E472: k0: the outer loops are no axes of v1 with these extents"):
        verify(kernels(text))


@pytest.mark.parametrize(("value", "message"), [
    ("(scan f32 ((i N)) k add inclusive up true 1.0)", "E470: v: the scan is along 'k', which is none of its axes"),
    ("(scan f32 ((i N)) i add inclusive sideways true 1.0)", "E471: v: a scan is up or down, not 'sideways'"),
    ("(scan f32 ((i N)) i add outside up true 1.0)", "E471: v: a scan is inclusive or exclusive, not 'outside'"),
    ("(scan f32 ((i N)) i xor inclusive up true 1.0)", "E471: v: elements of f32 cannot be reduced by xor"),
    ("(scan f32 ((i N)) i add inclusive up true (read X i i))", "E471: v: .* does not agree with the type and rank of 'X'"),
    ("(scatter f32 w (N) ((i N)) add (i) true 1.0)", "E470: v: reads 'w', which is not defined before"),
    ("(scatter f32 X (N N) ((i N)) add (i i) true 1.0)", r"E471: v: 'X': f32 \(N\), declared f32 \(N N\)"),
    ("(scatter f32 X (N) ((i N)) add (i i) true 1.0)", "E471: v: the index is not one i64 for each axis of 'X'"),
    ("(scatter f32 X (N) ((i N)) add (2.0) true 1.0)", "E471: v: the index is not one i64 for each axis of 'X'"),
    ("(scatter f32 X (N) ((i N)) or (i) true 1.0)", "E471: v: elements of f32 cannot be reduced by or"),
    ("(scatter f32 X (N) ((i N)) add (j) true 1.0)", "E470: v: 'j' is not bound here"),
])
def test_the_verifier_refuses(value: str, message: str) -> None:
    text = f"(tensor T (size N) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (define v {value}) (output Y v))"
    with pytest.raises(CatenError, match=message):
        verify(resolve(read(text)[0]))


def test_a_scatter_that_reads_its_source_elsewhere_works_on_a_copy() -> None:
    text = """(tensor T (size N) (buffer k i64 (N) (0) in) (buffer y f32 (N) (0) inout)
      (define v0 (scatter f32 y (N) ((i N)) add ((max 0 (min (read k i) (- N 1)))) true (read y (- (- N i) 1)))) (output y v0))"""
    program = resolve(read(text)[0])
    assert resolve(read(show(program))[0]) is program
    values = {"N": 5, "k": np.array([1, 1, 0, 4, 2]), "y": np.arange(5, dtype=np.float32)}
    want = values["y"].copy()
    np.add.at(want, values["k"], values["y"][::-1])
    assert interpret.run(lower(program), values) == 0
    np.testing.assert_array_equal(values["y"], want)

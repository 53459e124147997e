"""Run-time checks as values, and accesses at the nearest index inside."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_raising import op

from caten import driver, loading
from caten.core.program import Check, Ensure, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.bounds_checks import add_checks
from caten.loop.statements import Fail, For, Local
from caten.options import Options
from caten.semantics import interpret
from caten.tensor import tensor_verifier
from caten.tensor.fusion import kernels_of
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.values import Define, FailIf, Nest, TensorProgram, reads_of


def text_of(node: Any) -> str:
    return " ".join(show(node, 1 << 20).split())


def raised(body: str, facts: str = "") -> TensorProgram:
    program = raise_op(add_checks(op(body, facts)))
    assert resolve(read(show(program))[0]) is program
    tensor_verifier.verify(program)
    return program


def loops(body: str, facts: str = "") -> list[str]:
    return [text_of(s) for s in lower(raised(body, facts)).kernels[0].body]


GATHER = "(for i 0 N 1 serial (setf (aref y i) (aref x (aref k i))))"
OUTSIDE = "(or (< (read k p) 0) (<= N (read k p)))"
RAISED = {
    "an element for each index": (GATHER, [
        f"(define v0 (reduce bool () ((p N)) or true {OUTSIDE}))",
        "(define v1 (compute f32 ((i N)) (read x (inside (read k i) N @1))))", "(fail-if (read v0) @1)"]),
    "a column for each index: the loop over its elements has no axis in the check": (
        "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (aref A i (aref k j)))))", [
            "(define v0 (reduce bool () ((p N)) or (< 0 M) (or (< (read k p) 0) (<= K (read k p)))))",
            "(define v1 (compute f32 ((i M) (j N)) (read A i (inside (read k j) K @1))))", "(fail-if (read v0) @1)"]),
    "two loops of one extent on which it does not depend": (
        "(for i 0 N 1 serial (for j 0 M 1 serial (for o 0 M 1 serial (incf (aref y i) (aref x (aref k i))))))", [
            f"(define v0 (reduce bool () ((p N)) or (< 0 M) {OUTSIDE}))",
            "(define v1 (reduce f32 ((i N)) ((p M) (q M)) add true (read x (inside (read k i) N @1))))",
            "(define v2 (compute f32 ((i N)) (+ (read y i) (read v1 i))))", "(fail-if (read v0) @1)"]),
    "under a condition": ("(for i 0 N 1 serial (if (< (aref x i) 0.0) ((setf (aref y i) (aref x (aref k i))))))", [
        f"(define v0 (reduce bool () ((p N)) or true (and (< (read x p) 0.0) {OUTSIDE})))",
        "(define v1 (compute f32 ((i N)) (where (< (read x i) 0.0) (read x (inside (read k i) N @1)) (read y i))))",
        "(fail-if (read v0) @1)"]),
    "under a condition on the loop": ("(for i 0 N 1 serial (if (< i K) ((setf (aref y i) (aref x (aref k i))))))", [
        f"(define v0 (reduce bool () ((p N)) or (< p K) {OUTSIDE}))",
        "(define v1 (compute f32 ((i N)) (where (< i K) (read x (inside (read k i) N @1)) (read y i))))", "(fail-if (read v0) @1)"]),
    "in a triangle": ("(for i 0 N 1 serial (for j 0 i 1 serial (incf (aref y i) (* (aref x j) (aref x (+ j (aref k i)))))))", [
        "(define v0 (reduce bool () ((p N) (q N)) or (< q p) (or (< (+ q (read k p)) 0) (<= N (+ q (read k p))))))",
        "(define v1 (reduce f32 ((i N)) ((p N)) add (< p i) (* (read x (inside (+ (read k i) p) N @1)) (read x p))))",
        "(define v2 (compute f32 ((i N)) (+ (read y i) (read v1 i))))", "(fail-if (read v0) @1)"]),
    "a choice that the body makes needs none": (
        "(for i 0 N 1 serial (setf (aref y i) (where (where (<= 0 (aref k i)) (< (aref k i) N) false) (aref x (aref k i)) 0.0)))",
        ["(define v0 (compute f32 ((i N)) (where (and (<= 0 (read k i)) (< (read k i) N)) (read x (read k i)) 0.0)))"]),
    "an affine index under a condition that reads": (
        "(for i 0 N 1 serial (setf (aref y i) (where (<= 1 i) (aref x (- (aref k (- i 1)) 1)) 0.0)))", [
            "(define v0 (reduce bool () ((p N)) or (<= 1 p) (let ((t0 (- (where (<= 1 p) (read k (- p 1)) 0) 1))) (or (< t0 0) (<= N t0)))))",
            "(define v1 (compute f32 ((i N)) (where (<= 1 i) (read x (inside (- (where (<= 1 i) (read k (- i 1)) 0) 1) N @1)) 0.0)))",
            "(fail-if (read v0) @1)"]),
    "an element that nothing needs": ("(for i 0 N 1 serial (setf (aref y i) (aref x (aref k i))) (setf (aref y i) 1.0))", [
        f"(define v0 (reduce bool () ((p N)) or true {OUTSIDE}))", "(define v1 (compute f32 ((i N)) 1.0))", "(fail-if (read v0) @1)"]),
    "an accumulation": ("(for i 0 N 1 serial (incf (aref y (aref k i)) (aref x i)))", [
        f"(define v0 (reduce bool () ((p N)) or true {OUTSIDE}))",
        "(define v1 (scatter f32 y (N) ((i N)) add ((inside (read k i) N @1)) true (read x i)))", "(fail-if (read v0) @1)"]),
    "an accumulation under a condition": ("(for i 0 N 1 serial (if (< (aref x i) 0.5) ((incf (aref y (aref k i)) 1.0))))", [
        f"(define v0 (reduce bool () ((p N)) or true (and (< (read x p) 0.5) {OUTSIDE})))",
        "(define v1 (scatter f32 y (N) ((i N)) add ((inside (read k i) N @1)) (< (read x i) 0.5) 1.0))", "(fail-if (read v0) @1)"]),
    "rows that are accumulated": ("(for i 0 N 1 serial (for j 0 N 1 serial (incf (aref C (aref k i) j) (aref x i))))", [
        "(define v0 (reduce bool () ((p N)) or true (or (< (read k p) 0) (<= M (read k p)))))",
        "(define v1 (scatter f32 C (M N) ((i N) (j N)) add ((inside (read k i) M @1) j) true (read x i)))", "(fail-if (read v0) @1)"]),
    "an index of an index": ("(for i 0 N 1 serial (setf (aref y i) (aref x (aref k (aref k i)))))", [
        "(define v0 (compute i64 ((i N)) (read k (inside (read k i) N @1))))",
        f"(define v1 (reduce i64 () ((p N)) min true (where {OUTSIDE} @1 (where (or (< (read v0 p) 0) (<= N (read v0 p))) @2 9223372036854775807))))",
        "(define v2 (compute f32 ((i N)) (read x (inside (read v0 i) N @2))))", "(fail-if (= (read v1) @1) @1)", "(fail-if (= (read v1) @2) @2)"]),
}


@pytest.mark.parametrize(("body", "expected"), RAISED.values(), ids=RAISED.keys())
def test_checks_are_values(body: str, expected: list[str]) -> None:
    program = raised(body)
    rows = [c.row for c in program.all(Check) if "index" in c.text]
    found = [text_of(c) for c in (*program.all(Define), *program.all(FailIf))]
    assert found == [e.replace("@1", str(rows[0])).replace("@2", str(rows[-1])) if rows else e for e in expected]


def test_a_store_at_an_index_that_is_read_keeps_its_check() -> None:
    program = raised("(for i 0 N 1 serial (setf (aref y (aref k i)) 1.0))")
    (nest,) = [d.value for d in program.all(Define)]
    assert isinstance(nest, Nest)
    assert any(isinstance(n, Fail) for s in nest.stmts for n in s.walk())
    assert not program.checks


def test_loops_have_no_exit_and_an_index_gets_its_name_outside_of_loops_that_do_not_change_it() -> None:
    begin, nest, check, rows = loops("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (aref A i (aref k j)))))")[1:]
    assert begin == "(setf (aref outside) false)"
    assert nest.startswith("(if (< 0 M) ((for ")
    assert check.startswith("(if (aref outside) ((fail ")
    assert rows == ("(for i 0 M 1 serial (for j_2 0 N 1 serial "
                    "(setf (aref C i j_2) (aref A i (min (max (aref k j_2) 0) (- K 1))))))")
    rows = loops("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (aref B (aref k i) j))))", "(require (<= M N))")[-1]
    assert rows == ("(for i_2 0 M 1 serial (let ix i64 (min (max (aref k i_2) 0) (- K 1))) "
                    "(for j 0 N 1 serial (setf (aref C i_2 j) (aref B ix j))))")


def test_an_axis_that_may_be_empty_is_read_under_a_condition() -> None:
    rows = loops("(for i 0 N 1 serial (if (< (aref x i) 0.0) ((setf (aref y i) (aref A 0 (aref k i))))))", "(require (<= 1 M))")[-1]
    assert "(where (<= 1 K) (aref A 0 (min (max (aref k i_2) 0) (- K 1))) 0.0)" in rows


@pytest.mark.parametrize("value", ["(cast f32 i)", "(aref x (- (- N 1) i))", "(where (= i 3) (aref x 0) (* 2.0 (aref x i)))",
                                   "(aref x (where (< i 2) (- N 1) i))"])
@pytest.mark.parametrize("index", [0, 4, 5, -1])
def test_a_map_that_is_read_at_a_checked_index_is_computed_at_the_nearest(value: str, index: int) -> None:
    checked = add_checks(op("(local S f32 (N) scratch) (for i 0 N 1 serial (setf (aref S i) " + value + ")) "
                            "(for i_2 0 N 1 serial (setf (aref y i_2) (+ 1.0 (aref S (aref k i_2)))))"))
    program = lower(raise_op(checked))
    assert not any(isinstance(n, Local) and n.shape for k in program.kernels for s in k.body for n in s.unique()), "it is inlined"
    verifier.verify(program)
    arguments = {"M": 4, "N": 5, "K": 4, "k": np.array([1, 0, index, 3, 2]), "x": np.arange(5, dtype=np.float32) - 1, "y": np.zeros(5, np.float32),
                 **{n: np.zeros((4, 5 if n != "A" else 4), np.float32) for n in "ABC"}}
    one, two = ({n: np.copy(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()} for _ in range(2))
    rows = interpret.run(checked, one), interpret.run(program, two)
    assert [row == 0 for row in rows] == [0 <= index < 5] * 2
    assert rows[0] or np.array_equal(one["y"], two["y"])


def test_where_an_axis_is_certainly_indexed_the_sizes_are_checked_at_entry() -> None:
    program = raised("(for i 0 N 1 serial (for j 0 M 1 serial (setf (aref C j i) (aref B (aref k i) i))))")
    row = program.checks[0].row
    assert [text_of(e.cond) for e in program.all(Ensure) if e.row == row] == ["(or (or (<= 1 K) (<= N 0)) (<= M 0))"]


def test_a_sum_of_logarithms_and_the_gathered_logits_are_one_kernel() -> None:
    program = raised("""(for i 0 M 1 serial
      (local top f32 () register) (setf (aref top) -inf) (for j 0 N 1 serial (incf (aref top) (aref C i j) max))
      (local s f32 () register) (setf (aref s) 0.0)
      (for j_2 0 N 1 serial (incf (aref s) (exp (- (aref C i j_2) (aref top)))))
      (setf (aref z i) (- (+ (log (aref s)) (aref top)) (aref C i (aref l i)))))""",
                     "(buffer l i64 (M) (0) in) (buffer z f32 (M) (0) out)")
    assert len(kernels_of(program)) == 2                          # the check, and the losses
    assert sum(text_of(s).startswith("(for i") for s in lower(program).kernels[0].body) == 2


def test_more_checks_than_a_reduction_takes() -> None:
    reads = " ".join(f"(setf (aref y i) (aref x (+ {n} (aref k i))))" for n in range(20))
    program = raised(f"(for i 0 N 1 serial {reads})")
    assert len(program.checks) == 20
    assert len({reads_of(c.cond) for c in program.checks}) == 2


@pytest.mark.slice(2)
@pytest.mark.parametrize("index", [-1, 0, 4, 5, 1 << 40, -(1 << 63)])
@pytest.mark.parametrize("body", [body for body, _ in RAISED.values()], ids=RAISED.keys())
def test_the_call_fails_where_the_loops_as_written_fail(body: str, index: int) -> None:
    rng = np.random.default_rng(3)
    for at in range(5):
        checked = add_checks(op(body))
        arguments: dict[str, Any] = {"M": 4, "N": 5, "K": 4, "k": rng.integers(0, 4, 5), "A": rng.random((4, 4), np.float32),
                                     "B": rng.random((4, 5), np.float32), "C": rng.random((4, 5), np.float32),
                                     "x": rng.random(5, np.float32) - np.float32(0.5), "y": rng.random(5, np.float32)}
        arguments["k"][at] = index
        one, two = ({n: np.copy(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()} for _ in range(2))
        program = raise_op(checked)
        rows = interpret.run(checked, one), interpret.run(lower(program), two)
        texts = {c.row: c.text for c in program.all(Check)}
        assert (rows[0] == 0) == (rows[1] == 0)
        assert texts.get(rows[0]) == texts.get(rows[1]) or body == RAISED["an index of an index"][0]      # either check fails
        if rows == (0, 0):
            assert all(np.array_equal(one[n], two[n]) for n in ("C", "y"))


@pytest.mark.parametrize(("clause", "message"), [
    ("(fail-if (read v0) 6)", "check 6: the condition is no bool that depends on one value without axes"),
    ("(fail-if (read v0 0) 6)", "check 6: the condition is no bool that depends on one value without axes"),
    ("(fail-if true 6)", "check 6: the condition is no bool that depends on one value without axes"),
    ("(fail-if (read v9) 6)", "check 6: reads 'v9', which is not defined before"),
])
def test_checks_that_are_refused(clause: str, message: str) -> None:
    text = show(raise_op(op("(for i 0 N 1 serial (setf (aref y i) (sin (aref x i))))"))).replace("(output", f"{clause} (output")
    with pytest.raises(CatenError) as caught:
        tensor_verifier.verify(resolve(read(text)[0]))
    assert message in [d.message for d in caught.value.diagnostics]


def test_an_index_of_an_array_that_the_loop_writes_is_read_where_it_stands() -> None:
    program = raised("(local t i64 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (* 2 (aref k i)))) "
                     "(for i_2 0 N 1 serial (for j 0 M 1 serial (setf (aref C j i_2) (aref B (aref t i_2) i_2))))")
    assert len(program.checks) == 1
    assert all(not isinstance(d.value, Nest) for d in program.all(Define))
    assert any(isinstance(n, For) for k in lower(program).kernels for s in k.body for n in s.walk())


def test_threads_of_devices_make_their_own_checks() -> None:
    spec = '(composite G ((x{float}[V] k{int}[N]) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (aref x (aref k i)))))'
    options = Options(runtime="opencl")
    (loaded,) = loading.load_programs(SpecText("g.lisp", spec, "lisp"), options)
    values, loops = (driver.advance(loaded, level, options) for level in ("tensor", "loop"))
    assert not values.all(FailIf)
    assert {n.mark for n in loops.unique() if isinstance(n, For)} == {"grid", "block"}


GROUPED = """
[composite]
name = "Grouped"
inputs = ["x{float}[N M W](where (= (* N M W) (* 2 N C W)))", "scale{float}[C K]"]
outputs = ["y{float}[N 2]"]

[implementation]
lang = "python"
code = '''
y = np.zeros((N, 2), np.float32)
for n in range(N):
    for g in range(2):
        for i in range((W + 2 - K) // 2 + 1):
            for c in range(C):
                for p in range(K):
                    if 0 <= 2 * i + p - 1 < W:
                        y[n, g] += x[n, C * g + c, 2 * i + p - 1] * scale[c, p]
'''
"""


@pytest.mark.slow
def test_a_named_index_is_inside_where_each_of_its_bounds_is() -> None:
    """M ≥ 1 follows from N · M · W = 2 · N · C · W inside the condition alone."""
    program, = loading.load_programs(SpecText("g.toml", GROUPED), Options(verify=True, strict=True))
    made = text_of(driver.advance(program, "loop", Options(verify=True, strict=True)))
    assert "(let ix i64 (min " in made

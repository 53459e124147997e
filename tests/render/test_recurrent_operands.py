"""In a chain of minima or maxima the operand that the previous iteration stored is last."""
from __future__ import annotations

import re

import numpy as np
import pytest

import caten
from caten.core.expr import Expr, Op, Var
from caten.core.program import resolve
from caten.core.text import read
from caten.loop.statements import Aref, LoopProgram
from caten.render.cstyle import CStyle
from caten.render.recurrent_operands import _Ordering

ROW, COLUMN = Var("i", "i64"), Var("j", "i64")


def line(body: str) -> str:
    program = resolve(read(f"(loop P (buffer D f32 (M N) (0 1) inout) (buffer x f32 (N) (0) in) (size M) (size N) (kernel main "
                           f"(for i 1 M 1 serial (for j 2 N 1 serial {body}))))")[0])
    assert isinstance(program, LoopProgram)
    found, *_ = re.findall(r"\n +((?:D\[i \* N \+ j\]|(?:const )?float best) = .*);", CStyle().render(program).split("main(")[1])
    return re.sub(r"ct_|_f32|D\[(?:i \* N|\(i - 1\) \* N)(?: \+ |\b)?", "", found.replace("D[(i - 1) * N + ", "up[").replace("D[i * N + ", "[")).split(" = ")[1]


UP, LEFT, DIAGONAL = "(aref D (- i 1) j)", "(aref D i (- j 1))", "(aref D (- i 1) (- j 1))"


@pytest.mark.parametrize(("value", "text"), [
    (f"(min (min {LEFT} {UP}) {DIAGONAL})", "min(min(up[j], up[j - 1]), [j - 1])"),
    (f"(max {LEFT} (max {UP} (+ {DIAGONAL} 1.0)))", "max(max(up[j], up[j - 1] + 1.0f), [j - 1])"),
    (f"(+ (aref x j) (min (min {UP} (+ {LEFT} 2.0)) {DIAGONAL}))", "x[j] + min(min(up[j], up[j - 1]), [j - 1] + 2.0f)"),
    (f"(min (max {LEFT} {UP}) {DIAGONAL})", "min(max([j - 1], up[j]), up[j - 1])"),                           # no chain of one operator
    (f"(min (min (aref D i (- j 2)) {UP}) {DIAGONAL})", "min(min([j - 2], up[j]), up[j - 1])"),              # of two iterations before
    (f"(+ (+ {LEFT} {UP}) {DIAGONAL})", "[j - 1] + up[j] + up[j - 1]")])                                      # the order of a sum matters
def test_what_the_next_iteration_waits_for_is_last(value: str, text: str) -> None:
    assert line(f"(setf (aref D i j) {value})") == text
    if value.startswith("(m"):
        assert line(f"(let best f32 {value}) (setf (aref D i j) (+ best 1.0))") == text


def test_shared_parts_are_looked_at_once() -> None:
    """A walk that takes a shared part for two would take 2^60 steps."""
    value: Expr = Op("min", (Op("min", (Aref("D", (ROW, COLUMN - 1), "f32"), Aref("D", (ROW - 1, COLUMN), "f32"))), Aref("x", (COLUMN,), "f32")))
    for _ in range(60):
        value = Op("mul", (value, value))
    ordered = _Ordering({Aref("D", (ROW, COLUMN - 1), "f32")}).ordered(value)
    assert sum(1 for _ in ordered.unique()) == sum(1 for _ in value.unique())
    while isinstance(ordered, Op) and ordered.fn == "mul":
        ordered = ordered.args[0]
    assert isinstance(ordered, Op)
    assert ordered.args[1] is Aref("D", (ROW, COLUMN - 1), "f32")


@pytest.mark.slow
def test_time_warping_is_right() -> None:
    kernel = caten.compile("""[composite]
name = "Warp"
inputs = ["x{float}[N]", "y{float}[M]", "D{float}[(+ N 1) (+ M 1)]"]
outputs = ["D"]
[implementation]
lang = "python"
code = '''
N, M = x.shape[0], y.shape[0]
for i in range(1, N + 1):
    for j in range(1, M + 1):
        D[i, j] = abs(x[i - 1] - y[j - 1]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
'''
""")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(13).astype("f4"), rng.standard_normal(9).astype("f4")
    D = np.full((14, 10), np.inf, "f4")
    D[0, 0] = 0
    wanted = D.copy()
    for i in range(1, 14):
        for j in range(1, 10):
            wanted[i, j] = abs(x[i - 1] - y[j - 1]) + min(wanted[i - 1, j], wanted[i, j - 1], wanted[i - 1, j - 1])
    kernel(x, y, D)
    np.testing.assert_array_equal(D, wanted)

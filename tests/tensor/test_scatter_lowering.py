"""Scatters into small targets on threads: each part of the iterations adds to a copy, and the copies are added in order."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.program import resolve
from caten.core.text import read, show
from caten.loop import verifier
from caten.loop.statements import For, If, Local, LoopProgram
from caten.semantics import interpret
from caten.tensor import scatter_lowering
from caten.tensor.lower import lower

THREADS = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () true))'
ONE = THREADS.replace("() true", "() false")
INDEX = "(max 0 (min (- B 1) (read k i)))"
SCATTERS = {
    "add": f"(scatter f32 h (B) ((i N)) add ({INDEX}) true (read x i))",
    "max": f"(scatter f32 h (B) ((i N)) max ({INDEX}) true (read x i))",
    "of some elements": f"(scatter f32 h (B) ((i N)) add ({INDEX}) (< 0.0 (read x i)) (read x i))",
    "of two axes": "(scatter f32 h (B) ((i N) (j N)) add ((max 0 (min (- B 1) (+ (read k i) (read k j))))) true (* (read x i) (read x j)))",
}


def lowered(value: str, facts: str = THREADS) -> LoopProgram:
    return lower(resolve(read(
        f"(tensor T (size N) (size B) (buffer k i64 (N) (0) in) (buffer x f32 (N) (0) in) (buffer h f32 (B) (0) inout) {facts} "
        f"(ensure 1 (<= 1 B)) (check 1 \"no element\") (define v0 {value}) (output h v0))")[0]))


def copies(program: LoopProgram) -> list[Local]:
    return [n for k in program.kernels for n in k.walk() if isinstance(n, Local) and n.shape]


@pytest.mark.parametrize("name", SCATTERS)
def test_parts_and_the_loop_as_it_is_add_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many iterations as the condition wants and with fewer; parts that are short, and empty ones."""
    monkeypatch.setattr(scatter_lowering, "ITERATIONS", 2)
    shared, plain = lowered(SCATTERS[name]), lowered(SCATTERS[name], ONE)
    verifier.verify(shared)
    assert len(copies(shared)) == 1
    assert not copies(plain)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 5, 15, 16, 17, 31, 40):
        for b in (1, 3, 7):
            found = []
            for program in (shared, plain):
                rng = np.random.default_rng(n)
                values: dict[str, Any] = {"N": n, "B": b, "k": rng.integers(-1, 9, n), "x": np.round(9 * rng.standard_normal(n)).astype(np.float32),
                                          "h": np.ones(b, np.float32)}
                assert interpret.run(program, values) == 0
                found.append(values["h"])
            np.testing.assert_array_equal(*found)


def test_the_condition() -> None:
    """32 iterations for each element, and a quarter of the last private cache."""
    (choice,) = lowered(SCATTERS["add"]).kernels[0].body
    assert isinstance(choice, If)
    assert show(choice.cond) == "(and (<= B 32768) (<= B (floordiv N 32)))"
    assert [type(s) for s in choice.otherwise] == [For]
    assert not copies(lowered("(scatter f32 h (B) ((i B)) add (i) true 1.0)"))                     # iterations that never meet
    assert not copies(lowered(SCATTERS["add"], THREADS.replace("opt 2", "opt 1")))
    assert copies(lowered(SCATTERS["of two axes"]))


def test_a_large_target_has_no_copies() -> None:
    text = SCATTERS["add"].replace("(B)", "(40000)").replace("(- B 1)", "39999")
    program = lower(resolve(read(
        f"(tensor T (size N) (buffer k i64 (N) (0) in) (buffer x f32 (N) (0) in) (buffer h f32 (40000) (0) inout) {THREADS} (define v0 {text}) (output h v0))")[0]))
    assert not copies(program)


SPEC = '''[composite]
name = "Weights"
inputs = ["k{uint8}[N]", "x{float}[N]"]
outputs = ["h{float}[256]"]
[implementation]
code = """
(dotimes (b 256) (setf (aref h b) 1.0))
(dotimes (i N) (incf (aref h (aref k i)) (aref x i)))
"""
'''


def arguments(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.integers(0, 256, n).astype(np.uint8), rng.standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 8191, 8192, 8200, 100003])
def test_a_histogram_on_threads(n: int, tool: Callable[[str], str]) -> None:
    tool("gcc")
    k, x = arguments(n)
    want = np.ones(256)
    np.add.at(want, k, x.astype(np.float64))
    np.testing.assert_allclose(caten.compile(SPEC, runtime="gcc", config={"OMP": "1"})(k, x), want, rtol=1e-4, atol=1e-4)


def test_the_number_of_threads_changes_no_bit(tool: Callable[[str], str]) -> None:
    tool("gcc")
    code = ("import hashlib, caten, test_scatter_lowering as t; "
            "print(hashlib.sha256(caten.compile(t.SPEC, runtime='gcc', config={'OMP': '1'})(*t.arguments(50000)).tobytes()).hexdigest())")
    found = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=os.path.dirname(__file__),
                            env={**os.environ, "OMP_NUM_THREADS": n}).stdout for n in ("1", "2")}
    assert len(found) == 1

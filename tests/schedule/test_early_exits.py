"""Loops that each lane may leave: in vectors across an outer loop they end when no lane goes on."""
from __future__ import annotations

import numpy as np
import pytest

import caten
from caten.core.program import resolve
from caten.core.text import read, show
from caten.loop.early_exit import leaving_condition
from caten.loop.statements import For
from caten.loop.verifier import verify
from caten.schedule.script import apply

BODY = """
for i in range(N):
    v = x[i]
    n = 0
    for t in range(T):
        if v <= 1:
            break
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        n += 1
    y[i] = n
"""
SPEC = f'''
[composite]
name = "Collatz"
inputs = ["x{{int32}}[N]", "T{{int}}[]"]
outputs = ["y{{int32}}[N]"]

[implementation]
lang = "python"
code = """{BODY}"""
'''


def counts(x: np.ndarray, most: int) -> list[int]:
    found = []
    for v in x.tolist():
        n = 0
        while n < most and v > 1:
            v, n = v // 2 if v % 2 == 0 else 3 * v + 1, n + 1
        found.append(n)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("march", ["x86-64-v2", "x86-64-v3", "native"])
def test_lanes_that_leave_at_different_times(march: str) -> None:
    collatz = caten.compile(SPEC, opt=2, config={"MARCH": march})
    assert collatz.source.count("break;") >= 2                      # of blocks of vectors, and of the tail
    assert "ct_fold_or_bool" in collatz.source
    for count in (0, 1, 7, 8, 9, 63, 64, 65, 200):
        x = np.random.default_rng(count).integers(-3, 40, count).astype(np.int32)
        for most in (0, 1, 5, 1000):
            np.testing.assert_array_equal(collatz(x, most), counts(x, most))


@pytest.mark.slow
def test_a_block_whose_lanes_have_left_ends_the_loop() -> None:
    """2^31 - 1 iterations, of which no lane needs more than a few."""
    collatz = caten.compile(SPEC, opt=2, config={"MARCH": "native"})
    x = np.arange(100, dtype=np.int32)
    np.testing.assert_array_equal(collatz(x, (1 << 31) - 1), counts(x, 1000))


LOOPS = """(loop P (buffer x i32 (N) (0) in) (buffer y i32 (N) (0) out) (size N) (size T) (kernel k
  (for i 0 (floordiv N 16) 1 serial (for j 0 2 1 serial (for l 0 8 1 serial
    (local v i32 () register) (setf (aref v) (aref x (+ (* 16 i) (+ (* 8 j) l)))) (local going bool () register) (setf (aref going) true)
    (for t 0 T 1 serial (if (aref going) ((setf (aref v) (- (aref v) 3:i32)) (if (< (aref v) 0:i32) ((setf (aref going) false))))))
    (setf (aref y (+ (* 16 i) (+ (* 8 j) l))) (aref v)))))))"""


@pytest.mark.parametrize(("steps", "vectors"), [((("vectorize", "l"),), 1), ((("vectorize", "l"), ("jam", "j")), 2)])
def test_the_guard_of_the_loop_is_about_all_lanes(steps: tuple[tuple[str, str], ...], vectors: int) -> None:
    made = apply(resolve(read(LOOPS)[0]), steps, verify=True)
    verify(made)
    loop = next(n for n in made.unique() if isinstance(n, For) and n.name == "t")
    guard = leaving_condition(loop)
    assert guard is not None
    assert show(guard).count("(vref going") == vectors

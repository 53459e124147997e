"""Groups of threads: what the verifier refuses, and what a missing barrier does in the interpreter."""
from __future__ import annotations

import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.loop.statements import LoopProgram
from caten.loop.verifier import verify
from caten.semantics.interpret import run

PARAMS = "(size N) (buffer A f32 (N) (0) in) (buffer B f32 (N) (0) inout)"
GRID = "(for g 0 (floordiv N 8) 1 grid (local T f32 (8) shared) (for t 0 8 1 block {}))"
REVERSED = GRID.format("(setf (aref T t) (aref A (+ (* 8 g) t))) {} (setf (aref B (+ (* 8 g) t)) (aref T (- 7 t)))")
SWEEPS = GRID.format("(local s f32 () register) (setf (aref s) 0.0) (for k 0 4 1 serial {} (setf (aref T t) (aref A (+ (* 8 g) (mod (+ t k) 8)))) {}"
                     " (incf (aref s) (aref T (- 7 t))) {}) (setf (aref B (+ (* 8 g) t)) (aref s))")
TREE = GRID.format("(setf (aref T t) (aref A (+ (* 8 g) t))) {} (if (< t 4) ((incf (aref T t) (aref T (+ t 4))))) {}"
                   " (if (< t 2) ((incf (aref T t) (aref T (+ t 2))))) {} (if (= t 0) ((setf (aref B (* 8 g)) (+ (aref T 0) (aref T 1)))))")
WAIT = "(barrier)"


def program(body: str) -> LoopProgram:
    loaded: LoopProgram = resolve(read(f"(loop t {PARAMS} (kernel t {body}))")[0])
    return loaded


RIGHT = (REVERSED.format(WAIT), SWEEPS.format(WAIT, WAIT, ""), SWEEPS.format("", WAIT, WAIT), TREE.format(WAIT, WAIT, WAIT))
WRONG = (REVERSED.format(""), SWEEPS.format("", WAIT, ""), SWEEPS.format(WAIT, "", ""), SWEEPS.format("", "", ""), SWEEPS.format(WAIT, "", WAIT),
         TREE.format("", WAIT, WAIT), TREE.format(WAIT, "", WAIT), TREE.format(WAIT, WAIT, ""))


def results(body: str, order: str) -> np.ndarray:
    b = np.zeros(24, np.float32)
    assert run(program(body), {"N": 24, "A": np.arange(24, dtype=np.float32) ** 2, "B": b}, order) == 0
    return b


@pytest.mark.parametrize("body", RIGHT)
def test_barriers_separate_the_threads(body: str) -> None:
    verify(program(body))
    assert np.array_equal(results(body, "forward"), results(body, "reverse"))
    assert not np.isnan(results(body, "forward")).any()


@pytest.mark.parametrize("body", WRONG)
def test_a_missing_barrier_is_refused_and_shows_when_it_runs(body: str) -> None:
    with pytest.raises(CatenError, match="no barrier separates two threads"):
        verify(program(body))
    assert not np.array_equal(results(body, "forward"), results(body, "reverse"))


@pytest.mark.parametrize(("message", "body"), [
    ("a condition that does not hold in all threads alike", GRID.format("(if (< t 3) ((barrier)))")),
    ("does not run equally often in all threads", GRID.format("(for k 0 t 1 serial (barrier))")),
    ("does not run equally often", GRID.format("(let n i64 (cast i64 (aref A t))) (for k 0 n 1 serial (barrier))").replace("aref A t", "aref A 0")),
    ("a barrier is for the threads of a block", "(barrier)"),
    ("whose check fails would not reach the barrier", GRID.format("(if (< N 9) ((fail 1))) (barrier)")),
    ("the grid loop carries a dependence", "(for g 0 N 1 grid (setf (aref B 0) 1.0))"),
    ("no barrier separates two threads", "(for t 0 8 1 block (if (< 0 N) ((setf (aref B 0) 1.0))))"),
    ("a constant number of threads", "(for t 0 N 1 block (setf (aref B t) 1.0))"),
    ("the one perfect nest of its kernel", "(for i 0 N 1 serial (for g 0 N 1 grid (setf (aref B g) 1.0)))"),
    ("the one perfect nest of its kernel", "(for g 0 N 1 grid (setf (aref B g) 1.0)) (for h 0 N 1 grid (setf (aref B h) 1.0))"),
    ("the same in all groups", "(for g 0 N 1 grid (for h 0 g 1 grid (setf (aref B g) 1.0)))"),
    ("more than 3 block loops", "(for a 0 1 1 block (for b 0 1 1 block (for c 0 1 1 block (for d 0 1 1 block (setf (aref B d) 1.0)))))"),
    ("only values and shared arrays", "(for g 0 N 1 grid (setf (aref B g) 1.0) (for t 0 1 1 block (setf (aref B g) 2.0)))"),
    ("inside the grid loops and before the block loops", GRID.format("(local U f32 (4) shared) (setf (aref U 0) 1.0)")),
])
def test_what_cannot_be_where_it_is(message: str, body: str) -> None:
    with pytest.raises(CatenError, match=message):
        verify(program(body))


def test_threads_that_wait_for_others_which_never_come_are_found() -> None:
    with pytest.raises(CatenError, match="3 of 8 threads wait at a barrier"):
        results(GRID.format("(if (< t 3) ((barrier)))"), "forward")


def test_private_values_survive_a_barrier() -> None:
    body = GRID.format("(let mine f32 (aref A (+ (* 8 g) t))) (local s f32 () register) (setf (aref s) mine) (barrier)"
                       " (setf (aref B (+ (* 8 g) t)) (+ mine (aref s)))")
    assert np.array_equal(results(body, "forward"), 2 * np.arange(24, dtype=np.float32) ** 2)

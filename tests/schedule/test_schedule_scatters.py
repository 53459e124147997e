"""Scatters of rows: threads share blocks of columns."""
from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from schedule_nets import assert_same, assert_sound, program

import caten
from caten.core.program import Schedule
from caten.core.text import show
from caten.loop.statements import LoopProgram
from caten.schedule import autoscheduler
from caten.schedule.planning import Planning

THREADS = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () true))'
PARAMS = "(size M) (size N) (buffer k i32 (M) (0) in) (buffer A f32 (M N) (0 1) in) (buffer C f32 (8 N) (0 1) inout)"
ROWS = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref C (max 0 (min 7 (cast i64 (aref k i)))) j) (aref A i j){})))"


def scheduled(facts: str, fn: str = "") -> tuple[LoopProgram, LoopProgram, list[str]]:
    before = program(ROWS.format(fn), PARAMS, facts)
    after = autoscheduler.schedule(before, Planning(verify=True))
    fact = after.first(Schedule)
    assert fact is not None
    return before, after, show(fact).split("\n")


@pytest.mark.parametrize("fn", ["", " max"])
def test_threads_share_blocks_of_columns(fn: str) -> None:
    before, after, steps = scheduled(THREADS, fn)
    assert_sound(after)
    assert any("(split j 64 min)" in s for s in steps)
    assert any("(parallel jo)" in s for s in steps)
    assert any("(vectorize jii)" in s for s in steps)
    assert_same(before, after, ((0, 5), (3, 1), (5, 7), (9, 70), (4, 129)))


def test_one_thread_adds_whole_rows() -> None:
    before, after, steps = scheduled(THREADS.replace("() true", "() false"))
    assert not any("split j 64" in s for s in steps)
    assert_same(before, after, ((3, 1), (5, 7), (4, 40)))


SPEC = '''[composite]
name = "Scatters"
inputs = ["I{uint8}[B]", "G{float}[B D]", "x{uint8}[N]"]
outputs = ["V{float}[256 D]", "h{int64}[256]"]
[implementation]
lang = "python"
code = """
V = np.zeros((256, D), np.float32)
np.add.at(V, I, G)
h = np.bincount(x, minlength=256)
"""
'''


def arguments(rows: int, columns: int, count: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    return (rng.integers(0, 256, rows).astype(np.uint8), rng.standard_normal((rows, columns)).astype(np.float32),
            rng.integers(0, 256, count).astype(np.uint8))


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("omp", ["0", "1"])
def test_scatters_are_those_of_numpy(opt: int, omp: str, tool: Any) -> None:
    tool("gcc")
    scatters = caten.compile(SPEC, runtime="gcc", opt=opt, config={"OMP": omp})
    for rows, columns, count in ((0, 3, 0), (1, 1, 1), (300, 17, 1000), (700, 200, 33)):
        given = arguments(rows, columns, count)
        want = np.zeros((256, columns), np.float32)
        np.add.at(want, given[0], given[1])
        found, bins = scatters(*given)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(bins, np.bincount(given[2], minlength=256))


@pytest.mark.slow
@pytest.mark.nightly                      # by day that of tests/tensor/test_scatter_lowering.py
def test_the_number_of_threads_changes_no_bit(tool: Any) -> None:
    tool("gcc")
    code = ("import hashlib, caten, test_schedule_scatters as t; "
            "s = caten.compile(t.SPEC, runtime='gcc', config={'OMP': '1', 'OPT': '0'}); "
            "print(hashlib.sha256(s(*t.arguments(2000, 500, 9))[0].tobytes()).hexdigest())")
    found = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=os.path.dirname(__file__),
                            env={**os.environ, "OMP_NUM_THREADS": n}).stdout for n in ("1", "2")}
    assert len(found) == 1

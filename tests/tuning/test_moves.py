"""Schedules of legal moves alone: the nests as written come first, and every other one means the same."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caten import driver, loading
from caten.core.program import Schedule, Target
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.operation_count import BUDGET, Work, counted
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule.planning import Planning
from caten.semantics import interpret
from caten.tuning import moves

RANKS = """[composite]
name = "Ranks"
inputs = ["x{float}[M N]"]
outputs = ["y{float}[M N]", "s{float}[M]"]
[implementation]
code = '''
(dotimes (i M)
  (dotimes (j N)
    (set count 0.0)
    (dotimes (k 3)
      (when (< (aref x i k) (aref x i j)) (incf count)))
    (setf (aref y i j) count)))
(dotimes (i M)
  (setf (aref s i) 0)
  (dotimes (j N)
    (incf (aref s i) (aref x i j))))
'''
"""
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))


def moved(text: str) -> list[LoopProgram]:
    (op,) = loading.load_programs(SpecText("a.toml", text, "toml"), OPTIONS)
    assert isinstance(op, OpProgram)
    before = driver.unscheduled(op, OPTIONS)
    target = before.first(Target)
    assert target is not None
    with counted(Work(BUDGET)):
        return list(moves.moved(before, target.machine, lambda: Planning(tolerant=False)))


def steps(program: LoopProgram) -> list[str]:
    fact = program.first(Schedule)
    return [step[0] for step in fact.steps] if fact is not None else []


def test_the_nests_as_written_come_first_and_then_threads_alone() -> None:
    written, threads, *others = moved(RANKS)
    assert steps(written) == []
    assert set(steps(threads)) <= {"parallel", "applied"}
    kinds = {step for program in others for step in steps(program)}
    assert {"split", "vectorize", "unroll", "reorder", "parallel"} <= kinds


def test_each_means_the_same() -> None:
    x = np.random.default_rng(3).integers(-4, 5, (5, 21)).astype(np.float32)
    for program in moved(RANKS):
        given = {"M": 5, "N": 21, "x": x, "y": np.zeros_like(x), "s": np.zeros(5, np.float32)}
        assert interpret.run(program, given) == 0
        np.testing.assert_array_equal(given["y"], (x[:, None, :3] < x[:, :, None]).sum(2))
        np.testing.assert_array_equal(given["s"], x.sum(1))


@pytest.mark.parametrize("name", ["mandelbrot", "softmax", "stencil", "histogram"])
def test_no_move_fails_on_a_sample(name: str) -> None:
    path = Path(__file__).parents[2] / "samples" / f"{name}.toml"
    assert len(moved(path.read_text())) > 2

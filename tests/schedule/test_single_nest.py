"""Nests planned as programs of their own: of what other nests compute nothing is known there, and the plan is the one that they have in the whole program."""
from __future__ import annotations

import pytest
from schedule_nets import program

from caten import driver, loading
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Let, LoopProgram, Setf
from caten.options import Options
from caten.schedule import autoscheduler
from caten.schedule.analysis.loop_queries import loops_in
from caten.schedule.single_nest import Apart, apart

BODIES = {
    "softmax": "E = np.exp(X - X.max())\nreturn E / E.sum()",
    "norm": "c = X - X.mean()\nreturn c / np.sqrt((c * c).mean() + 1e-5)",
    "means of means": "for k in range(4):\n    X = X - X.mean()\nreturn X",
    "a step of conjugate gradients": "a = (X * X).sum() / (X * Z).sum()\nw = X - a * Z\nreturn w * ((w * w).sum() / (X * X).sum())",
    # An integer that a nest computes may be a fact for the others.
    "the index of the maximum": "return X - np.argmax(X).astype(np.float32) + X.min()",
    "counted elements": "n = (X > 0).sum().astype(np.float32)\nreturn (X * (X > 0)).sum() / n + Z",
}


def simple(body: str, opt: int = 1) -> LoopProgram:
    text = (f'[composite]\nname = "Vectors"\ninputs = ["X{{float}}[N]", "Z{{float}}[N]"]\noutputs = ["Y{{float}}[N]"]\n'
            f'[implementation]\nlang = "python"\ncode = """\n{body}\n"""\n')
    (found,) = loading.load_programs(SpecText("vectors.toml", text), Options(opt=opt))
    made = driver.advance(found, "loop", Options(opt=opt))
    assert isinstance(made, LoopProgram)
    return made


@pytest.mark.parametrize("name", BODIES)
def test_the_plan_is_that_of_the_whole_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, asked = simple(BODIES[name], 2), list[bool]()

    def recording(*words: object) -> Apart | None:
        asked.append(apart(*words) is not None)             # type: ignore[arg-type]
        return None
    monkeypatch.setattr(autoscheduler, "apart", recording)
    assert show(simple(BODIES[name], 2)) == show(alone)
    assert all(asked) is (name not in ("the index of the maximum", "counted elements"))


def test_only_what_a_nest_uses_stays_before_it() -> None:
    whole = simple("for k in range(9):\n    X = X - X.mean()\nreturn X")
    for loop in loops_in(whole):
        part = apart(whole, loop.name)
        assert part is not None
        (kernel,) = part.program.kernels
        assert len(loops_in(kernel)) == 1
        named = {s.name for s in kernel.body if isinstance(s, Let)}
        assert named <= loop.variables
        # What begins at 0 is the sum of the nest itself: those of the others have values that nobody knows here.
        assert {s.ref.buffer for s in kernel.body if isinstance(s, Setf)} <= {s.ref.buffer for s in loop.walk() if hasattr(s, "ref")}


INTEGER = """(local c i64 () register) (setf (aref c) 0)
  (for i 0 M 1 serial (if (< 0.0 (aref X i 0)) ((incf (aref c) 1))))
  (let n i64 (min (aref c) N))
  (for j 0 N 1 serial (if (< j n) ((setf (aref v j) 1.0))))"""


# An integer is a fact also where it is made of floats.
CAST = """(local c f32 () register) (setf (aref c) 0.0)
  (for i 0 M 1 serial (incf (aref c) (aref X i 0)))
  (let n i64 (cast i64 (aref c)))
  (for j 0 N 1 serial (if (< j n) ((setf (aref v j) 1.0))))"""


@pytest.mark.parametrize("statements", [INTEGER, CAST])
def test_a_nest_whose_bounds_another_one_computes_is_not_apart(statements: str) -> None:
    made = program(statements)
    assert apart(made, "i") is not None
    assert apart(made, "j") is None

"""The search space of `caten tune`: a schedule can be made for every value of every parameter, on machines of every vector length."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from caten import driver, loading
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import autoscheduler
from caten.schedule.draft import Draft
from caten.schedule.plans.parameters import DEFAULTS, Choices
from caten.schedule.plans.versions import PARAMETERS
from caten.schedule.script import StepRefused

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
MACHINES = ("x86_64_v2", "x86_64_v3", "x86_64_v4")
LONG = ("conv2d", "causal_gemm", "gemm", "gemm_batched", "gemm_bias_relu", "gemm_column", "gemm_half", "mlp")       # to schedule: one machine has its turn


def kernels(path: Path, machine: str) -> list[tuple[OpProgram, LoopProgram]]:
    own = Options(runtime="gcc", config=(("MARCH", machine),))
    ops = loading.load_programs(SpecText(path.name, path.read_text(), "toml"), own)
    return [(op, driver.unscheduled(op, own)) for op in ops if isinstance(op, OpProgram)]


def candidates(before: LoopProgram, seed: str, count: int | None) -> list[Choices]:
    """Every change of one parameter that planners ask for, or so many of them."""
    asked = autoscheduler.drafted(before).asked
    changes = [DEFAULTS.with_(name, value) for name, default in sorted(asked.items()) for value in PARAMETERS[name].values if value != default]
    return changes if count is None else random.Random(seed).sample(changes, min(count, len(changes)))


@pytest.mark.slice(6)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_candidate_is_made(path: Path, nightly: bool) -> None:
    turn = MACHINES[len(path.stem) % len(MACHINES)]
    for machine in MACHINES:
        if nightly or path.stem not in LONG or machine == turn:
            for op, before in kernels(path, machine):
                for choices in candidates(before, f"{path.stem} {op.name} {machine}", None if nightly else 1):
                    autoscheduler.drafted(before, choices=choices)                 # where a plan took a wrong step, that is raised


@pytest.mark.parametrize("name", ["mandelbrot", "gemv_int4"])
def test_tiles_that_leave_a_rest_of_the_lanes(name: str) -> None:
    """Where the number of vectors at once is no power of two, or lanes are many, a constant loop is still cut into whole vectors."""
    path = next(p for p in SAMPLES if p.stem == name)
    for _, before in kernels(path, "x86_64_v4"):
        for choices in candidates(before, name, None):
            autoscheduler.drafted(before, choices=choices)


def test_a_plan_that_goes_on_with_a_loop_that_is_no_more_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the names of the loops that a split makes are taken for the one that it replaces."""
    def unlooked(self: Draft, name: str, count: int) -> tuple[str, str]:
        return self.split(name, count).outer, name
    monkeypatch.setattr(Draft, "split_exactly", unlooked)
    path = next(p for p in SAMPLES if p.stem == "dot")
    with pytest.raises(StepRefused, match=r"E501: .* there is no loop"):
        test_every_candidate_is_made(path, True)

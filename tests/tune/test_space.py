"""The search space of `caten tune`: a schedule can be made, or is refused, for every value of every hole, on machines of every vector length."""
from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from caten import pipeline
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import recipes, streams
from caten.schedule.choices import DEFAULTS, HOLES, Choices
from caten.schedule.draft import Draft

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
MACHINES = ("x86_64_v2", "x86_64_v3", "x86_64_v4")
LONG = ("conv2d", "causal_gemm", "gemm", "gemm_batched", "gemm_bias_relu", "gemm_column", "gemm_half", "mlp")       # to schedule: one machine has its turn


def kernels(path: Path, machine: str) -> list[tuple[OpProgram, LoopProgram]]:
    own = Options(runtime="gcc", config=(("MARCH", machine),))
    ops = pipeline.load_programs(SpecText(path.name, path.read_text(), "toml"), own)
    return [(op, pipeline.unscheduled(op, own)) for op in ops if isinstance(op, OpProgram)]


def candidates(before: LoopProgram, seed: str, count: int | None) -> list[Choices]:
    """Every change of one hole that the recipes ask for, or so many of them."""
    asked = recipes.drafted(before).asked
    changes = [DEFAULTS.with_(hole, value) for hole, default in sorted(asked.items()) for value in HOLES[hole] if value != default]
    return changes if count is None else random.Random(seed).sample(changes, min(count, len(changes)))


def tried(before: LoopProgram, choices: Choices, seen: Counter[str]) -> None:
    try:
        recipes.drafted(before, choices=choices)
        seen["made"] += 1
    except CatenError:
        seen["refused"] += 1


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_candidate_is_made_or_refused(path: Path, nightly: bool) -> None:
    turn = MACHINES[len(path.stem) % len(MACHINES)]
    seen: Counter[str] = Counter()
    for machine in MACHINES:
        if nightly or path.stem not in LONG or machine == turn:
            for op, before in kernels(path, machine):
                for choices in candidates(before, f"{path.stem} {op.name} {machine}", None if nightly else 1):
                    tried(before, choices, seen)
    print(path.stem, dict(seen))
    assert seen["refused"] <= seen["made"], seen


@pytest.mark.parametrize("name", ["mandelbrot", "gemv_int4"])
def test_tiles_that_leave_a_rest_of_the_lanes(name: str) -> None:
    """Where the number of vectors at once is no power of two, or lanes are many, a constant loop is still cut into whole vectors."""
    path = next(p for p in SAMPLES if p.stem == name)
    for _, before in kernels(path, "x86_64_v4"):
        seen: Counter[str] = Counter()
        for choices in candidates(before, name, None):
            tried(before, choices, seen)
        assert seen["made"] > 0, seen


def test_a_recipe_that_takes_two_names_for_three_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: two names for the three loops of a split that leaves a rest."""
    def unlooked(self: Draft, name: str, count: int) -> tuple[str, str]:
        outer, inner = self.take("split", name, count)
        return outer, inner
    monkeypatch.setattr(Draft, "halves", unlooked)
    right = streams.cut
    monkeypatch.setattr(streams, "cut", lambda draft, loop, factor, lanes=1: right(draft, loop, min(factor, lanes + 2)))
    path = next(p for p in SAMPLES if p.stem == "axpy")
    with pytest.raises(ValueError, match="unpack"):
        test_every_candidate_is_made_or_refused(path, True)

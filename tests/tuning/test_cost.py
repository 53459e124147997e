"""The model of what a schedule costs."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.core.program import Machine
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import autoscheduler
from caten.schedule.plans.parameters import DEFAULTS, Choices
from caten.tuning import cost
from spec_texts import AXPY, GEMM

AVX2 = Machine("x86_64_v3", 32, 16, (32 << 10, 512 << 10), True)
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),), use_cache=False)


def drafted(choices: Choices = DEFAULTS, text: str = GEMM) -> LoopProgram:
    program = loading.load_programs(SpecText("a.toml", text, "toml"), OPTIONS)[0]
    return autoscheduler.drafted(driver.unscheduled(program, OPTIONS), choices=choices).program


@pytest.mark.parametrize(("hole", "value", "fits"), [("gemm.rows", 6, True), ("gemm.rows", 8, False), ("gemm.vectors", 3, False),
                                                     ("gemm.rows", 4, True), ("gemm.panels", 1 << 12, False)])
def test_tiles_fit_the_registers_and_panels_the_caches(hole: str, value: int, fits: bool) -> None:
    assert cost.fits(drafted(DEFAULTS.with_(hole, value)), AVX2) == fits


def test_small_tiles_cost_more() -> None:
    small = DEFAULTS.with_("gemm.rows", 2).with_("gemm.vectors", 1)
    assert cost.cycles(drafted(small), AVX2) > cost.cycles(drafted(), AVX2)


def test_a_program_without_loops_costs_nothing() -> None:
    program = drafted(text=AXPY)
    assert cost.cycles(program, AVX2) > 0
    assert cost.cycles(LoopProgram("Empty", ()), AVX2) == 0

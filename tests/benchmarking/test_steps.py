"""The walk of docs/schedule.md: every schedule in it is legal, and each one changes the loops."""
from __future__ import annotations

import pytest
from benchmarks.steps import SPEC, STEPS

from caten import driver, loading
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.options import Options


def scheduled(schedule: str) -> str:
    options = Options(config=(("MARCH", "x86_64_v4"),), schedule=schedule or None, verify=True)
    source = SpecText("gemm.toml", SPEC.read_text(), "toml")
    return show(driver.advance(loading.load_programs(source, options)[0], "loop", options).kernels[0])  # type: ignore[attr-defined]   # a loop program


@pytest.mark.slice(2)
@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_step_of_the_walk_is_legal_and_differs_from_the_one_before(number: int) -> None:
    loops = scheduled(STEPS[number].schedule)
    assert number == 0 or loops != scheduled(STEPS[number - 1].schedule)

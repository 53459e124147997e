"""The holes of the recipes: all are asked for, and every value makes a sound schedule."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from schedule_nets import assert_sound

from caten import pipeline
from caten.core.program import Schedule
from caten.frontend.spec import SpecText, read_file
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import choices, recipes, script
from caten.schedule.choices import DEFAULTS, HOLES, Choices

ROOT = Path(__file__).resolve().parent.parent.parent
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),), use_cache=False)


def unscheduled(sample: str) -> LoopProgram:
    source: SpecText = read_file(ROOT / "samples" / f"{sample}.toml")
    return pipeline.unscheduled(pipeline.load_programs(source, OPTIONS)[0], OPTIONS)


def test_the_table_names_what_recipes_ask_for() -> None:
    asked = {name for p in (ROOT / "src" / "caten" / "schedule").glob("*.py") if p.name != "choices.py"
             for name in re.findall(r'choice\("([\w.]+)"', p.read_text())}
    assert asked == set(HOLES)


@pytest.mark.parametrize("sample", ["gemm", "axpy", "sum_rows", "sum_columns", "transpose"])
def test_without_choices_the_schedule_is_that_of_the_recipes(sample: str) -> None:
    before = unscheduled(sample)
    assert script.recorded(recipes.drafted(before, choices=DEFAULTS).program, ()) is recipes.recommended(before)


@pytest.mark.parametrize(("sample", "hole"), [
    ("gemm", "gemm.rows"), ("gemm", "gemm.vectors"), ("gemm", "gemm.depth"), ("gemm", "narrow.vectors"), ("axpy", "maps.vectors"),
    ("gemm", "gemm.order"), ("gemm", "gemm.unroll"), ("sum_rows", "sums.vectors"), ("sum_rows", "sums.tree"),
    ("sum_columns", "columns.rows"), ("sum_columns", "columns.block"), ("where", "maps.ahead"), ("softmax", "rows.ahead"),
    ("conv2d", "convolution.width"), ("conv2d", "convolution.share"), ("sum_columns", "columns.vectors"), ("transpose", "transposes.down"), ("where", "maps.stream")])
def test_another_value_is_another_schedule_that_replays(sample: str, hole: str) -> None:
    before = unscheduled(sample)
    draft = recipes.drafted(before)
    default = draft.asked[hole]
    changed = recipes.drafted(before, choices=DEFAULTS.with_(hole, next(v for v in HOLES[hole] if v != default)))
    assert changed.program is not draft.program
    assert_sound(changed.program)
    fact = changed.program.first(Schedule)
    assert fact is not None
    assert script.apply(before, fact.steps) is changed.program


@pytest.mark.parametrize("sample", ["gemm", "softmax", "transpose"])
def test_likely_sizes_get_a_copy_in_which_they_are_numbers(sample: str) -> None:
    before = unscheduled(sample)
    likely = dict.fromkeys(["M", "N", "K"], 64)
    copied = recipes.drafted(before, choices=DEFAULTS.with_("nest.copies", 1), likely=likely).program
    assert_sound(copied)
    fact = copied.first(Schedule)
    assert fact is not None
    assert next(step[-1] for step in fact.steps if step[0] == "specialize") == "k"
    assert recipes.drafted(before, likely=likely).program is recipes.drafted(before).program
    assert script.apply(before, fact.steps) is copied


def test_choices_are_values_by_name() -> None:
    some = DEFAULTS.with_("gemm.rows", 4).with_("gemm.depth", 64).with_("gemm.rows", 8)
    assert some == Choices((("gemm.depth", 64), ("gemm.rows", 8)))
    assert (some.of("gemm.rows", 6), some.of("gemm.panels", 32)) == (8, 32)
    assert (str(some), str(choices.DEFAULTS)) == ("gemm.depth = 64, gemm.rows = 8", "the defaults")

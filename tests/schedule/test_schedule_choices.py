"""The parameters of planners: all are asked for, and every value makes a sound schedule."""
from __future__ import annotations

from pathlib import Path

import pytest
from schedule_nets import assert_sound, program
from test_schedule_scatters import PARAMS, ROWS
from test_schedule_scatters import THREADS as SCATTER_FACTS

from caten import driver, loading
from caten.core.program import Schedule
from caten.frontend.spec import read_file
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import autoscheduler, script
from caten.schedule.plans.parameters import DEFAULTS, Choices
from caten.schedule.plans.versions import PARAMETERS

ROOT = Path(__file__).resolve().parent.parent.parent
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),), use_cache=False)


THREADS = Options(config=(("MARCH", "x86_64_v4"), ("OMP", "1")), use_cache=False)


def unscheduled(sample: str, options: Options = OPTIONS) -> LoopProgram:
    source: SpecText = read_file(ROOT / "samples" / f"{sample}.toml")
    return driver.unscheduled(loading.load_programs(source, options)[0], options)


@pytest.mark.slow
def test_every_parameter_is_asked_for(nightly: bool) -> None:
    """One that is declared beside a planner, and never asked for, would be tried in vain by whoever tunes."""
    samples = ("sincos", "causal_gemm", "transpose", "dot", "mandelbrot", "layernorm", "gemm_half", "conv2d")
    asked = {name for sample in samples for o in ((OPTIONS, THREADS) if nightly else (OPTIONS,)) for name in autoscheduler.drafted(unscheduled(sample, o)).asked}
    scatters = program(ROWS.format(""), PARAMS, SCATTER_FACTS)           # no sample scatters rows
    asked |= set(autoscheduler.drafted(scatters).asked)
    in_place = program("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (sin (+ (aref C i j) (aref w i))))))",
                       "(size M) (size N) (buffer w f32 (M) (0) in) (buffer C f32 (M N) (0 1) inout)",
                       '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')     # nor maps rows in place
    asked |= set(autoscheduler.drafted(in_place).asked)
    windows = program("""(for c 0 M 1 serial (for y 0 N 1 serial (for x 0 N 1 serial (for p 0 5 1 serial (for q 0 5 1 serial
 (if (and (< (+ y p) N) (< (+ x q) N)) ((incf (aref C c y x) (* (aref A c (+ y p) (+ x q)) (aref F c p q)))))))))) """,
                      """(size M) (size N) (buffer A f32 (M N N) (0 1 2) in) (buffer F f32 (M 5 5) (0 1 2) in)
 (buffer C f32 (M N N) (0 1 2) inout)""", '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')   # nor are windows depthwise
    asked |= set(autoscheduler.drafted(windows).asked)
    assert asked == set(PARAMETERS) - {"nest.copies"}


@pytest.mark.parametrize("sample", ["gemm", "axpy", "sum_rows", "sum_columns", "transpose"])
def test_without_choices_the_schedule_is_that_of_the_recipes(sample: str) -> None:
    before = unscheduled(sample)
    assert script.recorded(autoscheduler.drafted(before, choices=DEFAULTS).program,
                           ()) is autoscheduler.recommended(before)


@pytest.mark.slice(7)
@pytest.mark.parametrize(("sample", "hole"), [
    ("gemm", "gemm.rows"), ("gemm", "gemm.vectors"), ("gemm", "gemm.depth"), ("gemm", "narrow.rows"),
                                              ("axpy", "maps.vectors"),
    ("gemm", "gemm.order"), ("gemm", "gemm.unroll"), ("sum_rows", "sums.vectors"), ("sum_rows", "sums.tree"),
    ("sum_columns", "columns.rows"), ("sum_columns", "columns.block"), ("where", "maps.ahead"),
                                              ("softmax", "rows.ahead"),
    ("conv2d", "convolution.width"), ("sum_columns", "columns.vectors"),
                                              ("transpose", "transposes.down"), ("where", "maps.stream")])
@pytest.mark.slow
def test_another_value_is_another_schedule_that_replays(sample: str, hole: str) -> None:
    before = unscheduled(sample)
    draft = autoscheduler.drafted(before)
    default = draft.asked[hole]
    changed = autoscheduler.drafted(before, choices=DEFAULTS.with_(hole, next(v for v in PARAMETERS[hole].values
                                                                              if v != default)))
    assert changed.program is not draft.program
    assert_sound(changed.program)
    fact = changed.program.first(Schedule)
    assert fact is not None
    assert script.apply(before, fact.steps) is changed.program


@pytest.mark.parametrize("sample", ["gemm", "softmax", "transpose"])
@pytest.mark.slow
def test_likely_sizes_get_a_copy_in_which_they_are_numbers(sample: str) -> None:
    before = unscheduled(sample)
    likely = dict.fromkeys(["M", "N", "K"], 64)
    copied = autoscheduler.drafted(before, choices=DEFAULTS.with_("nest.copies", 1), likely=likely).program
    assert_sound(copied)
    fact = copied.first(Schedule)
    assert fact is not None
    assert next(step[-1] for step in fact.steps if step[0] == "specialize") == "k"
    assert autoscheduler.drafted(before, likely=likely).program is autoscheduler.drafted(before).program
    assert script.apply(before, fact.steps) is copied


def test_choices_are_values_by_name() -> None:
    some = DEFAULTS.with_("gemm.rows", 4).with_("gemm.depth", 64).with_("gemm.rows", 8)
    assert some == Choices((("gemm.depth", 64), ("gemm.rows", 8)))
    assert (some.of("gemm.rows", 6), some.of("gemm.panels", 32)) == (8, 32)
    assert (str(some), str(DEFAULTS)) == ("gemm.depth = 64, gemm.rows = 8", "the defaults")

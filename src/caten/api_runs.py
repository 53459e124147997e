"""Test, measure and tune specs from Python, as `caten test`, `caten bench` and `caten tune`."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import argument_checks, checking
from .api import STRING, Spec, Specs, is_text, options_of, read, warn
from .benchmarking import timing
from .benchmarking.results import BenchResults, BenchRow
from .compiler import Warn
from .errors import CatenError
from .frontend.spec_files import SpecText
from .options import Options
from .tuning.tuner import TuneResult
from .workflows import bench_specs, test_specs, tune_specs
from .workflows.spec_folders import expanded
from .workflows.spec_library import SpecLibrary
from .workflows.test_results import CaseResult, FileResult, OutputResult, TestResults

__all__ = ["BenchResults", "BenchRow", "CaseResult", "FileResult", "OutputResult", "TestResults", "TuneResult", "bench",
           "test", "tune"]

TAGS = 'a list of tags, ["edge"]'
RUNTIMES = 'the name of a runtime or its file, or a list of these, ["clang", "gcc"]'
Settings = Mapping[str, int | float]


def test(spec: Spec | Specs, runtime: str = "clang", config: Mapping[str, Any] | None = None, opt: int = 2, *,
         only: Sequence[str] = (), tags: Sequence[str] = (), jobs: int = 1, seed: int = 0, grad: bool = False,
         bounds_check: bool = True, reassociate: bool = True, include_dirs: Sequence[Spec] = (),
         cache: bool = True) -> TestResults:
    """Run the test cases of specs, each in a child process, as `caten test`.

    `spec`: the file of a spec, its text, a folder of specs, or a list of these. Each file is tested separately, and a
    file with errors counts as failed. `only`: the names of the operators or cases to run; `tags`: run only cases with
    one of these tags; `jobs`: the number of files that are tested in parallel; `seed`: the seed of the random inputs;
    `grad=True`: test the gradients of the operators, against central differences in float64, instead of their results.
    The other parameters are those of `compile`.

    Raises UsageError for an option with a wrong value and for a file that does not exist, and NothingMatched (E835) if
    `only` and `tags` select nothing. A case that fails raises nothing: see `TestResults.passed`."""
    try:
        given = argument_checks.specs("test: spec", spec)
        options = options_of("test", runtime=runtime, config=config, opt=opt, only=only, seed=seed,
                             bounds_check=bounds_check, reassociate=reassociate, include_dirs=include_dirs, cache=cache)
        chosen = argument_checks.listed("test: tags", tags, argument_checks.text, TAGS)
        at_once, of_gradients = argument_checks.count("test: jobs", jobs), argument_checks.flag("test: grad", grad)
        specs = [one for spec in given for one in _below(spec)]

        def opened(number: int, every: Options, heard: Warn) -> SpecLibrary:
            return _library([read(specs[number])], every, heard)
        names = [STRING if is_text(one) else str(one) for one in specs]
        return test_specs.tested(opened, names, options, chosen, at_once, grad=of_gradients)
    except CatenError as problem:
        raise problem.shortened() from None


def bench(spec: Spec | Specs, runtime: str | Sequence[str] = "clang", config: Mapping[str, Any] | None = None,
          opt: int = 2, *, sizes: Settings | Sequence[Settings] | None = None, rounds: int = 11,
          batch: float = timing.BATCH, retakes: int = 2, limits: bool = True, only: Sequence[str] = (), seed: int = 0,
          bounds_check: bool = True, reassociate: bool = True, include_dirs: Sequence[Spec] = (),
          cache: bool = True) -> BenchResults:
    """Measure the operators of specs, as `caten bench`: a row for each operator, setting and runtime.

    `runtime`: one runtime, or a list of them, which are measured in alternation. `sizes`: the sizes and scalars to
    measure at, by name, or a list of such dicts; the default is [bench.sizes], or the largest test case. `rounds`: the
    number of samples, at least 3; `batch`: the duration of a sample in seconds; `retakes`: how often a sample is
    repeated if other processes used the CPU meanwhile; `limits`: also measure the peak FLOP/s and memory bandwidth of
    the machine (`BenchResults.limits`). The other parameters are those of `compile`.

    Times are in seconds. Raises CatenError for a spec with errors and E840 for a kernel that crashes or exceeds the
    time limit, UsageError for an option with a wrong value, and ToolError if the host compiler is missing or fails."""
    try:
        given = argument_checks.specs("bench: spec", spec)
        names = argument_checks.listed("bench: runtime", runtime, argument_checks.path, RUNTIMES) if isinstance(
            runtime, list | tuple) else (argument_checks.path("bench: runtime", runtime, RUNTIMES),)
        options = options_of("bench", config=config, opt=opt, only=only, seed=seed, bounds_check=bounds_check,
                             reassociate=reassociate, include_dirs=include_dirs, cache=cache)
        options = replace(options, runtime=",".join(names))
        settings = argument_checks.settings("bench: sizes", sizes)
        samples = argument_checks.count("bench: rounds", rounds, bench_specs.LEAST_ROUNDS)
        plan = timing.Plan(argument_checks.seconds("bench: batch", batch),
                           argument_checks.count("bench: retakes", retakes, 0))
        wants_limits = argument_checks.flag("bench: limits", limits)
        texts = [read(one) for one in given]
        return bench_specs.measured(lambda one: _library(texts, one), options, settings, samples, plan, wants_limits)
    except CatenError as problem:
        raise problem.shortened() from None


def tune(spec: Spec | Specs, runtime: str = "clang", config: Mapping[str, Any] | None = None, *,
         sizes: Settings | Sequence[Settings] | None = None, budget: float = tune_specs.BUDGET, beside: bool = False,
         only: Sequence[str] = (), seed: int = 0, bounds_check: bool = True, reassociate: bool = True,
         include_dirs: Sequence[Spec] = (), cache: bool = True) -> tuple[TuneResult, ...]:
    """Search for schedules that are faster on this machine than those of opt=2, as `caten tune`, and record them for
    opt=3. Returns a result for each operator.

    `sizes`: the sizes and scalars to tune for, by name, or a list of such dicts; the default is [bench.sizes], or the
    largest test case. `budget`: the time for each operator, in seconds. `beside`: write the records next to the specs,
    as NAME.tune.json, instead of into the cache. The other parameters are those of `compile`.

    KeyboardInterrupt ends the search; the best schedules found so far are recorded first. Raises CatenError for a spec
    with errors and E842 for a kernel that cannot be measured, UsageError for an option with a wrong value, and
    ToolError if the host compiler is missing or fails."""
    try:
        given = argument_checks.specs("tune: spec", spec)
        options = options_of("tune", runtime=runtime, config=config, opt=2, only=only, seed=seed,
                             bounds_check=bounds_check, reassociate=reassociate, include_dirs=include_dirs, cache=cache)
        settings = argument_checks.settings("tune: sizes", sizes)
        seconds = argument_checks.seconds("tune: budget", budget)
        into_files = argument_checks.flag("tune: beside", beside)
        library = _library([read(one) for one in given], options)
        results = tuple(tune_specs.tuned(library, settings, seconds, into_files))
    except CatenError as problem:
        raise problem.shortened() from None
    if results and results[-1].interrupted:
        raise KeyboardInterrupt
    return results


def _library(texts: Sequence[SpecText], options: Options, heard: Warn = warn) -> SpecLibrary:
    return SpecLibrary(checking.loaded(texts, options, compiled=True), texts, options, heard)


def _below(spec: Spec) -> list[Spec]:
    """The text or file itself, or the specs in a folder. UsageError E001 if there is no such file."""
    if is_text(spec):
        return [spec]
    found: list[Spec] = [Path(name) for name in expanded([str(spec)])]
    for path in found:
        if not os.path.exists(path):
            read(path)                                         # which says why it cannot be read
    return found

"""Measure the operators of specs, compiled by one or several runtimes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from .. import attach
from ..benchmarking import limits, machine, measure, sizes, timing
from ..benchmarking.results import BenchResults, BenchRow
from ..errors import Diagnostic, ToolError, UsageError
from ..options import Options
from .spec_library import SpecLibrary

LEAST_ROUNDS = 3
Settings = Sequence[tuple[str, int | float]]


def measured(opened: Callable[[Options], SpecLibrary], options: Options, settings: Sequence[Settings], rounds: int,
             plan: timing.Plan, wants_limits: bool,
             progress: Callable[[int, int, str], None] = lambda done, of, name: None) -> BenchResults:
    """The time of every operator at every setting, for each of the runtimes that `options.runtime` lists.

    `opened`: gives the library for options with one runtime. `settings`: sizes and scalars; empty: those of
    [bench.sizes], or the largest test case. `wants_limits`: measure the machine's peak, too."""
    libraries = {_name(runtime): opened(replace(options, runtime=runtime)) for runtime in _runtimes(options)}
    for library in libraries.values():
        library.check_as_written("measure")
    builts = {name: library.loadable() for name, library in libraries.items()}
    first = next(iter(builts.values()))
    presets = sizes.presets(next(iter(libraries.values())).texts)
    todo = [(op.name, values) for op in first.ops for values in sizes.chosen(op, first, settings, presets)]
    rows: list[BenchRow] = []
    for n, (name, values) in enumerate(todo):
        progress(n, len(todo), name)
        rows += measure.measured(name, builts, values, options, rounds, plan)
    return BenchResults(tuple(rows), machine.described(), _limits(options, plan) if wants_limits else None)


def _runtimes(options: Options) -> list[str]:
    names = [name.strip() for name in options.runtime.split(",")]
    if "" in names or len({_name(n) for n in names}) < len(names):
        raise UsageError(Diagnostic("E930",
                                    f"--runtime {options.runtime}: several runtimes are different names with commas "
                                    "between them",
                                    hint="write --runtime clang,gcc"))
    return names


def _name(runtime: str) -> str:
    """A runtime file by its name."""
    return Path(runtime).stem if runtime.endswith(".py") else runtime


def _limits(options: Options, plan: timing.Plan) -> limits.Limits | None:
    """The machine's limits, measured through the first runtime that compiles C, or else the reference runtime; None
    without a C compiler."""
    named = _runtimes(options)
    for name in (*named, "clang"):
        runtime = attach.runtime_of(replace(options, runtime=name, config=options.config if name in named else ()))
        if "c" in runtime.suffixes:
            try:
                return limits.measured(runtime, measure.threads(options), LEAST_ROUNDS, plan)
            except ToolError:
                return None
    return None

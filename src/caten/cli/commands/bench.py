"""`caten bench`: how fast specs run, beside each other and beside what the machine can do."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from ... import attach
from ...benchmarking import limits, machine, measure, plot, regressions, results, sizes, timing
from ...compiler import Built
from ...errors import Diagnostic, ToolError, UsageError
from ...frontend.spec import SpecText
from ...options import Options
from ...testing.sizes_and_scalars import read_settings
from ..atomic_files import STDOUT, write
from ..inputs import as_written, sources
from ..outputs import Production
from ..progress import shown
from ..shared_options import GroupedCommand, GroupedOption, Request, Seconds, compiles

LEAST_ROUNDS = 3
_option = partial(click.option, cls=GroupedOption, group="Measuring")
EXAMPLES = """\b
Examples:
  caten bench gelu.toml --json old.json
  caten bench gemm.toml --sizes "M=512,N=512,K=512" --sizes "M=97,N=97,K=97" --config OMP=1
  caten bench gelu.toml gemv.toml --runtime clang,gcc --json new.json --plot new.svg
  caten bench --compare old.json new.json || echo "something became slower" >&2"""


@click.command("bench", cls=GroupedCommand, epilog=EXAMPLES)
@_option("--sizes", "given", multiple=True, metavar="M=100,A=2.0",
              help="Measure at these sizes; may be repeated. Without it [bench.sizes], or the greatest test case.")
@_option("--rounds", type=click.IntRange(min=LEAST_ROUNDS), default=11, show_default=True, metavar="N",
         help="Samples of each time.")
@_option("--batch", type=Seconds(), default=timing.BATCH, show_default=True, metavar="SECONDS",
              help="How long one sample takes: as many calls as fit.")
@_option("--retakes", type=click.IntRange(min=0), default=2, show_default=True, metavar="N",
              help="How often a sample is taken again during which others used the CPU.")
@_option("--limits/--no-limits", "wants_limits", default=True, help="Measure what the machine can do, too.")
@_option("--json", "json_file", metavar="FILE",
         help="Write the results, with every sample, to a file. '-' is stdout, without the table.")
@_option("--plot", "plot_file", metavar="FILE", help="Draw the results as SVG.")
@_option("--compare", nargs=2, metavar="OLD NEW",
         help="Compare two files of results; exit code 1 when something became slower.")
@compiles(runs=True)
def command(request: Request, given: tuple[str, ...] = (), rounds: int = 11, batch: float = timing.BATCH,
            retakes: int = 2,
            wants_limits: bool = True, json_file: str | None = None, plot_file: str | None = None,
            compare: tuple[str, str] | None = None) -> int:
    """Measure how fast specs run: the median time of a call with its 95 % interval, and what it is of what the
    machine can do. -r takes several runtimes, separated by commas."""
    if compare:
        return _compared(request, *compare)
    settings = [read_settings(text, "--sizes") for text in given]
    plan = timing.Plan(batch, retakes)
    found = results.Results(_rows(request, settings, rounds, plan), machine.described(),
                            _limits(request.options, plan) if wants_limits else None)
    if json_file is not None:
        write(json_file, found.text())
    if plot_file is not None:
        write(plot_file, plot.drawn(found))
    if json_file != STDOUT or request.output is not None:
        write(request.output or STDOUT, "".join([f"{line}\n" for line in results.table(found)]))
    return 0


def _compared(request: Request, old: str, new: str) -> int:
    if request.inputs:
        raise UsageError(Diagnostic("E930",
                                    f"--compare compares two files of results, and {request.inputs[0]} is to be "
                                    "measured",
                                    hint="caten bench FILE --json new.json, then caten bench --compare old.json "
                                         "new.json"))
    before, after = results.read(old), results.read(new)
    write(request.output or STDOUT, "".join([f"{line}\n" for line in regressions.report(before, after)]))
    return 1 if any(change.verdict == "slower" for change in regressions.changes(before, after)) else 0


def _rows(request: Request, given: Sequence[Sequence[tuple[str, int | float]]], rounds: int,
          plan: timing.Plan) -> tuple[results.Row, ...]:
    texts = sources(request)
    builts = {_name(runtime): _built(request, texts, runtime) for runtime in _runtimes(request.options)}
    first = next(iter(builts.values()))
    presets = sizes.presets(texts)
    todo = [(op.name, values) for op in first.ops for values in sizes.chosen(op, first, given, presets)]
    rows: list[results.Row] = []
    with shown("measuring", quiet=request.reporter.format != "text") as progress:
        for n, (name, values) in enumerate(todo):
            progress(n, len(todo), name)
            rows += measure.measured(name, builts, values, request.options, rounds, plan)
    return tuple(rows)


def _built(request: Request, texts: Sequence[SpecText], runtime: str) -> Built:
    production = Production(replace(request, options=replace(request.options, runtime=runtime)), texts)
    as_written(production.programs, "measure")
    return production.loadable()


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
    """The machine's limits, through the first of the runtimes that makes C, or else the reference runtime; None
    where there is no C compiler."""
    named = _runtimes(options)
    for name in (*named, "clang"):
        runtime = attach.runtime_of(replace(options, runtime=name, config=options.config if name in named else ()))
        if "c" in runtime.suffixes:
            try:
                return limits.measured(runtime, measure.threads(options), LEAST_ROUNDS, plan)
            except ToolError:
                return None
    return None

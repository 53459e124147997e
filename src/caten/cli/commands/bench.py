"""`caten bench`: measure specs, and compare the times with each other and with the peak of the machine."""
from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from ...benchmarking import plot, regressions, results, timing
from ...errors import Diagnostic, UsageError
from ...options import Options
from ...testing.sizes_and_scalars import read_settings
from ...workflows.bench_specs import LEAST_ROUNDS, measured
from ...workflows.spec_library import SpecLibrary
from ..atomic_files import STDOUT, write
from ..inputs import sources
from ..outputs import library
from ..progress import shown
from ..shared_options import GroupedCommand, GroupedOption, Request, Seconds, compiles

_option = partial(click.option, cls=GroupedOption, group="Measuring")
EXAMPLES = """\b
Examples:
  caten bench gelu.toml --json old.json
  caten bench gemm.toml --sizes "M=512,N=512,K=512" --sizes "M=97,N=97,K=97" --config OMP=1
  caten bench gelu.toml gemv.toml --runtime clang,gcc --json new.json --plot new.svg
  caten bench --compare old.json new.json || echo "something became slower" >&2"""


@click.command("bench", cls=GroupedCommand, epilog=EXAMPLES)
@_option("--sizes", "given", multiple=True, metavar="M=100,A=2.0",
         help="Measure at these sizes. May be repeated. The default is [bench.sizes], or the largest test case.")
@_option("--rounds", type=click.IntRange(min=LEAST_ROUNDS), default=11, show_default=True, metavar="N",
         help="The number of samples.")
@_option("--batch", type=Seconds(), default=timing.BATCH, show_default=True, metavar="SECONDS",
         help="The duration of a sample, which consists of as many calls as fit.")
@_option("--retakes", type=click.IntRange(min=0), default=2, show_default=True, metavar="N",
         help="How often a sample is repeated if other processes used the CPU meanwhile.")
@_option("--limits/--no-limits", "wants_limits", default=True,
         help="Also measure the peak FLOP/s and memory bandwidth of the machine.")
@_option("--json", "json_file", metavar="FILE",
         help="Write the results, with every sample, to FILE as JSON. '-' is stdout; then there is no table.")
@_option("--plot", "plot_file", metavar="FILE", help="Draw the results to FILE as SVG.")
@_option("--compare", nargs=2, metavar="OLD NEW",
         help="Compare two files of results. The exit code is 1 if an operator became slower.")
@compiles(runs=True)
def command(request: Request, given: tuple[str, ...] = (), rounds: int = 11, batch: float = timing.BATCH,
            retakes: int = 2, wants_limits: bool = True, json_file: str | None = None, plot_file: str | None = None,
            compare: tuple[str, str] | None = None) -> int:
    """Measure the median time of a call of each operator, with its 95 % confidence interval, and compare it with the
    peak FLOP/s and memory bandwidth of the machine. -r takes several runtimes, separated by commas."""
    if compare:
        return _compared(request, *compare)
    settings = [read_settings(text, "--sizes") for text in given]
    texts = sources(request)

    def opened(options: Options) -> SpecLibrary:
        return library(replace(request, options=options), texts)
    with shown("measuring", quiet=request.reporter.format != "text") as progress:
        found = measured(opened, request.options, settings, rounds, timing.Plan(batch, retakes), wants_limits, progress)
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

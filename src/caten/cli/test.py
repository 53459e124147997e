"""`caten test`: the tests that specs carry."""
from __future__ import annotations

from dataclasses import replace

import click

from ..testing import runner
from ..testing.outcomes import Report
from .files import STDOUT, write
from .inputs import as_written, sources
from .options import GroupedCommand, Request, compiles
from .production import Production
from .progress import shown

EXAMPLES = """\b
Examples:
  caten test gemm.toml
  caten test samples/*.toml
  caten test gemm.toml --only small --runtime gcc -O0"""


@click.command("test", cls=GroupedCommand, epilog=EXAMPLES)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only the cases with this tag.")
@compiles(runs=True)
def command(request: Request, tags: tuple[str, ...] = ()) -> int:
    """Compile every spec and run its [test] and [[test.case]]s in a process of their own; exit code 1 when one fails or compares
    nothing, 5 when none matches."""
    unselected = replace(request, options=replace(request.options, only=()))     # --only names composites or cases here
    production = Production(unselected, sources(request))
    as_written(production.programs, "test")
    lines: list[str] = []

    def ended(report: Report) -> None:
        lines.extend(report.lines())
        if request.output in (None, STDOUT):              # each when it is known: the next may take long
            write(STDOUT, "".join([f"{line}\n" for line in report.lines()]))

    with shown("testing", quiet=request.reporter.format != "text") as progress:
        reports = runner.run_cases(production.loadable(), unselected.options, tags, request.options.only, progress, ended)
    passed = sum([report.passed for report in reports])
    count = f"{passed} of {len(reports)} passed"
    write(request.output or STDOUT, f"{count}\n" if request.output in (None, STDOUT) else "".join([f"{line}\n" for line in (*lines, count)]))
    for report in reports:
        request.reporter.show(report.diagnostics)
    return 0 if passed == len(reports) else 1

"""`caten test`: run the tests in specs."""
from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from ...compiler import Warn
from ...errors import Diagnostic, UsageError, amount
from ...options import Options
from ...workflows.spec_folders import expanded
from ...workflows.spec_library import SpecLibrary
from ...workflows.test_results import TestResults, json_text
from ...workflows.test_specs import FileRun, Message, tested
from ..atomic_files import STDOUT, write
from ..inputs import check_names, sources
from ..outputs import library
from ..progress import shown
from ..shared_options import GroupedCommand, GroupedOption, Request, compiles

_option = partial(click.option, cls=GroupedOption)
EXAMPLES = """\b
Examples:
  caten test gemm.toml
  caten test samples -j 4
  caten test samples softmax.toml --junit junit.xml --json results.json
  caten test gemm.toml --only small --runtime gcc -O0
  caten test softmax.toml --grad"""


@click.command("test", cls=GroupedCommand, epilog=EXAMPLES)
@_option("--tag", "tags", multiple=True, metavar="TAG", group="Input", help="Select the cases with this tag.")
@_option("--grad", is_flag=True, group="Input",
         help="Test the gradients of the operators, against central differences in float64, instead of the results.")
@_option("-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
         group="Machine and runtime",
         help="Test N files in parallel, each in its own process.")
@_option("--junit", "junit_file", metavar="FILE", group="Output",
         help="Write the results as JUnit XML. '-' is stdout; then there is no report.")
@_option("--json", "json_file", metavar="FILE", group="Output",
         help="Write the results as JSON. '-' is stdout; then there is no report.")
@compiles(runs=True)
def command(request: Request, tags: tuple[str, ...] = (), grad: bool = False, jobs: int = 1,
            junit_file: str | None = None, json_file: str | None = None) -> int:
    """Compile every spec, also those in folders, run its test cases ([[test.case]]) in child processes, and compare the
    results with its reference ([test]). Each file is tested separately; a file with errors counts as failed. The exit
    code is 1 if a case fails or compares nothing, and 5 if no case matches."""
    if [junit_file, json_file, request.output].count(STDOUT) > 1:
        raise UsageError(Diagnostic("E903", "only one of --junit, --json and -o can go to stdout",
                                    hint="name a file for the others"))
    request = replace(request, inputs=expanded(request.inputs))
    check_names(request)
    files = request.inputs
    live = request.output in (None, STDOUT) and STDOUT not in (junit_file, json_file)
    lines: list[str] = []

    def opened(number: int, options: Options, warn: Warn) -> SpecLibrary:
        single = replace(request, inputs=(files[number],), options=options)
        return library(single, sources(single), warn)

    def heard(run: FileRun, message: Message) -> None:
        if message.get("diagnostics"):
            request.reporter.show(run.diagnostics)
        if "case" not in message:
            return
        first, *rest = message["lines"]
        said = [f"{run.file}: {first}" if len(files) > 1 else first, *rest]
        lines.extend(said)
        if live:                                          # at once, because the next case may take long
            write(STDOUT, "".join([f"{line}\n" for line in said]))

    with shown("testing", quiet=request.reporter.format != "text") as progress:
        results = tested(opened, files, request.options, tags, jobs, progress, heard, grad)
    if live and (lines or len(files) > 1):                # for a single file that fails to compile, its errors suffice
        write(STDOUT, f"{summary(results)}\n")
    elif request.output not in (None, STDOUT):
        write(request.output, "".join([f"{line}\n" for line in (*lines, summary(results))]))
    _write_records(results, junit_file, json_file)
    failed = {result.exit_code or 1 for result in results.files if not result.passed}
    return 0 if not failed else failed.pop() if len(failed) == 1 else 1


def _write_records(results: TestResults, junit_file: str | None, json_file: str | None) -> None:
    if junit_file is not None:
        # imported here: the XML library takes longer to import than a small test to run
        from ...workflows.junit_results import junit_record
        write(junit_file, junit_record(results))
    if json_file is not None:
        write(json_file, json_text(results))


def summary(results: TestResults) -> str:
    """`5 of 7 passed in 3 files; failed: gelu.toml (2 of 3), bad.toml (not tested)`."""
    def part(passed: int, of: int) -> str:
        return f"{passed} of {of}"
    files = results.files
    text = part(sum([c.passed for c in results.cases]), len(results.cases)) + " passed"
    if len(files) == 1:
        return text
    failed = [f"{r.file} ({part(sum([not c.passed for c in r.cases]), len(r.cases)) if r.cases else 'not tested'})"
              for r in files if not r.passed]
    return f"{text} in {amount(len(files), 'file')}" + (f"; failed: {', '.join(failed)}" if failed else "")

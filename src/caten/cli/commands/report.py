"""`caten report`: compare the results of test-runtime for several runtimes."""
from __future__ import annotations

import click

from ...conformance import record, record_comparison
from ...echo import escape_lines
from ..atomic_files import STDOUT, write

EXAMPLES = """\b
Examples:
  caten report merge clang/reports.json gcc/reports.json
  caten report merge */reports.json -o runtimes.md"""


@click.command("report", epilog=EXAMPLES)
@click.argument("action", type=click.Choice(("merge",)))
@click.argument("files", nargs=-1, required=True, metavar="REPORTS.JSON…")
@click.option("-o", "--output", default=STDOUT, metavar="FILE", help="The output file. The default is stdout.")
def command(action: str, files: tuple[str, ...], output: str) -> None:
    """Merge the reports.json of several runtimes, which test-runtime writes, into one Markdown table (merge)."""
    write(output, escape_lines(record_comparison.merged([record.read(name) for name in files])))

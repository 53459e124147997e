"""`caten check`: report the errors of specs, without writing files."""
from __future__ import annotations

import click

from ...checking import Checked, proved
from ...echo import escape
from ...errors import CatenError, combined
from ..atomic_files import STDOUT, write
from ..inputs import load, sources
from ..shared_options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten check gemm.toml
  caten check *.toml --diagnostics-format=json"""


@click.command("check", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Parse specs, infer shapes and types, check bounds, schedule, and try the rules of [rewrite]. Report every
    problem, also in test code. For a correct operator, print one line with the number of its run-time checks."""
    lines: list[str] = []
    problems: list[CatenError] = []
    for program in load(request, sources(request)):
        try:
            lines += report(proved(program, request.options, request.warn))
        except CatenError as problem:
            problems.append(problem)
    write(request.output or STDOUT, "".join([line + "\n" for line in lines]))
    if problems:
        raise combined(problems)


def report(found: Checked) -> list[str]:
    """`Gemm: ok; checks: …`, and one line for each check inside the loops (those at entry are a few comparisons)."""
    what = f"checks: {found.at_entry} at entry, {len(found.in_loops)} inside the loops"
    return [f"{found.name}: ok; {what}", *[f"  {row}: {escape(text)}" for row, text in found.in_loops.items()]]

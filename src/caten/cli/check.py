"""`caten check`: what is wrong with specs, without writing anything."""
from __future__ import annotations

import click

from .. import driver
from ..core.program import Check, Ensure, Program
from ..echo import escape
from ..errors import CatenError
from ..testing.lambda_text import check_reference
from .files import STDOUT, write
from .inputs import combined, load, sources
from .options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten check gemm.toml
  caten check *.toml --diagnostics-format=json"""


@click.command("check", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Parse, infer, check bounds and schedule; report every problem, those of test code too. A spec that is right gets one line, with its checks."""
    lines: list[str] = []
    problems: list[CatenError] = []
    for program in load(request, sources(request)):
        try:
            check_reference(program)
            lines += report(driver.advance(program, "loop", request.options, request.warn))
        except CatenError as problem:
            problems.append(problem)
    write(request.output or STDOUT, "".join([line + "\n" for line in lines]))
    if problems:
        raise combined(problems)


def report(program: Program) -> list[str]:
    """`Gemm: ok`, and the checks that a call still makes inside its loops (those at entry are a few comparisons)."""
    at_entry = {e.row for e in program.all(Ensure)}
    inside = [c for c in program.all(Check) if c.row not in at_entry]
    what = f"checks: {len(at_entry)} at entry, {len(inside)} inside the loops"
    return [f"{program.name}: ok; {what}", *[f"  {c.row}: {escape(c.text)}" for c in inside]]

"""`caten render`: any level to the runtime's source text."""
from __future__ import annotations

import click

from .. import driver
from .files import STDOUT, write
from .inputs import load, sources
from .options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten render gemm.toml
  caten render gemm.toml -o gemm.c
  caten schedule gemm.toml | caten render - | cc -x c -fsyntax-only -"""


@click.command("render", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Print the source text that the runtime compiles: C for most."""
    write(request.output or STDOUT, driver.render(load(request, sources(request)), request.options, request.warn))

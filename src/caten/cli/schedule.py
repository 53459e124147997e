"""`caten schedule`: any earlier level to the loop level."""
from __future__ import annotations

import click

from .options import GroupedCommand, GroupedOption, Request, compiles
from .stages import print_level

EXAMPLES = """\b
Examples:
  caten schedule gemm.toml
  caten schedule gemm.toml -s tiles.lisp
  caten schedule gemm.toml --explain
  caten ir gemm.toml | caten schedule -"""


@click.command("schedule", cls=GroupedCommand, epilog=EXAMPLES)
@click.option("--explain", is_flag=True, cls=GroupedOption, group="Output",
              help="Print behind each program, as comments, what was planned and tried for it, and why some of it was not taken.")
@compiles()
def command(request: Request, explain: bool = False) -> None:
    """Print the (loop …) level: kernels, as the compiler's choice, the spec's schedule or -s FILE make them."""
    print_level(request, "loop", explain)

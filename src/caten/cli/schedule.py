"""`caten schedule`: any earlier level to the loop level."""
from __future__ import annotations

import click

from .options import GroupedCommand, Request, compiles
from .stages import print_level

EXAMPLES = """\b
Examples:
  caten schedule gemm.toml
  caten schedule gemm.toml -s tiles.lisp
  caten ir gemm.toml | caten schedule -"""


@click.command("schedule", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Print the (loop …) level: kernels, as the compiler's choice, the spec's schedule or -s FILE make them."""
    print_level(request, "loop")

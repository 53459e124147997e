"""`caten ir`: specs, or the op level, to the tensor level."""
from __future__ import annotations

import click

from .options import GroupedCommand, Request, compiles
from .stages import print_level

EXAMPLES = """\b
Examples:
  caten ir gemm.toml
  caten parse gemm.toml | caten ir -"""


@click.command("ir", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Print the (tensor …) level: shapes and types inferred, loop nests raised to index notation where they fit."""
    print_level(request, "tensor")

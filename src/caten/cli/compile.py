"""`caten compile`: the last stage, from any level to a library."""
from __future__ import annotations

import click

from .build import build
from .options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten compile gemm.toml
  caten schedule gemm.toml | caten compile - -o gemm.so
  caten compile -c gemm.toml -o gemm.o"""


@click.command("compile", cls=GroupedCommand, epilog=EXAMPLES)
@compiles(products=True)
def command(request: Request) -> int:
    """Compile specs, or the text of any stage, to a library: the same as build."""
    return build(request)

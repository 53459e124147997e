"""`caten parse`: specs to the op level."""
from __future__ import annotations

import click

from .options import GroupedCommand, Request, compiles
from .stages import print_level

EXAMPLES = """\b
Examples:
  caten parse gemm.toml
  caten parse -x lisp - < gemm.lisp
  caten parse '(composite ((A{float}[N]) -> (B{float}[N])) (dotimes (i N) (setf (aref B i) (* 2 (aref A i)))))'
  caten parse gemm.toml -DM=100 -march=x86_64_v3 > gemm.op"""


@click.command("parse", cls=GroupedCommand, epilog=EXAMPLES)
@compiles()
def command(request: Request) -> None:
    """Print the validated, expanded spec: one (op …) for each composite, with all that the later stages need."""
    print_level(request, "op")

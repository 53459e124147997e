"""`caten build`, which is what `caten` does without a command: specs to a library, or to whatever -o and --emit ask for."""
from __future__ import annotations

import click

from .files import write
from .options import GroupedCommand, Request, compiles
from .remembered import Remembered

EXAMPLES = """\b
Examples:
  caten gemm.toml                                    gemm.so, gemm.h, gemm.json
  caten -i gemm.toml --runtime clang --test "M=512,N=512,K=512" --config OMP=1,MARCH=native --debug 1
  caten gemm.toml softmax.toml -o libops.so          several specs, one library
  caten gemm.toml -o gemm.c                          the kind follows the suffix
  caten gemm.toml --emit=so,c,example                library, source, a program that calls it
  caten -DM=100 -O3 -march=native -S gemm.toml -o -  assembly, M fixed, on stdout
  caten gemm.toml -MD -MF gemm.d -o build/gemm.so    dependencies for make"""


@click.command("build", cls=GroupedCommand, epilog=EXAMPLES)
@compiles(products=True)
def command(request: Request) -> int:
    """Compile specs (or texts of the stages) to one library with its header and manifest."""
    return build(request)


def build(request: Request) -> int:
    """What building and the compile stage have in common."""
    known = Remembered(request)
    products = known.find()
    if products is None:
        from .making import make  # every stage comes with it, which takes longer than a build that is remembered
        return make(request, known)
    for path, (content, mode) in products.items():
        write(path, content, mode)
    return 0

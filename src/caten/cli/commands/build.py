"""`caten build`, the default command: compile specs to a library, or to the outputs named by -o and --emit."""
from __future__ import annotations

from typing import Any

import click

from ..atomic_files import write
from ..command_cache import Remembered
from ..shared_options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten gemm.toml                                    gemm.so, gemm.h, gemm.json
  caten -i gemm.toml --runtime clang --test "M=512,N=512,K=512" --config OMP=1,MARCH=native --debug 1
  caten gemm.toml softmax.toml -o libops.so          several specs, one library
  caten gemm.toml -o gemm.c                          the suffix selects the kind
  caten gemm.toml --emit=so,c,example                library, source, a program that calls it
  caten -DM=100 -O3 -march=native -S gemm.toml -o -  assembly, M fixed, on stdout
  caten gemm.toml -MD -MF gemm.d -o build/gemm.so    dependencies for make"""


@click.command("build", cls=GroupedCommand, epilog=EXAMPLES)
@compiles(products=True)
def command(request: Request) -> int:
    """Compile specs (or texts of the stages) to one library with its header and manifest."""
    return build(request)


def build(request: Request) -> int:
    """Write the outputs of a build or compile command; the exit code. A build from the cache imports no stage."""
    known = Remembered(request)
    products = known.find()
    if products is None:
        from ..outputs import make  # imported here: it imports every stage
        return make(request, known, _test)
    for path, (content, mode) in products.items():
        write(path, content, mode)
    return 0


def _test(*built: Any) -> int:
    from ..test_report import run_test  # imported here: it imports numpy, which only --test needs
    return run_test(*built)

"""`caten build`, which is what `caten` does without a command: specs to a library, or to whatever -o and --emit ask for."""
from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ..errors import Diagnostic, UsageError
from ..frontend import spec
from ..frontend.spec import SpecText
from .app import COMMANDS
from .depfile import depfile
from .files import STDOUT, write
from .inputs import sources
from .options import GroupedCommand, Request, compiles
from .printing import answer
from .production import ARTIFACTS, Production, content
from .products import Plan, plan, stem_of
from .settings import match_settings

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
    return make(request)


def make(request: Request) -> int:
    """What building and the compile stage have in common."""
    if request.prints:
        return answer(request)
    texts = sources(request, tuple(COMMANDS))
    production = Production(request, texts)
    names = [p.name for p in production.programs]
    todo = plan(request.output, request.emits, stem_of(request.inputs, names, request.output), save_temps=request.save_temps,
                makes=production.makes)
    production.name = Path(todo.stem).name
    settings = None if request.test is None else match_settings(request.test, production.programs)
    if settings is not None and STDOUT in [path for _, path in todo.files]:
        raise UsageError(Diagnostic("E903", "both a product and the report of --test would go to stdout", hint="name a file with -o"))
    if request.dry_run:
        return _dry_run(production, todo)
    made = {path: content(production, kind) for kind, path in todo.files if kind != "depfile"}
    for kind, path in todo.files:
        if kind != "depfile":
            write(path, made[path], 0o755 if kind == "so" else 0o644)
    _write_depfile(request, production, todo, texts)
    if settings is None:
        return 0
    from .test_report import run_test  # with it comes numpy, which a build does not need
    return run_test(production, todo, settings)


def _dry_run(production: Production, todo: Plan) -> int:
    """-###: the commands, quoted, on stderr; nothing is run and nothing written."""
    for kind, path in todo.files:
        if kind in ARTIFACTS:
            for line in production.commands(kind, path):
                print(" " + shlex.join(line), file=sys.stderr)
    return 0


def _write_depfile(request: Request, production: Production, todo: Plan, texts: Sequence[SpecText]) -> None:
    """-MD, or --emit=depfile: the products depend on the specs, what they include, the schedule and the runtime file."""
    path = todo.path("depfile") or (None if request.depfile is None else request.depfile.file or f"{todo.stem}.d")
    if path is None:
        return
    wanted = request.depfile
    products = [p for kind, p in todo.files if kind != "depfile" and p != STDOUT]
    targets = wanted.targets if wanted and wanted.targets else products[:1]
    write(path, depfile(targets or [f"{todo.stem}.so"], _dependencies(request, production, texts), phony=wanted is not None and wanted.phony))


def _dependencies(request: Request, production: Production, texts: Sequence[SpecText]) -> list[str]:
    files = [name for name in request.inputs if name != STDOUT and not name.lstrip().startswith("(")]
    for text in texts:
        if text.lang == "toml" or text.text.lstrip().startswith("(composite"):
            files += [_short(path) for path in spec.dependencies(text, request.options)]
    if request.options.schedule is not None and request.options.schedule_file != STDOUT:
        files.append(request.options.schedule_file)
    runtime = production.rendered.runtime
    return files if runtime.file is None else [*files, _short(runtime.file)]


def _short(path: Path) -> str:
    """Relative to the current directory where the file is below it."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)

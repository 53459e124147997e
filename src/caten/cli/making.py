"""A build that was not done before: the stages, the products, the report of --test."""
from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import Diagnostic, UsageError
from ..frontend import spec
from ..frontend.spec import SpecText
from ..runtime import records
from ..runtime.toolchain import under_name
from ..testing.settings import match_settings
from .app import COMMANDS
from .depfile import depfile
from .files import STDOUT, write
from .inputs import as_written, sources
from .options import Request
from .printing import answer
from .production import ARTIFACTS, Production, content
from .products import Plan, plan, stem_of
from .remembered import Remembered


def make(request: Request, known: Remembered) -> int:
    """Make what the command line asks for, and have it remembered."""
    if request.prints:
        return answer(request)
    texts = sources(request, tuple(COMMANDS))
    production = Production(request, texts)
    names = [p.name for p in production.programs]
    todo = plan(request.output, request.emits, stem_of(request.inputs, names, request.output), save_temps=request.save_temps,
                makes=production.makes)
    production.name = Path(todo.stem).name
    if request.test is not None:
        as_written(production.programs, "test")
    settings = None if request.test is None else match_settings(request.test, production.programs)
    if settings is not None and STDOUT in [path for _, path in todo.files]:
        raise UsageError(Diagnostic("E903", "both a product and the report of --test would go to stdout", hint="name a file with -o"))
    if request.dry_run:
        return _dry_run(production, todo)
    made = {path: (_product(production, kind, path), 0o755 if kind == "so" else 0o644) for kind, path in todo.files if kind != "depfile"}
    for path, (data, mode) in made.items():
        write(path, data, mode)
    _write_depfile(request, production, todo, texts)
    if known.name is not None and not request.reporter.kept:
        known.keep(made, [*_dependencies(request, production, texts), *_collections(request, texts)])
    if settings is None:
        return 0
    from .test_report import run_test  # with it comes numpy, which a build does not need
    return run_test(production, todo, settings)


def _product(production: Production, kind: str, path: str) -> bytes:
    """The bytes of a product in the file `path`."""
    made = content(production, kind)
    return under_name(made, Path(path).name) if kind == "so" else made


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
    files += [path for path in _collections(request, texts) if Path(path).is_file()]
    return files if runtime.file is None else [*files, _short(runtime.file)]


def _collections(request: Request, texts: Sequence[SpecText]) -> list[str]:
    """The files of records beside the specs, which -O3 reads where they are."""
    return [str(records.beside(text.name)) for text in texts if text.lang == "toml"] if request.options.opt >= 3 else []


def _short(path: Path) -> str:
    """Relative to the current directory where the file is below it."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)

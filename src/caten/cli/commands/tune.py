"""`caten tune`: search for faster schedules on this machine, for -O3; show, export and merge the records."""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from ...core.program import Source
from ...errors import Diagnostic, UsageError
from ...runtime import library_cache, tuning_records
from ...runtime.tuning_records import Record
from ...testing.sizes_and_scalars import read_settings
from ...workflows.tune_specs import BUDGET, tuned
from ..atomic_files import STDOUT, write
from ..inputs import load, sources
from ..outputs import library
from ..progress import shown
from ..shared_options import GroupedCommand, GroupedOption, Request, Seconds, compiles

_option = partial(click.option, cls=GroupedOption, group="Tuning")
EXAMPLES = """\b
Examples:
  caten tune axpy.toml --sizes N=4096 --budget 2 && caten -O3 axpy.toml
  caten tune gemm.toml --sizes "M=512,N=512,K=512" --config OMP=1 --budget 2
  caten tune gemm.toml --sizes "M=512,N=512,K=512" --budget 2 --beside     gemm.tune.json, to be kept with the spec
  caten tune --show
  caten tune --export records.json
  caten tune --merge records.json

A minute for each operator, which is the default, finds more than these two seconds."""


@click.command("tune", cls=GroupedCommand, epilog=EXAMPLES)
@_option("--budget", type=Seconds(), default=BUDGET, show_default=True, metavar="SECONDS",
         help="The time for the search, for each operator.")
@_option("--sizes", "given", multiple=True, metavar="M=100,A=2.0",
         help="Tune for these sizes. May be repeated. The default is [bench.sizes], or the largest test case.")
@_option("--beside", is_flag=True,
         help="Write the records next to the specs, as NAME.tune.json, instead of into the cache.")
@_option("--show", is_flag=True, help="Print the existing records; with FILEs, only those of their operators.")
@_option("--export", "export", metavar="FILE",
         help="Write the records that --show prints to FILE as JSON. '-' is stdout.")
@_option("--merge", is_flag=True,
         help="Copy the records of the FILEs into the cache. For the same kernel and CPU, the newer record is kept.")
@_option("--json", "json_file", metavar="FILE",
         help="Write the results to FILE as JSON. '-' is stdout; then there is no report.")
@compiles(runs=True)
def command(request: Request, budget: float = BUDGET, given: tuple[str, ...] = (), beside: bool = False,
            show: bool = False,
            export: str | None = None, merge: bool = False, json_file: str | None = None) -> int:
    """Search for schedules that are faster on this machine than those of -O2, spend --budget seconds on each operator,
    and record the best schedules for -O3. Ctrl-C ends the search; the best schedules found so far are recorded."""
    if show + merge + (export is not None) + beside > 1:
        raise UsageError(Diagnostic("E933", "--show, --export, --merge and --beside exclude each other",
                                    hint="run caten tune once for each"))
    if merge:
        return _merge(request)
    if show or export is not None:
        return _show(request, export, json_file)
    return _tune(request, budget, given, beside, json_file)


def _tune(request: Request, budget: float, given: Sequence[str], beside: bool, json_file: str | None) -> int:
    request = replace(request, options=replace(request.options, opt=2))
    settings = [read_settings(text, "--sizes") for text in given]
    with shown("tuning", quiet=request.reporter.format != "text") as progress:
        def said(name: str, spent: float, of: float, text: str) -> None:
            progress(min(int(spent), int(of)), int(of), f"{name}: {text}")
        results = list(tuned(library(request, sources(request)), settings, budget, beside, said))
    if json_file is not None:
        write(json_file, json.dumps([r.as_json() for r in results], indent=2, ensure_ascii=False) + "\n")
    if json_file != STDOUT:
        write(request.output or STDOUT, "".join([f"{r.line()}\n" for r in results]))
    if results and results[-1].interrupted:
        raise KeyboardInterrupt
    return 0


def _show(request: Request, export: str | None, json_file: str | None) -> int:
    found = _known(request)
    if export is not None:
        write(export, tuning_records.text(found))
        return 0
    if json_file is not None:
        write(json_file, tuning_records.text(found))
    if json_file != STDOUT:
        write(request.output or STDOUT, "".join([f"{r.line()}\n" for r in found]) or "no records\n")
    return 0


def _known(request: Request) -> list[Record]:
    """The records of the cache and beside the inputs; with inputs only those of their operators."""
    found = tuning_records.stored(_folder(request), request.warn) if request.options.use_cache else []
    if not request.inputs:
        return tuning_records.merged(found)
    programs = load(request, sources(request), applied=False)
    files = dict.fromkeys([tuning_records.beside(source.file) for p in programs
                           if (source := p.first(Source)) is not None])
    found += [record for file in files for record in tuning_records.readable(file, request.warn)]
    return tuning_records.merged([r for r in found if r.op in [p.name for p in programs]])


def _merge(request: Request) -> int:
    if not request.inputs:
        raise UsageError(Diagnostic("E933", "--merge takes files of records",
                                    hint="caten tune --export FILE writes them"))
    folder = _folder(request)
    before = tuning_records.stored(folder, request.warn)
    theirs = tuning_records.merged([record for name in request.inputs for record in tuning_records.read(Path(name))])
    after = tuning_records.merged([*before, *theirs])
    fresh = [record for record in after if record not in before]
    for record in fresh:
        tuning_records.keep(record, folder)
    write(request.output or STDOUT, f"{len(theirs)} records read, {len(fresh)} taken, {len(after)} now\n")
    return 0


def _folder(request: Request) -> Path:
    return library_cache.default_directory(request.options.cache_dir)

"""`caten ops`: the library of operators: list it, show one, compile some."""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from ...echo import escape
from ...errors import Diagnostic, UsageError, amount
from ...frontend import operator_library as library
from ...frontend.operator_library import Entry
from ...options import Instance, Options
from ..atomic_files import STDOUT, write
from ..output_kinds import Emit
from ..shared_options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten ops                                      every operator, by family
  caten ops norm                                 those with this word in their name or description
  caten ops softmax                              the signature and the spec of one
  caten ops softmax --source > my_softmax.toml   its spec, to be changed
  caten ops build softmax gelu -o libnet.so      a library of some, with header and manifest
  caten ops:softmax --instance "x=float64[M,N]"  a library of one, for matrices of float64
  caten test ops:softmax                         ops:NAME stands for the file of its spec"""


BUILDS = """\b
Examples:
  caten ops build softmax gelu                              libops.so, libops.h, libops.json, libops_table.h
  caten ops build add sum --type float32,float64 --rank 1,2,3
  caten ops build softmax gelu layer_norm -o netops/        a Python package: import netops
  caten ops build --all -o libcaten.so                      every operator (minutes)"""
MOST_AXES = 32


class Ops(click.Group):
    """`build` is a command; all other words are for `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in ("build", "--help", "-h") else ["show", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["build"]


@click.group("ops", cls=Ops, epilog=EXAMPLES, subcommand_metavar="[WORD… | build NAME…]", options_metavar="[OPTIONS]")
def command() -> None:
    """List the operators of the library, show one, or compile some.

    Options of the list: --family NAME lists only this family, --json prints JSON, and --source prints specs."""


@command.command("show")
@click.argument("words", nargs=-1, metavar="WORD…")
@click.option("--family", metavar="NAME", help="List only the operators of this family.")
@click.option("--source", is_flag=True, help="Print the specs.")
@click.option("--json", "as_json", is_flag=True, help="Print the operators as JSON.")
def show(words: tuple[str, ...], family: str | None, source: bool, as_json: bool) -> None:
    """List operators by the words in their names and descriptions, or show one."""
    found = chosen(words, family)
    if source:
        write(STDOUT, "\n".join([entry.source for entry in found]))
    elif as_json:
        write(STDOUT, json.dumps([described(entry) for entry in found], indent=2, ensure_ascii=False) + "\n")
    elif len(found) == 1:
        write(STDOUT, page(found[0]))
    else:
        write(STDOUT, listing(found))


@command.command("build", cls=GroupedCommand, epilog=BUILDS)
@click.option("--all", "everything", is_flag=True, help="Compile all operators of the library.")
@click.option("--type", "types", multiple=True, metavar="NAME,…",
              help="Compile instances for these element types. The default is float32. An operator that has none of "
                   "them gets the instance of its first test case.")
@click.option("--rank", "ranks", multiple=True, metavar="N,…",
              help="Compile instances for these numbers of axes, for operators that take any number. The default is 1.")
@compiles(products=True)
def build(request: Request, everything: bool, types: tuple[str, ...], ranks: tuple[str, ...]) -> int:
    """Compile operators of caten's library to one shared library with its header, manifest and look-up table. -o DIR/
    writes a Python package."""
    from .build import build as built
    if bool(request.inputs) == everything:
        raise UsageError(Diagnostic("E902", "operators are named, and --all is given" if everything
                                    else "no operators are named",
                                    hint="caten ops build softmax gelu -o libnet.so; caten ops lists them"))
    names = [entry.name for entry in library.entries()] if everything else list(request.inputs)
    inputs = tuple([name if name.startswith(library.PREFIX) else f"{library.PREFIX}{name}" for name in names])
    options = request.options
    if everything or types or ranks:
        options = replace(options, instances=(*options.instances, *_instances(inputs, types, ranks, options)))
    output, emits = request.output, request.emits
    if output is not None and output.endswith(("/", "\\")):
        output, emits = _package(output, emits)
    elif output is None and len(inputs) > 1:
        output = "libops.so"
    if emits == () and output is not None and output.endswith(".so"):
        emits = (Emit("so"), Emit("table"))
    return built(replace(request, inputs=inputs, output=output, emits=emits, options=options))


def _instances(inputs: Sequence[str], types: Sequence[str], ranks: Sequence[str], options: Options) -> list[Instance]:
    """Those for these types and ranks that exist. UsageError E903 for what is no type or no rank."""
    from ...frontend.operator_instances import instances_of, known_type, that_exist
    dtypes = [known_type(word) for text in types for word in text.split(",")] or ["f32"]
    axes = [word for text in ranks for word in text.split(",")] or ["1"]
    if wrong := [word for word in axes if not word.isdigit() or int(word) > MOST_AXES]:
        raise UsageError(Diagnostic("E903", f"--rank: '{wrong[0]}' is no number of axes from 0 to {MOST_AXES}"))
    found = [library.entry_of(name.removeprefix(library.PREFIX)) for name in inputs]
    return [instance for entry in found
            for instance in that_exist(entry, instances_of(entry, dtypes, [int(n) for n in axes]), options)]


def _package(folder: str, emits: Sequence[Emit]) -> tuple[str, tuple[Emit, ...]]:
    """The library and the other files of a Python package, whose folder is made."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(Diagnostic("E909", f"cannot make the folder {folder}: {problem.strerror}")) from None
    return str(place / f"lib{place.name}.so"), (*emits, Emit("table"), Emit("python", str(place / "__init__.py")))


def chosen(words: tuple[str, ...], family: str | None) -> list[Entry]:
    """The operators that are asked for. UsageError E902 if there is none."""
    everything = [entry for entry in library.entries() if family is None or entry.family == family]
    if not everything:
        library.spec_of(family or "")
    exact = [entry for word in words for entry in everything if entry.name == word]
    if words and len(exact) == len(words):
        return exact
    found = [entry for entry in everything
             if all(word.lower() in f"{entry.name} {entry.family} {entry.documentation}".lower() for word in words)]
    if not found:
        if len(words) == 1:
            library.spec_of(words[0])                        # says which name is similar
        raise UsageError(Diagnostic("E902", f"no operator has all of these words: {' '.join(words)}",
                                    hint="caten ops lists them"))
    return found


def described(entry: Entry) -> dict[str, Any]:
    """An operator as JSON."""
    return {"name": entry.name, "family": entry.family, "documentation": entry.documentation,
            "signature": entry.signature, "file": str(entry.path), "figures": entry.figures}


def page(entry: Entry) -> str:
    """One operator: signature, description, file, figures and spec."""
    lines = [entry.signature, "", f"    {entry.documentation}", "", f"From Python: caten.ops.{entry.name}",
             f"In bodies:   {entry.name}({', '.join(entry.inputs)})", f"File:        {entry.path}", "",
             *_figures(entry), entry.source]
    return "".join([f"{escape(line)}\n" if "\n" not in line else line for line in lines])


def _figures(entry: Entry) -> list[str]:
    """What its calls took."""
    rows = [(" ".join([f"{name}={size}" for name, size in row["sizes"].items()]), row) for row in entry.figures]
    if not rows:
        return []
    width = max(len(sizes) for sizes, _ in rows)
    lines = [f"    {sizes:{width}}  {_duration(row['seconds']):>8}"
             + (f"  {row['ratio']:.2f} times as fast as {row['peer']}" if row["peer"] else "") for sizes, row in rows]
    return [f"Calls on {library.measured_on()}:", *lines, ""]


def _duration(seconds: float) -> str:
    unit, factor = next((u, f) for u, f in (("µs", 1e6), ("ms", 1e3), ("s", 1.0)) if seconds * f < 1000 or u == "s")
    return f"{seconds * factor:.3g} {unit}"


def listing(found: list[Entry]) -> str:
    """Names and descriptions, by families."""
    width = max(len(entry.name) for entry in found)
    introductions = library.introductions()
    lines: list[str] = []
    for family, members in groupby(found, lambda entry: entry.family):
        lines += [*([""] if lines else []), f"{family}: {introductions[family]}"]
        lines += [f"  {entry.name:{width}}  {entry.documentation}" for entry in members]
    return "".join([f"{line}\n" for line in [*lines, "", amount(len(found), "operator")]])

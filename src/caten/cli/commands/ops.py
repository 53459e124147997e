"""`caten ops`: the library of operators: list it, show one, compile some."""
from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from typing import Any

import click

from ...echo import escape
from ...errors import Diagnostic, UsageError
from ...frontend import operator_library as library
from ...frontend.operator_library import Entry
from ..atomic_files import STDOUT, write
from ..shared_options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten ops                                      every operator, by families
  caten ops norm                                 those with this word in their name or description
  caten ops softmax                              the signature and the spec of one
  caten ops softmax --source > my_softmax.toml   its spec, to be changed
  caten ops build softmax gelu -o libnet.so      a library of some, with header and manifest
  caten ops:softmax --instance "x=float64[M,N]"  a library of one, for matrices of float64
  caten test ops:softmax                         ops:NAME stands for the file of its spec"""


class Ops(click.Group):
    """`build` is a command; all other words are for `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in ("build", "--help", "-h") else ["show", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["build"]


@click.group("ops", cls=Ops, epilog=EXAMPLES, subcommand_metavar="[WORD… | build NAME…]", options_metavar="[OPTIONS]")
def command() -> None:
    """List the operators of the library, show one, or compile some.

    Options of the list: --family NAME, --json, and --source, which prints specs."""


@command.command("show")
@click.argument("words", nargs=-1, metavar="WORD…")
@click.option("--family", metavar="NAME", help="Only the operators of a family.")
@click.option("--source", is_flag=True, help="Print specs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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


@command.command("build", cls=GroupedCommand)
@compiles(products=True)
def build(request: Request) -> int:
    """Compile operators of the library to one library with its header and manifest."""
    from .build import build as built
    if not request.inputs:
        raise UsageError(Diagnostic("E902", "no operators are named",
                                    hint="caten ops build softmax gelu -o libnet.so; caten ops lists them"))
    inputs = tuple([name if name.startswith(library.PREFIX) else f"{library.PREFIX}{name}" for name in request.inputs])
    output = request.output if request.output is not None or len(inputs) == 1 else "libops.so"
    return built(replace(request, inputs=inputs, output=output))


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
            "signature": entry.signature, "file": str(entry.path)}


def page(entry: Entry) -> str:
    """One operator: signature, description, file and spec."""
    lines = [entry.signature, "", f"    {entry.documentation}", "", f"From Python: caten.ops.{entry.name}",
             f"In bodies:   {entry.name}({', '.join(entry.inputs)})", f"File:        {entry.path}", "", entry.source]
    return "".join([f"{escape(line)}\n" if "\n" not in line else line for line in lines])


def listing(found: list[Entry]) -> str:
    """Names and descriptions, by families."""
    width = max(len(entry.name) for entry in found)
    introductions = library.introductions()
    lines: list[str] = []
    for family, members in groupby(found, lambda entry: entry.family):
        lines += [*([""] if lines else []), f"{family}: {introductions[family]}"]
        lines += [f"  {entry.name:{width}}  {entry.documentation}" for entry in members]
    return "".join([f"{line}\n" for line in [*lines, "", f"{len(found)} operators"]])

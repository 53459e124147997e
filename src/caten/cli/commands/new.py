"""`caten new runtime`: write a small working runtime file as a starting point."""
from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path

import click

from ...errors import Diagnostic, UsageError
from ...options import environment
from ...runtime import discover
from ..atomic_files import STDOUT, write

EXAMPLES = """\b
Examples:
  caten new runtime mine                   mine.py: C for a new target
  caten new runtime near --from clang      near.py: derived from clang
  caten new runtime mine -o -              to stdout"""


@click.group("new", epilog=EXAMPLES)
def command() -> None:
    """Write a runtime file as a starting point."""


@command.command("runtime", epilog=EXAMPLES)
@click.argument("name")
@click.option("--from", "base", metavar="RUNTIME",
              help="Derive from this runtime. The default is an independent runtime for C.")
@click.option("-o", "--output", metavar="FILE",
              help="The output file; the default is NAME.py, '-' is stdout. Existing files are not overwritten.")
def runtime(name: str, base: str | None, output: str | None) -> None:
    """Write a small working runtime with comments on what to change. docs/write-a-runtime.md explains the next
    steps."""
    text = runtime_text(name, base)
    path = output or f"{name}.py"
    if path != STDOUT and Path(path).exists():
        raise UsageError(Diagnostic("E941", f"{path} already exists and is not overwritten",
                                    hint="name another file with -o"))
    write(path, text)


def runtime_text(name: str, base: str | None) -> str:
    """The text of a runtime file. UsageError E941 for an invalid name, E602 for an unknown `base`."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(Diagnostic("E941", f"'{name}' is not a valid name of a runtime",
                                    hint="use lower-case letters, digits and _: mine, my_board"))
    if base is not None:
        discover.find(base, environment()["runtime_path"])
    template = resources.files("caten").joinpath("templates",
                                                 "runtime.txt" if base is None else "derived.txt").read_text("utf-8")
    return template.format(name=name, title="".join([part.capitalize() for part in name.split("_")]), base=base)

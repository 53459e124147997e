"""`caten new runtime`: a small runtime file that works, to start from."""
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
  caten new runtime mine                   mine.py: C for a target of your own
  caten new runtime near --from clang      near.py: what clang does, with differences
  caten new runtime mine -o -              on stdout"""


@click.group("new", epilog=EXAMPLES)
def command() -> None:
    """Write a file to start from."""


@command.command("runtime", epilog=EXAMPLES)
@click.argument("name")
@click.option("--from", "base", metavar="RUNTIME",
              help="Derive it from this runtime; without it, it is a runtime for C of its own.")
@click.option("-o", "--output", metavar="FILE",
              help="The file, NAME.py without it; - is stdout. One that exists is not overwritten.")
def runtime(name: str, base: str | None, output: str | None) -> None:
    """Write a small runtime that works, with comments on what to change. docs/write-a-runtime.md goes on from there."""
    text = runtime_text(name, base)
    path = output or f"{name}.py"
    if path != STDOUT and Path(path).exists():
        raise UsageError(Diagnostic("E941", f"{path} exists already, and is not overwritten",
                                    hint="name another file with -o"))
    write(path, text)


def runtime_text(name: str, base: str | None) -> str:
    """The text of a runtime file. UsageError E941 for a name that cannot be one, E602 for an unknown runtime to derive
    from."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(Diagnostic("E941", f"'{name}' cannot be the name of a runtime",
                                    hint="use lower-case letters, digits and _: mine, my_board"))
    if base is not None:
        discover.find(base, environment()["runtime_path"])
    template = resources.files("caten").joinpath("templates",
                                                 "runtime.txt" if base is None else "derived.txt").read_text("utf-8")
    return template.format(name=name, title="".join([part.capitalize() for part in name.split("_")]), base=base)

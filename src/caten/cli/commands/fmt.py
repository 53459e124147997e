"""`caten fmt`: format specs."""
from __future__ import annotations

import difflib

import click

from ...core.text import read_forms
from ...echo import escape
from ...errors import CatenError, Diagnostic, UsageError, combined
from ...frontend import layout
from ...frontend.spec import parse
from ...frontend.spec_files import SpecText, read_file
from ..atomic_files import STDOUT, write
from ..shared_options import Files

EXAMPLES = """\b
Examples:
  caten fmt gemm.toml              rewrite the file
  caten fmt --check *.toml         for CI: exit code 1 if a file is not formatted
  caten fmt - < gemm.toml          write to stdout"""


@click.command("fmt", epilog=EXAMPLES)
@click.argument("files", nargs=-1, metavar="FILE…", cls=Files)
@click.option("--check", is_flag=True,
              help="Write nothing; list the files that would change, and exit with 1 if there are any.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(files: tuple[str, ...], check: bool, diff: bool) -> int:
    """Normalise the indentation, spaces and empty lines of specs and their bodies. Line breaks, comments and the
    meaning do not change."""
    if not files:
        raise UsageError(Diagnostic("E902", "no input files", hint="name a spec: caten fmt gemm.toml"))
    problems: list[CatenError] = []
    changed = 0
    for name in files:
        try:
            changed += _one(name, check, diff)
        except UsageError:
            raise
        except CatenError as problem:
            problems.append(problem)
    if problems:
        raise combined(problems)
    return int(check and changed > 0)


def _one(name: str, check: bool, diff: bool) -> bool:
    """Format one file. Does it change?"""
    source = read_file(name)
    text = formatted(source)
    changed = text != source.text
    if diff and changed:
        lines = difflib.unified_diff(source.text.splitlines(), text.splitlines(), name, name, lineterm="")
        write(STDOUT, "".join([escape(line) + "\n" for line in lines]))
    elif check and changed:
        write(STDOUT, escape(name) + "\n")
    elif name == STDOUT and not (check or diff):
        write(STDOUT, text)
    elif changed and not (check or diff):
        write(name, text)
    return changed


def formatted(source: SpecText) -> str:
    """The formatted text of a spec. CatenError if it cannot be parsed."""
    if source.lang == "lisp":
        before = read_forms(source.text, source.at)
        text = layout.lisp(source.text) + "\n"
        kept = read_forms(text) == before
    else:
        document, places = parse(source)
        for path in layout.bodies(document, places):
            read_forms(layout.at(document, path), places.inside(*path))
        text = layout.spec(source.text, document, places)
        kept = layout.same(document, parse(SpecText(source.name, text))[0])
    if not kept:
        raise AssertionError(f"another layout would change what {source.name} says")
    return text

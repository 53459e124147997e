"""`caten runtimes`: the runtimes that `--runtime` can name, with what is wrong with those that cannot be used."""
from __future__ import annotations

import click

from ..errors import CatenError
from ..options import environment
from ..runtime import discover
from ..runtime.discover import Listed
from .diagnostics import escape
from .files import STDOUT, write

EXAMPLES = """\b
Examples:
  caten runtimes
  CATEN_RUNTIME_PATH=~/runtimes caten runtimes"""


@click.command("runtimes", epilog=EXAMPLES)
def command() -> None:
    """List the runtimes: whether each can be used here, what it is, where it comes from, its options."""
    rows = [lines for listed in discover.listing(environment()["runtime_path"]) for lines in describe(listed)]
    write(STDOUT, "".join([escape(row).rstrip() + "\n" for row in rows]))


def describe(listed: Listed) -> list[str]:
    """Two or three lines: state and description, origin, options."""
    runtime = listed.runtime
    if runtime is None:
        return [f"{listed.name:10} broken       {listed.problem}", f"{'':24}{listed.origin}"]
    try:
        runtime.available()
        state, about = "ready", runtime.description
    except CatenError as problem:
        first = problem.diagnostics[0]
        state, about = "unavailable", f"{first.message}; {first.hint}" if first.hint else first.message
    keys = " ".join(runtime.config)
    return [f"{listed.name:10} {state:12} {about}", f"{'':24}{listed.origin}", *([f"{'':24}--config {keys}"] if keys else [])]

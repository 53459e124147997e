"""`caten runtimes`: list the runtimes for `--runtime`, and why some are unavailable."""
from __future__ import annotations

import click

from ...echo import escape
from ...options import environment
from ...runtime import discover
from ...runtime.discover import Listed
from ...runtime.plugin_checks import why_unavailable
from ..atomic_files import STDOUT, write

EXAMPLES = """\b
Examples:
  caten runtimes
  CATEN_RUNTIME_PATH=~/runtimes caten runtimes"""


@click.command("runtimes", epilog=EXAMPLES)
def command() -> None:
    """List the runtimes, with the state, description, origin and options of each."""
    rows = [lines for listed in discover.listing(environment()["runtime_path"]) for lines in describe(listed)]
    write(STDOUT, "".join([escape(row).rstrip() + "\n" for row in rows]))


def describe(listed: Listed) -> list[str]:
    """Two or three lines: state and description, origin, and options if there are any."""
    runtime = listed.runtime
    if runtime is None:
        return [f"{listed.name:10} broken       {listed.problem}", f"{'':24}{listed.origin}"]
    missing = why_unavailable(runtime)
    if missing is None:
        state, about = "ready", runtime.description
    else:
        state = "broken" if missing.code == "E605" else "unavailable"
        about = f"{missing.message}; {missing.hint}" if missing.hint else missing.message
    keys = " ".join(runtime.config)
    return [f"{listed.name:10} {state:12} {about}", f"{'':24}{listed.origin}",
            *([f"{'':24}--config {keys}"] if keys else [])]

"""`caten cache`: show and empty the cache of compiled libraries."""
from __future__ import annotations

import os
from collections.abc import Callable

import click

from ...runtime.library_cache import Cache, Stats, default_directory
from ..atomic_files import STDOUT, write
from ..diagnostics import Reporter

EXAMPLES = """\b
Examples:
  caten cache stats
  caten cache clean
  cd "$(caten cache dir)"

The folder is CATEN_CACHE_DIR, or else the cache folder of this platform."""


def describe(stats: Stats) -> str:
    """The statistics as lines `name value`."""
    rows = (("folder", str(stats.directory)), ("libraries", str(stats.entries)), ("size", size(stats.bytes)),
            ("kept failures", str(stats.failed)))
    return "".join([f"{name:14}{value}\n" for name, value in rows])


def size(count: int) -> str:
    """A number of bytes with a suitable unit."""
    if count < 1 << 10:
        return f"{count} bytes"
    return f"{count / 1024:.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def _clean(cache: Cache) -> str:
    before = cache.clean()
    return f"removed {before.entries} libraries, {before.failed} kept failures, {size(before.bytes)}\n"


ACTIONS: dict[str, Callable[[Cache], str]] = {
    "stats": lambda cache: describe(cache.stats()),
    "clean": _clean,
}


@click.command("cache", epilog=EXAMPLES)
@click.argument("action", type=click.Choice((*ACTIONS, "dir")))
@click.pass_obj
def command(reporter: Reporter, action: str) -> None:
    """Show the contents of the cache (stats), empty it (clean), or print its folder (dir)."""
    folder = default_directory(os.environ.get("CATEN_CACHE_DIR") or None)
    if action == "dir":
        return write(STDOUT, f"{folder}\n")
    cache = Cache(folder if folder.exists() else None, lambda warning: reporter.show([warning]))
    empty = describe(Stats(folder, 0, 0, 0)) if action == "stats" else "nothing to remove\n"
    text = ACTIONS[action](cache) if cache.directory else empty
    return write(STDOUT, text)

"""Progress of long work on stderr: a bar on a terminal, otherwise occasional lines."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .. import build_progress

QUIET_SECONDS = 5.0                # least time between two lines without a terminal


@contextmanager
def building(quiet: bool = False) -> Iterator[None]:
    """Show how far a long build is."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with build_progress.shown():
            yield
    else:
        with shown("") as progress, build_progress.heard(progress):
            yield


@contextmanager
def shown(what: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Yield `progress(done, of, name)`, to be called before each part of the work. `quiet`: print nothing, because a
    program reads stderr."""
    if quiet:
        yield lambda done, of, name: None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what)
            yield lambda done, of, name: bar.update(task, completed=done, total=of, description=f"{what} {name}")
        return
    last = time.monotonic()

    def line(done: int, of: int, name: str) -> None:
        nonlocal last
        if time.monotonic() - last >= QUIET_SECONDS:
            last = time.monotonic()
            count = f": {done} of {of}" if of else ""
            print(f"caten: {f'{what} {name}'.strip()}{count}", file=sys.stderr, flush=True)
    yield line

"""How far long work has come: a bar on a terminal, a line now and then elsewhere, both on stderr."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 5.0                # elsewhere than on a terminal a line is printed at most this often


@contextmanager
def shown(what: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """`progress(done, of, name)`, to be called before each part of the work. `quiet`: stderr is for a program, and
    nothing is said."""
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
            print(f"caten: {what} {name}: {done} of {of}", file=sys.stderr, flush=True)
    yield line

"""How far a long build is: told by those that do it, and shown on a terminal."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Listener = Callable[[int, int, str], None]             # parts that are done, of how many, and what is done now

DELAY = 1.0                                            # seconds: what takes no longer is not shown
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(done: int, of: int, what: str) -> None:
    """So many parts are done; `what` is done now."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(done, of, what)


@contextmanager
def heard(listener: Listener | None) -> Iterator[None]:
    """`listener` hears of the builds inside this block; None: nobody does."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def shown() -> Iterator[None]:
    """A bar on the terminal for the builds inside this block that take long. There is none if somebody hears of them
    already, or where stderr is no terminal."""
    if _LISTENER.get() is not None or not sys.stderr.isatty():
        yield
        return
    bar = _Bar()
    late = threading.Timer(DELAY, bar.show)
    late.daemon = True
    late.start()
    try:
        with heard(bar.hear):
            yield
    finally:
        late.cancel()
        bar.end()


class _Bar:
    """A bar that appears late, and goes without a trace."""

    def __init__(self) -> None:
        self._lock, self._last, self._ended = threading.Lock(), (0, 0, "building"), False
        self._progress: Any = None

    def hear(self, done: int, of: int, what: str) -> None:
        """What is to be shown now."""
        with self._lock:
            self._last = done, of, what
            self._update()

    def show(self) -> None:
        """From now on it is seen."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        with self._lock:
            if self._ended:
                return
            self._progress = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                                      TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._progress.add_task("", total=None)
            self._progress.start()
            self._update()

    def end(self) -> None:
        """It is gone."""
        with self._lock:
            self._ended = True
            if self._progress is not None:
                self._progress.stop()

    def _update(self) -> None:
        done, of, what = self._last
        if self._progress is not None:
            task = self._progress.task_ids[0]
            self._progress.update(task, completed=done, total=of or None, description=what)

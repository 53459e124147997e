"""Signals that wait: extension modules in C++ end the process with SIGABRT if an exception of a signal handler reaches
their initialisation."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = tuple([getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)])


@contextmanager
def deferred() -> Iterator[None]:
    """Signals with handlers in Python that arrive inside are handled at the end."""
    if threading.current_thread() is not threading.main_thread():            # no other thread runs handlers
        yield
        return
    arrived: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)
    before = {n: handler for n in NUMBERS if callable(handler := signal.getsignal(n))}
    for n in before:
        signal.signal(n, wait)
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
    for n in dict.fromkeys(arrived):
        signal.raise_signal(n)

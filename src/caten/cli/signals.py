"""Termination by signals: the process unwinds at once and kills its child processes."""
from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

AGAIN = 0.01              # seconds until a lost signal is sent again
SECONDS = 1.0             # time limit for killed children to end


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived. A BaseException, because only the outermost boundary may catch it."""

    def __init__(self, number: int):
        self.number = number


def install() -> None:
    """Turn SIGTERM and SIGHUP into an exception, so that temporary files are removed."""
    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated(number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):                 # only the main thread may set handlers
            signal.signal(number, stop)
    ignored = sys.unraisablehook

    def again(problem: sys.UnraisableHookArgs) -> None:
        """The interpreter ignores exceptions in its callbacks, so a signal that arrives in one is sent again later."""
        arrived = problem.exc_value
        interrupt = signal.SIGINT if isinstance(arrived, KeyboardInterrupt) else None
        number = arrived.number if isinstance(arrived, Terminated) else interrupt
        if number is None:
            ignored(problem)
        else:
            threading.Timer(AGAIN, os.kill, (os.getpid(), number)).start()
    sys.unraisablehook = again


def kill_children() -> None:
    """Kill all descendants of this process (a compiler driver starts processes too) and wait until they end."""
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + SECONDS
    with contextlib.suppress(ChildProcessError):              # raised when no child remains
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)


def _descendants(pid: int) -> list[int]:
    """Process ids of all descendants, deepest first, from /proc; empty without /proc."""
    found: list[int] = []
    for children in sorted(Path(f"/proc/{pid}/task").glob("*/children")):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found.extend([*_descendants(child), child])
    return found

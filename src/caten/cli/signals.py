"""What happens when the process is told to stop: it unwinds at once and takes its children with it."""
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

AGAIN = 0.01              # seconds until a signal that came to nothing is sent once more
SECONDS = 1.0             # after which a killed process that does not end is left to the system


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived. Not an Exception: nothing but the outermost boundary may catch it."""

    def __init__(self, number: int):
        self.number = number


def install() -> None:
    """Turn SIGTERM and SIGHUP into an exception, as Python does with Ctrl-C, so that temporary files are removed."""
    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated(number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):                 # not in the main thread: the host program decides
            signal.signal(number, stop)
    ignored = sys.unraisablehook

    def again(problem: sys.UnraisableHookArgs) -> None:
        """What a callback of the interpreter's raises ends nothing: a signal that arrived in one is sent once more when
        it has returned."""
        arrived = problem.exc_value
        interrupt = signal.SIGINT if isinstance(arrived, KeyboardInterrupt) else None
        number = arrived.number if isinstance(arrived, Terminated) else interrupt
        if number is None:
            ignored(problem)
        else:
            threading.Timer(AGAIN, os.kill, (os.getpid(), number)).start()
    sys.unraisablehook = again


def kill_children() -> None:
    """Kill every process that this one started and that still runs, grandchildren too (a compiler driver starts its
    own), and see them end."""
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + SECONDS
    with contextlib.suppress(ChildProcessError):              # there is none any more
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)


def _descendants(pid: int) -> list[int]:
    """Deepest first, from /proc; empty where there is none."""
    found: list[int] = []
    for children in sorted(Path(f"/proc/{pid}/task").glob("*/children")):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found.extend([*_descendants(child), child])
    return found

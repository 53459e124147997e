"""Child processes that send results one by one, and may crash or hang alone."""
from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..frozen import frozen
from ..testing import isolate, pipe_messages

Message = tuple[dict[str, Any], dict[str, np.ndarray]]              # facts that JSON can say, and arrays
Work = Callable[[], Iterator[Message]]
# the fact of the last message of a child; its value is a traceback, or None
END = "end"


class Ended(Exception):
    """A child has sent everything."""


class Died(Exception):
    """A child ended before it had sent everything: by which signal, or with which exit code."""


class Child:
    """A forked process that sends what `work` yields."""

    def __init__(self, work: Work):
        self.reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            _send_all(work, writer)                                 # never returns
        with contextlib.suppress(OSError):
            # as the child does: who is first makes sure of it for `kill`
            os.setpgid(self.pid, self.pid)
        self.ended = False
        isolate.CHILDREN.add(self.pid)
        os.close(writer)

    def receive(self, seconds: float | None) -> Message:
        """The next message. Raises Ended, Died, or wire.Late after so many seconds; in every case the child is gone
        then."""
        try:
            facts, arrays = pipe_messages.receive(self.reader, seconds)
        except pipe_messages.Late:
            self.kill()
            raise
        except pipe_messages.Gone:
            raise Died(self.reap()) from None
        except (ValueError, TypeError, KeyError, AttributeError, MemoryError, OverflowError):
            self.kill()
            raise Died("what it sent is no result: something wrote into its pipe") from None
        if END in facts:
            self.reap()
            if facts[END] is not None:
                raise RuntimeError(f"in a process of the conformance suite: {facts[END]}")
            raise Ended
        return facts, arrays

    def kill(self) -> None:
        """End it and what it started, if it is still there."""
        if self.ended:
            return
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self.reap()

    def reap(self) -> str:
        _, status = os.waitpid(self.pid, 0)
        self.ended = True
        isolate.CHILDREN.discard(self.pid)
        os.close(self.reader)
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        return f"exit code {os.waitstatus_to_exitcode(status)}"


def _send_all(work: Work, writer: int) -> None:
    """In the child. Never returns, whatever happens: this is a copy of the caller, and must not go on as it."""
    code = 70
    try:
        os.setpgid(0, 0)                                            # so that it can be killed with what it starts
        # what a kernel prints is no part of what the command says
        os.dup2(2, 1)
        faulthandler.disable()                                      # a crash is a result here
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        failure = None
        try:
            for facts, arrays in work():
                pipe_messages.send(writer, facts, arrays)
        except Exception:
            failure = traceback.format_exc()
        pipe_messages.send(writer, {END: failure}, {})
        code = 0
    finally:
        os._exit(code)


@frozen
class Lost:
    """A job whose process ended before its time, or was ended after it."""

    why: str
    late: bool


def run_all(jobs: Sequence[Work], workers: int, seconds: float) -> Iterator[tuple[int, dict[str, Any] | Lost | None]]:
    """All jobs, so many at a time: (number of the job, what it sent), at its end (number, None), or (number, Lost).
    `seconds`: the longest silence."""
    waiting = list(enumerate(jobs))[::-1]
    # by file descriptor: the job's number, the child, when it was last heard of
    running: dict[int, tuple[int, Child, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, job = waiting.pop()
                child = Child(job)
                running[child.reader] = number, child, time.monotonic()
            ready = select.select(list(running), [], [], 1.0)[0]
            for reader, (number, child, since) in list(running.items()):
                if reader not in ready:
                    if time.monotonic() - since > seconds:
                        del running[reader]
                        child.kill()
                        yield number, Lost("no sign of life", True)
                    continue
                try:
                    facts, _ = child.receive(seconds)
                    running[reader] = number, child, time.monotonic()
                    yield number, facts
                except Ended:
                    del running[reader]
                    yield number, None
                except Died as why:
                    del running[reader]
                    yield number, Lost(str(why), False)
                except pipe_messages.Late:
                    del running[reader]
                    yield number, Lost("no sign of life", True)
    finally:
        for _, child, _ in running.values():
            child.kill()

"""Signals wait while an extension module is imported."""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from caten.core.deferred_signals import deferred


class Stopped(BaseException):
    pass


@pytest.fixture
def handled() -> Iterator[object]:
    def stop(number: int, frame: object) -> None:
        raise Stopped
    before = signal.signal(signal.SIGTERM, stop)
    yield stop
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_for_the_end(handled: object) -> None:
    reached: list[int] = []

    def interrupted() -> None:
        with deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append(sum(range(1000)))
    with pytest.raises(Stopped):
        interrupted()
    assert reached == [499500]
    assert signal.getsignal(signal.SIGTERM) is handled


def test_an_error_inside_is_that_error(handled: object) -> None:
    with pytest.raises(ImportError), deferred():
        raise ImportError("islpy")
    assert signal.getsignal(signal.SIGTERM) is handled


def test_other_threads_have_no_handlers() -> None:
    seen = []

    def work() -> None:
        with deferred():
            seen.append(True)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]

"""Child processes: what they send is received; one that crashes or hangs does so alone."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

from caten.conformance import pool, probe
from caten.errors import ToolError
from caten.testing import pipe_messages


def counting(end: int) -> pool.Work:
    def work() -> Iterator[pool.Message]:
        for n in range(end):
            yield {"n": n}, {"a": np.full(n, n, np.int16)}
    return work


def crashing() -> Iterator[pool.Message]:
    yield {"n": 0}, {}
    os.kill(os.getpid(), signal.SIGSEGV)


def hanging() -> Iterator[pool.Message]:
    yield {"n": 0}, {}
    time.sleep(60)


def test_messages_arrive_in_order() -> None:
    child = pool.Child(counting(3))
    found = [child.receive(20) for _ in range(3)]
    assert [facts["n"] for facts, _ in found] == [0, 1, 2]
    assert found[2][1]["a"].tolist() == [2, 2]
    with pytest.raises(pool.Ended):
        child.receive(20)


def test_a_crash_is_named_by_its_signal() -> None:
    child = pool.Child(crashing)
    assert child.receive(20)[0] == {"n": 0}
    with pytest.raises(pool.Died, match="SIGSEGV"):
        child.receive(20)


def test_what_takes_too_long_is_ended() -> None:
    child = pool.Child(hanging)
    child.receive(20)
    with pytest.raises(pipe_messages.Late):
        child.receive(0.1)
    assert not os.path.exists(f"/proc/{child.pid}")


def test_jobs_go_on_beside_one_that_crashes_and_one_that_hangs() -> None:
    heard = list(pool.run_all([counting(2), crashing, hanging, counting(3)], 2, 1.0))
    ends = {number: what for number, what in heard if not isinstance(what, dict)}
    assert ends == {0: None, 1: pool.Lost("SIGSEGV", False), 2: pool.Lost("no sign of life", True), 3: None}
    assert [what["n"] for number, what in heard if number == 3 and isinstance(what, dict)] == [0, 1, 2]


def test_an_exception_in_a_job_is_an_error_here() -> None:
    def failing() -> Iterator[pool.Message]:
        yield {"n": 1 // 0}, {}
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(pool.run_all([failing, hanging], 2, 30.0))


def test_a_child_that_has_only_begun_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def beginning(work: pool.Work, writer: int) -> None:                    # before it has a process group of its own
        time.sleep(60)
        os._exit(0)
    monkeypatch.setattr(pool, "_send_all", beginning)
    start = time.monotonic()
    pool.Child(crashing).kill()
    assert time.monotonic() - start < 30


def test_what_is_no_message_is_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbling(work: pool.Work, writer: int) -> None:
        os.write(writer, b"garbage" * 10)
        os._exit(0)
    monkeypatch.setattr(pool, "_send_all", garbling)
    with pytest.raises(pool.Died, match="is no result"):
        pool.Child(crashing).receive(20)


def test_what_is_printed_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    def printing() -> Iterator[pool.Message]:
        os.write(1, b"printed")
        yield {}, {}
    child = pool.Child(printing)
    child.receive(20)
    child.kill()
    assert capfd.readouterr() == ("", "printed")


def test_what_is_asked_of_a_runtime_may_die_or_hang() -> None:
    assert probe.asked("nothing", lambda: {"n": 1}, 20) == {"n": 1}
    with pytest.raises(ToolError, match="asked to end died: exit code 0"):
        probe.asked("to end", lambda: os._exit(0), 20)
    with pytest.raises(ToolError, match=r"asked to wait, and did not answer within 0\.1 s"):
        probe.asked("to wait", lambda: {"n": time.sleep(60)}, 0.1)

"""What is said while the embedded clang builds its own library, and that nothing is said otherwise."""
from __future__ import annotations

import logging
import time

import pytest

from caten import notices
from caten.runtime import zig


def test_only_slow_linking_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(notices, "tell", told.append)
    monkeypatch.setattr(zig, "SLOW", 0.05)
    with zig.announced_first_use():
        pass
    time.sleep(0.2)
    assert told == []
    with zig.announced_first_use():
        time.sleep(0.2)
    assert told == [zig.FIRST_USE]


def test_a_library_logs_it(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    notices.log("first")
    assert caplog.messages == []
    with caplog.at_level(logging.INFO, "caten"):
        notices.log("second")
    assert caplog.messages == ["second"]
    assert capfd.readouterr() == ("", "")

"""A reader who follows the command line to the first stage of the compiler passes few modules."""
from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from caten import loading
from caten.cli import main

SPEC = "(composite Fill (() -> (C{float}[N])) (dotimes (i N) (setf (aref C i) 1.0)))"


def test_at_most_five_modules_before_the_first_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def record(*_: object) -> list[object]:
        frame = sys._getframe(1)
        while frame is not None and frame.f_globals["__name__"] != __name__:
            seen.append(frame.f_globals["__name__"])
            frame = frame.f_back
        raise SystemExit
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "loaded", record)
    monkeypatch.setattr(sys, "argv", ["caten", SPEC, "-o", "fill.so"])
    monkeypatch.setattr(main, "leave", lambda code: None)
    monkeypatch.setattr("caten.cli.signals.install", lambda: None)
    monkeypatch.setattr(main, "OURS", False)
    thresholds = gc.get_threshold()
    main.run()
    gc.set_threshold(*thresholds)
    ours = [name for name in dict.fromkeys(reversed(seen)) if name.startswith("caten.")]
    assert ours[0] == "caten.cli.main"
    assert len(ours) - 1 <= 5, ours

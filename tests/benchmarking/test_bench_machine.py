"""What is said of the machine."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.benchmarking import machine


def test_the_choice_of_huge_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(machine, "HUGE_PAGES", tmp_path / "enabled")
    assert machine.huge_pages() == "madvise"


def test_facts_that_every_file_has() -> None:
    assert {"cpu", "cpus", "python", "numpy", "caten", "date"} <= machine.described().keys()

"""What is said of the machine."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.bench import machine

INFO = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel\t\t: 1\nstepping\t: 2\ncpu family\t: 25\n\nprocessor\t: 1\nmodel name\t: Another\n"


def test_the_cpu_is_named_with_its_numbers() -> None:
    assert machine.cpu(INFO) == "Some CPU @ 3 GHz (cpu family 25, model 1, stepping 2)"


def test_a_system_without_that_file_has_a_name_too() -> None:
    assert machine.cpu("")


def test_the_choice_of_huge_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(machine, "HUGE_PAGES", tmp_path / "enabled")
    assert machine.huge_pages() == "madvise"


def test_facts_that_every_file_has() -> None:
    assert {"cpu", "cpus", "python", "numpy", "caten", "date"} <= machine.described().keys()

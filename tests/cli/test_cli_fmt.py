"""`caten fmt`."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spec_texts import AXPY

UGLY = AXPY.replace("[implementation]", "\n\n\n[implementation]  ")


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "ugly.toml").write_text(UGLY)
    return folder


def test_a_file_is_rewritten_and_then_stays(caten: Any, files: Path) -> None:
    assert caten("fmt", "ugly.toml").code == 0
    once = (files / "ugly.toml").read_text()
    assert "\n\n\n" not in once
    result = caten("fmt", "--check", "ugly.toml")
    assert (result.code, result.out) == (0, "")


def test_check_and_diff_write_nothing(caten: Any, files: Path) -> None:
    result = caten("fmt", "--check", "ugly.toml")
    assert (result.code, result.out) == (1, "ugly.toml\n")
    shown = caten("fmt", "--diff", "ugly.toml")
    assert shown.code == 0
    assert "-[implementation]  \n+[implementation]\n" in shown.out
    assert caten("fmt", "--check", "--diff", "ugly.toml").code == 1
    assert (files / "ugly.toml").read_text() == UGLY


def test_stdin_goes_to_stdout(caten: Any, files: Path) -> None:
    assert caten("fmt", "-", stdin="(composite  F ((A{float}[N]) -> (B{float}[N]))\n(setf B A))").out == "(composite F ((A{float}[N]) -> (B{float}[N]))\n  (setf B A))\n"


def test_a_file_with_faults_stays_as_it_is_and_others_are_formatted(caten: Any, files: Path) -> None:
    (files / "bad.toml").write_text('[composite]\nname = "F"\ninputs = ["A{float}[N]"]\noutputs = ["A"]\n[implementation]\ncode = """\n(setf A\n"""\n')
    result = caten("fmt", "bad.toml", "ugly.toml")
    assert result.code == 1
    assert "bad.toml:7:1: error: this ( is never closed [E201]" in result.err
    assert "\n\n[impl" not in (files / "bad.toml").read_text()
    assert (files / "ugly.toml").read_text() != UGLY


def test_nothing_to_format_is_a_usage_error(caten: Any, files: Path) -> None:
    assert caten("fmt").code == 2
    assert caten("fmt", "missing.toml").code == 2

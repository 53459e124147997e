"""A runtime written from the template and the page about it: C89 without vectors passes the conformance suite."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from caten.cli.boundary import guarded

FILE = Path(__file__).parent / "c89.py"
SLICE = ["operator/*/f32/ordinary", "operator/*/i32/ordinary", "operator/*/bool/ordinary", "operator/add/*/ordinary"]


def test_a_slice_of_the_conformance_suite_passes(tool: Callable[[str], str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tool("gcc")
    filters = [word for part in SLICE for word in ("--filter", part)]
    code = guarded(["test-runtime", "--runtime", str(FILE), "--jobs", "2", "-o", str(tmp_path), *filters])
    out = capfd.readouterr().out
    assert code == 0, out
    passed = re.search(r"(\d+) of \d+ cases pass", out)
    assert passed is not None
    assert int(passed[1]) > 110


def test_it_is_c89_as_far_as_its_page_says(tool: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = Path(__file__).resolve().parents[2] / "samples" / "softmax.toml"
    assert guarded([str(spec), "--runtime", str(FILE), "--emit=c=softmax.c"]) == 0
    assert subprocess.run([tool("gcc"), "-std=c89", "-Werror=implicit-function-declaration", "-fsyntax-only", "softmax.c"], check=False).returncode == 0
    text = (tmp_path / "softmax.c").read_text()
    assert not re.search(r"vector_size|for \(int64_t|//", text)


def test_it_is_short() -> None:
    assert len(FILE.read_text().splitlines()) < 65

"""Dependency files that make reads."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from caten.cli.depfile import depfile


def test_form() -> None:
    assert depfile(["gemm.so"], ["gemm.toml", "clang.py", "gemm.toml"]) == "gemm.so: \\\n  gemm.toml \\\n  clang.py\n"
    assert depfile(["a b"], ["x$y", "z"], phony=True) == "a\\ b: \\\n  x$$y \\\n  z\n\nz:\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_understands_awkward_names(tmp_path: Path) -> None:
    names = ["a b.toml", "c$d.toml", "e#f.toml"]
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / "x.d").write_text(depfile(["out"], [*names, "gone.toml"], phony=True))
    (tmp_path / "Makefile").write_text("out:\n\t@echo made from $(words $^) > out\ninclude x.d\n")
    subprocess.run(["make", "-s"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out").exists()
    assert "is up to date" not in subprocess.run(["make", "-s"], cwd=tmp_path, check=True, capture_output=True, text=True).stderr

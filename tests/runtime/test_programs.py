"""Programs on a path are looked for again when one of its folders has changed."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from caten.runtime import installed_programs
from caten.runtime.installed_programs import installed

NAMES = ("one", "two")


def test_what_is_installed_meanwhile_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()

    def add(name: str, changed: int) -> str:
        file = tmp_path / "bin" / name
        file.write_text("")
        file.chmod(0o755)
        os.utime(tmp_path / "bin", (changed, changed))
        return str(file)
    path = f"{tmp_path / 'nowhere'}{os.pathsep}{tmp_path / 'bin'}"
    assert installed(NAMES, path) == ()
    two = add("two", 1)
    assert installed(NAMES, path) == (two,)
    with monkeypatch.context() as nothing:
        nothing.setattr(installed_programs.shutil, "which", None)      # nor is anything looked for while nothing has
        assert installed(NAMES, path) == (two,)
    one = add("one", 2)
    assert installed(NAMES, path) == (one, two)
    monkeypatch.setenv("PATH", path)
    assert installed(NAMES, None) == (one, two)
    os.remove(one)
    os.utime(tmp_path / "bin", (3, 3))
    assert installed(NAMES, None) == (two,)
